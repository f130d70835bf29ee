"""What the stages work on: rows of messages with their cost, and the desk that counts and masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from compact.messages import Message, Text, ToolResult
from compact.messages.dialects import Dialect
from compact.messages.markers import is_pointer

Level: TypeAlias = Literal["whole", "offloaded", "shrunk", "cut", "summary", "marker"]
"""How much of a message still stands in the context."""


@dataclass(frozen=True, slots=True)
class Row:
    """One message of the context, what it costs, and where it came from."""

    message: Message
    tokens: int
    source: int | None
    """Its place in the list that the host gave, as long as it is the host's own object."""
    level: Level = "whole"
    masked: Message | None = field(default=None, compare=False, repr=False)
    """The message without secrets, where that is another one: what a summarizer may see."""

    @property
    def quotable(self) -> Message:
        """What may be quoted in a summary."""
        return self.message if self.masked is None else self.masked


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a stage works with: how to count, how to mask, and the numbers of the configuration."""

    dialect: Dialect
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    scale: Callable[[int], int]
    """Raw tokens in the model's own, for what people are told."""
    redact: Callable[[str], str]
    """Everything that compact itself writes into a context is masked, so that it is the same after a restart."""
    rewrite: Callable[[Message], Message]
    """The message as it will stand in the host's list: masked, written, and read again."""
    large_result_tokens: int
    preview_lines: int
    preview_tokens: int
    write_tools: frozenset[str]
    excerpt_share: float
    """How much of an old text may stay beside its pointer."""
    fallback: Literal["extractive", "pruning-only"] = "extractive"
    """What stands in for a summary that failed."""

    def row(self, message: Message, level: Level) -> Row:
        """The row of a message that was changed."""
        written = message if _is_ours(message) else self.rewrite(message)
        return Row(written, self.count(written), None, level)


def _is_ours(message: Message) -> bool:
    """Whether compact wrote all of it: a result that is nothing but a pointer is masked already."""
    if len(message.parts) != 1 or not isinstance(message.parts[0], ToolResult):
        return False
    content = message.parts[0].content
    return len(content) == 1 and isinstance(content[0], Text) and is_pointer(content[0].text)


def total(rows: Sequence[Row]) -> int:
    """Raw tokens of all rows."""
    return sum(row.tokens for row in rows)


def with_result_text(message: Message, place: int, text: str) -> Message:
    """A copy in which the result at `place` says `text`; its pictures stay."""
    parts = list(message.parts)
    result = parts[place]
    assert isinstance(result, ToolResult)
    others = tuple(part for part in result.content if not isinstance(part, Text))
    parts[place] = replace(result, content=(Text(text), *others))
    return message.with_parts(tuple(parts))


def tool_names(rows: Sequence[Row]) -> dict[str, str]:
    """The tool of every call id."""
    return {call.id: call.name for row in rows for call in row.message.calls}
