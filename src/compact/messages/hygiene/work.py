"""What the steps of hygiene share: the record of what they took out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages.dialects import Dialect
from compact.messages.legality import has_content
from compact.messages.message import Message, Reasoning


@dataclass(frozen=True, slots=True)
class Removed:
    """A message that was taken out, or changed, and why. `message` is the host's own object, before."""

    message: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The list, and what it lost on the way."""

    messages: Any
    removed: tuple[Removed, ...]


def settled(items: Sequence[Any], before: list[Message], after: list[Message], dialect: Dialect) -> Any:
    """The host's list itself, if no message in it changed; else a new one with the same objects where they are."""
    if len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True)):
        return items
    return [dialect.write(message) for message in after]


def without_loose_ends(message: Message, dialect: Dialect) -> Message | None:
    """A message from which parts were taken, with what cannot stand alone taken too; None when nothing is left.

    Thinking is bound to what it led to: at the end of a message it has lost that.
    """
    parts = message.parts
    while dialect.NAME == "anthropic" and parts and isinstance(parts[-1], Reasoning):
        parts = parts[:-1]
    trimmed = message if parts is message.parts else message.with_parts(parts)
    return trimmed if has_content(trimmed, dialect) else None
