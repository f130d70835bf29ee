"""From artifacts back to a request that a provider accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from compact.errors import MessageError
from compact.messages import Message, Text, ToolCall, ToolResult, dialects, to_json
from compact.messages.dialects import Dialect
from compact.messages.hygiene.sanitizing import valid_text
from compact.messages.legality import ROLES, fill_role_gaps
from compact.messages.message import bad_text
from compact.tools.harness.artifacts import as_artifacts, check_artifact

LEFT_OUT = "[this output was left out of the context]"
"""The result of a call whose output was dropped."""
NO_OUTPUT = "[the tool printed nothing]"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_CHARS = 64
_BARE_MASK = re.compile(r"(?<=[:,\[\s])(<[A-Z][A-Z0-9_]*>)(?=\s*[,\]}])")
"""What a rule puts in the place of a number in JSON: `{"port": <REDACTED>}`."""
_LISTS = {"responses": "input", "gemini": "contents"}
"""The key of a request's messages, where it is not `messages`."""
_UNSENT = ("reasoning",)
"""A provider takes no reasoning back that it did not sign."""


def to_request(artifacts: Any, dialect: str = "chat") -> dict[str, Any]:
    """Turn artifacts into a provider's request: what `create(model=..., **request)` takes beside its model.

    System artifacts become the system prompt, and so do tasks, unless they have a role of their own. A `tool_output` answers
    the `tool_call` before it; one without a call gets a call, because every provider refuses a result without one. A call
    whose output was dropped gets a result that says so. Anything else is a user message that begins with its kind.
    Reasoning is left out, because providers only take their own, signed.

    Args:
        artifacts: What `stabilize` returned as `.artifacts`, or anything that `as_artifacts` takes.
        dialect: chat, responses, anthropic, ai_sdk, gemini or converse.

    Returns:
        `{"messages": [...]}`; for anthropic and converse with `"system"` beside it; for responses `{"input": [...]}`; for gemini
        `{"contents": [...]}` with `"systemInstruction"` beside it.

    Raises:
        MessageError: an entry is not an artifact, a role is unknown, or nothing is left to send.
    """
    writer = _Writer(check_request_dialect(dialect))
    for index, item in enumerate(as_artifacts(artifacts)):
        writer.add(item, check_artifact(item, index), index)
    return writer.request()


def check_request_dialect(name: str) -> Dialect:
    """Return the dialect of this name.

    Raises:
        MessageError: there is none, or no provider takes requests in it.
    """
    known = dialects.get(name)
    if known.NAME not in ROLES:
        raise MessageError(
            f"artifacts cannot become a request in the dialect {known.NAME}",
            hint=f"Known: {', '.join(ROLES)}",
            dialect=known.NAME,
        )
    return known


