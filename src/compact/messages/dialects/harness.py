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

_KINDS = frozenset({"system", "task", "message", "tool_output"})
_ROLES = {"system": "system", "message": "user", "tool_output": "tool"}


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    if not isinstance(item.get("content"), str):
        return 0
    if isinstance(item.get("kind"), str):
        return 2
    kind = item.get("type")
    if "role" in item or not isinstance(kind, str) or kind in LANGCHAIN_TYPES or "additional_kwargs" in item:
        return 0
    # Another type is an artifact only beside artifacts.
    return 2 if kind in _KINDS else 1


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
        data["kind"] = next((kind for kind, role in _ROLES.items() if role == message.role), "message")
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
        ValueError: it has none, or it is not text.
    """
    kind = data.get("kind", data.get("type"))
    if kind is not None and not isinstance(kind, str):
        raise ValueError(f"its 'kind' is {type(kind).__name__}, not text")
    if not kind:
        raise ValueError("it has no 'kind'")
    return kind
