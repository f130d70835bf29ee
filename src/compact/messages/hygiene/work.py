"""What the steps of hygiene share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages.dialects import Dialect
from compact.messages.legality import has_content, loose_end
from compact.messages.message import Message


@dataclass(frozen=True, slots=True)
class Removed:
    """A message that was removed or changed, and why. `message` is the host's object as it was before."""

    message: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The clean list, and what was removed from it."""

    messages: Any
    removed: tuple[Removed, ...]


def write_back(items: Sequence[Any], before: list[Message], after: list[Message], dialect: Dialect) -> Any:
    """Return the host's own list if no message changed, else a new list that shares the unchanged objects."""
    if len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True)):
        return items
    return [dialect.write(message) for message in after]


def without_loose_ends(message: Message, dialect: Dialect) -> Message | None:
    """Remove what cannot stand alone after other parts were removed; None if nothing is left.

    Thinking is bound to what follows it, so it may not end a message.
    """
    loose = loose_end(message, dialect)
    trimmed = message.with_parts(message.parts[: len(message.parts) - loose]) if loose else message
    return trimmed if has_content(trimmed, dialect) else None