class _Writer:
    """Collects the messages of one request. The calls of the newest reply stay open until something else is said."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._system: list[str] = []
        self._messages: list[Message] = []
        self._calls: list[tuple[str | None, ToolCall]] = []
        self._answers: dict[str, str] = {}
        self._count = 0

    def add(self, item: Mapping[str, Any], kind: str, index: int) -> None:
        role = item.get("role")
        words = valid_text("\n".join(filter(None, (item.get("title"), item["content"]))))
        if kind in _UNSENT:
            return
        if kind == "tool_call":
            self._call(item, words)
        elif kind == "tool_output" or role in ("tool", "function"):
            self._output(item, words)
        elif kind in ("system", "task"):
            self._say(role or "system", words, index)
        elif kind == "message":
            self._say(role or "user", words, index)
        else:
            self._say(role or "user", f"[{kind}] {words}", index)

    def request(self) -> dict[str, Any]:
        self._close()
        known = self._dialect
        messages = self._messages
        if known.RESULTS_IN_USER:
            messages = _ended(fill_role_gaps(_joined(messages), known))
            if not messages:
                raise MessageError(
                    "there is nothing to send: no artifact is a message or an output",
                    hint="A request needs a message beside its system prompt",
                    dialect=known.NAME,
                )
        request: dict[str, Any] = {}
        if self._system:
            key, prompt = _prompt("\n\n".join(self._system), known)
            request[key] = prompt
        return {**request, _LISTS.get(known.NAME, "messages"): dialects.write(known, messages)}

    def _say(self, role: str, words: str, index: int) -> None:
        if role not in {*ROLES[self._dialect.NAME], "system", "developer"}:
            raise MessageError(
                f"artifacts[{index}] has the role {role[:40]!r}, which no provider knows",
                hint="Known: system, developer, user, assistant, tool",
                index=index,
                dialect="harness",
            )
        if not words.strip():
            return
        if self._dialect.RESULTS_IN_USER and role in ("system", "developer"):
            self._system.append(words)
            return
        self._close()
        self._messages.append(Message(role, (Text(words),)))

    def _call(self, item: Mapping[str, Any], words: str) -> None:
        if self._answers:
            self._close()
        name, _, arguments = words.strip().partition(" ")
        self._open(_note(item, "call"), name, _arguments(arguments))

    def _output(self, item: Mapping[str, Any], words: str) -> None:
        call = self._call_for(_note(item, "call"))
        if call is None:
            self._close()
            name = _note(item, "tool") or item.get("title") or str(item.get("id") or "")
            call = self._open(None, name, {})
        self._answers[call.id] = words if words.strip() else NO_OUTPUT

    def _call_for(self, label: str | None) -> ToolCall | None:
        """The open call that an output answers: the one of the same label, else the first without an answer."""
        waiting = [(known, call) for known, call in self._calls if call.id not in self._answers]
        for known, call in waiting:
            if known == label or label is None:
                return call
        return None

    def _open(self, label: str | None, name: str, arguments: Any) -> ToolCall:
        call = ToolCall(f"call_{self._count}", _tool_name(name), arguments)
        self._count += 1
        before = self._messages[-1] if self._messages else None
        if self._dialect.ITEMS_ARE_PARTS or before is None or before.role != "assistant":
            self._messages.append(Message("assistant", (call,)))
        else:
            self._messages[-1] = replace(before, parts=(*before.parts, call))
        self._calls.append((label, call))
        return call

    def _close(self) -> None:
        """Answer the open calls, in their order."""
        named = self._dialect.NAME in ("ai_sdk", "gemini")
        results = tuple(
            ToolResult(
                call.id, (Text(self._answers.get(call.id, LEFT_OUT)),), name=call.name if named else None
            )
            for _, call in self._calls
        )
        self._calls, self._answers = [], {}
        if self._dialect.RESULTS_IN_USER and results:
            self._messages.append(Message("user", results))
        else:
            self._messages += [Message("tool", (result,)) for result in results]


def _prompt(text: str, dialect: Dialect) -> tuple[str, Any]:
    """The field of a system prompt beside the list, and the prompt in its form."""
    if dialect.NAME == "gemini":
        return "systemInstruction", {"parts": [{"text": text}]}
    return "system", [{"text": text}] if dialect.NAME == "converse" else text


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Join neighbours of the same role, for providers whose roles alternate."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role:
            found[-1] = replace(found[-1], parts=(*found[-1].parts, *message.parts))
        else:
            found.append(message)
    return found


def _ended(messages: list[Message]) -> list[Message]:
    """Take the blanks off the end of a closing reply, which Anthropic takes for the beginning of its own and refuses."""
    if not messages or messages[-1].role != "assistant":
        return messages
    *others, end = messages[-1].parts
    if isinstance(end, Text):
        messages[-1] = replace(messages[-1], parts=(*others, Text(end.text.rstrip())))
    return messages


def _note(item: Mapping[str, Any], name: str) -> str | None:
    """What `meta` says of a call: the label that its output shares, or its tool."""
    meta = item.get("meta")
    value = meta.get(name) if isinstance(meta, Mapping) else None
    return value if isinstance(value, str) and value else None


def _tool_name(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name).strip("_")[:_NAME_CHARS] or "tool"


def _arguments(text: str) -> dict[str, Any]:
    """Read a call's arguments. A number that was masked is a text by now. Text that is not a JSON object is one argument."""
    value = _parsed(text)
    if value is None:
        value = _parsed(_BARE_MASK.sub(r'"\1"', text))
    # An escape in JSON can stand for a character that no provider takes.
    if isinstance(value, dict) and bad_text(to_json(value)) is None:
        return value
    return {"input": text} if text.strip() else {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
