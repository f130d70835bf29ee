"""Harness artifacts: `{"kind", "content", ...}`, the input of the stability harness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects.foreign import LANGCHAIN_TYPES
from compact.messages.dialects.forms import Flaw
from compact.messages.dialects.wire import join_text, marks, plain, write_entry
from compact.messages.message import Message, Piece, Text

NAME = "harness"
EXPECTED = "an artifact: {'kind': 'system' | 'task' | 'message' | 'tool_output' | ..., 'content': text}"
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = False
TAKES_PLAIN = True
MODEL_ROLE = "assistant"

KINDS = ("system", "task", "message", "tool_call", "tool_output")
"""The kinds that have a meaning of their own. Any other kind is something that stays while it fits."""
FIELDS = ("kind", "type", "content", "id", "authority", "priority", "title", "role", "meta")
"""The fields of an artifact. Others are carried along."""
_ROLES = {"system": "system", "message": "user", "tool_call": "assistant", "tool_output": "tool"}
_OTHERS = {"role", "additional_kwargs", "response_metadata", "tool_calls", "tool_call_id"}
"""Fields of entries with a `type` that are messages of other formats."""
_MEANT = {
    "user": "kind 'message' with role 'user'",
    "human": "kind 'message' with role 'user'",
    "usermessage": "kind 'message' with role 'user'",
    "assistant": "kind 'message' with role 'assistant'",
    "ai": "kind 'message' with role 'assistant'",
    "assistantmessage": "kind 'message' with role 'assistant'",
    "developer": "kind 'system'",
    "systemprompt": "kind 'system'",
    "systemmessage": "kind 'system'",
    "tool": "kind 'tool_output'",
    "toolresult": "kind 'tool_output'",
    "toolmessage": "kind 'tool_output'",
    **{kind.replace("_", ""): f"kind '{kind}'" for kind in KINDS},
}
"""Words that are no kind, without case and signs, and what was meant. Read as unknown kinds they would lose their rank."""


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    if not isinstance(item.get("content"), str):
        return 0
    if isinstance(item.get("kind"), str):
        return 2
    kind = item.get("type")
    if not isinstance(kind, str) or kind in LANGCHAIN_TYPES or item.keys() & _OTHERS:
        return 0
    if kind in KINDS:
        return 2
    # Another type is an artifact only beside artifacts, and lines of a log have fields that an artifact does not have.
    return 1 if item.keys() <= set(FIELDS) and not _meant(kind) else 0


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = plain(item)
    kind = kind_of(data)
    content = data.get("content")
    if not isinstance(content, str):
        raise ValueError(f"its 'content' is {type(content).__name__}, not text")
    role = data.get("role")
    if not isinstance(role, str):
        role = _ROLES.get(kind, kind)
    # A task is an instruction for the whole session, whatever its role.
    found = marks(data) | ({"protected": True} if kind == "task" else {})
    return Message(role, (Text(content),), origin=item, **found)


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    if message.origin is None:
        data["kind"] = {"system": "system", "tool": "tool_output"}.get(message.role, "message")
        data["role"] = message.role
    data["content"] = join_text(message.parts)


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`. Artifacts are not sent to a provider."""
    return data, []


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else plain(item)
    found: list[Piece] = [data.get("content") or ""]
    if isinstance(data.get("title"), str):
        found.append(data["title"])
    return found


def kind_of(data: Mapping[str, Any]) -> str:
    """The artifact's kind; `type` is accepted instead.

    Raises:
        ValueError: it has none, it is not text, or it is another word for a kind that has a meaning of its own.
    """
    kind = data.get("kind", data.get("type"))
    if kind is not None and not isinstance(kind, str):
        raise ValueError(f"its 'kind' is {type(kind).__name__}, not text")
    if not kind:
        raise ValueError("it has no 'kind'")
    if kind not in KINDS and (meant := _meant(kind)):
        raise ValueError(f"its 'kind' is {kind!r}; write {meant}")
    return kind


def _meant(kind: str) -> str | None:
    return _MEANT.get("".join(filter(str.isalpha, kind)).lower())
