"""LangChain messages in JSON, in the three forms that LangChain writes: constructors, typed data, plain dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compact.tools.transcripts.chat_messages import call, reply, result
from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

ROLES = {
    "human": "user",
    "system": "system",
    "ai": "assistant",
    "tool": "tool",
    "function": "function",
    "chat": "",
}
"""LangChain's message types, and the roles of OpenAI chat."""
_OWN_NAMES = ("human", "ai")
"""The types that no other format has."""
_CHUNK = "messagechunk"
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})
_THOUGHT_BLOCKS = frozenset({"thinking", "reasoning"})
_FIELDS = frozenset(
    {"additional_kwargs", "response_metadata", "tool_calls", "tool_call_id", "invalid_tool_calls", "example"}
)


def recognises_record(value: Any) -> bool:
    """Whether a value is a list of messages, or a state or prompt with one."""
    found = _messages_in(value)
    return bool(found) and any(map(recognises, found)) and all(isinstance(each, dict) for each in found)


def recognises(value: Any) -> bool:
    """Whether a value is one message."""
    if not isinstance(value, dict):
        return False
    if _is_constructor(value):
        return isinstance(value.get("kwargs"), dict) and "content" in value["kwargs"]
    kind = _kind(value.get("type"))
    if kind is None:
        return False
    data = value.get("data")
    if isinstance(data, dict) and "content" in data:
        return True
    bare = "role" not in value and ("name" in value or kind in _OWN_NAMES)
    return "content" in value and (bare or bool(_FIELDS & value.keys()))


def read_record(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a list of messages as OpenAI chat messages."""
    yield _session((JsonLine(line.line, each) for each in _messages_in(line.value)), name, file)


def read(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read one message per line as OpenAI chat messages."""
    yield _session(lines, file.name, file)


def _session(lines: Iterable[JsonLine], name: str, file: TranscriptFile) -> RecordedSession:
    messages: list[dict[str, Any]] = []
    model = ""
    for line in lines:
        kind, data = _parse(line.value)
        if kind == "remove":
            file.leave_out("RemoveMessage")
        elif kind is None or data is None:
            keys = ", ".join(sorted(map(str, line.value))[:8]) if isinstance(line.value, dict) else ""
            file.note(line.line, f"an entry of it is not a message of LangChain (keys: {keys})")
        else:
            messages.append(_message(kind, data, file))
            metadata = data.get("response_metadata")
            named = metadata.get("model_name") or metadata.get("model") if isinstance(metadata, dict) else ""
            model = text_or_empty(named) or model
    return RecordedSession(
        id=name, messages=messages, format="langchain", dialect="chat", model=model or None
    )


def _message(kind: str, data: dict[str, Any], file: TranscriptFile) -> dict[str, Any]:
    if kind == "ai":
        return _reply(data)
    content = data.get("content")
    if kind == "tool":
        if data.get("artifact") is not None:
            file.leave_out("artifact of a tool")
        return result(text_or_empty(data.get("tool_call_id")), content)
    role = ROLES[kind] or text_or_empty(data.get("role")) or "user"
    name = text_or_empty(data.get("name"))
    return {"role": role, "content": content, **({"name": name} if name else {})}


def _reply(data: dict[str, Any]) -> dict[str, Any]:
    """A reply. Calls that stand among the content, too, are said once; reasoning there is a field of its own here."""
    given = data.get("additional_kwargs")
    more: dict[str, Any] = given if isinstance(given, dict) else {}
    calls = [
        call(text_or_empty(each.get("id")), text_or_empty(each.get("name")), each.get("args"))
        for key in ("tool_calls", "invalid_tool_calls")
        for each in _objects(data.get(key))
    ]
    # Old versions kept only the provider's own form.
    calls = calls or _objects(more.get("tool_calls"))
    content, thoughts = data.get("content"), [text_or_empty(more.get("reasoning_content"))]
    if isinstance(content, list):
        ids = {text_or_empty(each.get("id")) for each in calls} - {""}
        blocks = []
        for block in content:
            kind = text_or_empty(block.get("type")) if isinstance(block, dict) else ""
            named = (
                {text_or_empty(block.get(key)) for key in ("id", "call_id")}
                if kind in _CALL_BLOCKS
                else set()
            )
            if named & ids:
                continue
            if kind in _THOUGHT_BLOCKS:
                thoughts.append(text_or_empty(block.get("thinking") or block.get("reasoning")))
            else:
                blocks.append(block)
        content = blocks or ""
    message = reply(content, calls, "\n".join(filter(None, thoughts)))
    legacy = more.get("function_call")
    return {**message, "function_call": legacy} if isinstance(legacy, dict) and not calls else message


def _parse(value: Any) -> tuple[str | None, dict[str, Any] | None]:
    """The type of a message and its fields, whatever the form."""
    if not isinstance(value, dict):
        return None, None
    if _is_constructor(value):
        name, data = value["id"][-1], value.get("kwargs")
        kind = _kind(name.removesuffix("Message").lower()) or _kind(name)
    else:
        kind = _kind(value.get("type"))
        data = value["data"] if isinstance(value.get("data"), dict) else value
    return (
        (kind, data) if isinstance(data, dict) and ("content" in data or kind == "remove") else (None, None)
    )


def _kind(name: Any) -> str | None:
    """A message type by its name, or by that of its chunk."""
    if not isinstance(name, str):
        return None
    plain = name.lower().removesuffix(_CHUNK)
    return plain if plain in ROLES or plain == "remove" else None


def _is_constructor(value: dict[str, Any]) -> bool:
    path = value.get("id")
    return "lc" in value and isinstance(path, list) and bool(path) and isinstance(path[-1], str)


def _messages_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        holder = value.get("kwargs") if _is_constructor(value) else value
        value = holder.get("messages") if isinstance(holder, dict) else None
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
