"""What the stages share: the rows they work on, and what they may ask of the outside."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

from compact.dialects import Dialect
from compact.events import Properties, Span, Trace
from compact.markers import is_pointer
from compact.messages import Message, Text, ToolResult

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True)
class Store:
    """Wanted: this text in the archive, durable. The answer is its virtual path."""

    text: str
    tool_name: str
    tool_call_id: str
    trace: Trace | None = None
    """Where what the archive tells of it belongs; set by `compact.spans`."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """Wanted: a summary of these messages, in at most so many tokens. The answer is a `Reply`, or its text alone."""

    messages: Sequence[Message]
    dialect: str
    strategy: str
    max_tokens: int
    previous: str = ""
    """The summary before this one, whose facts must not be lost."""
    positions: tuple[int, int] = (0, 0)
    """Where the first and the last of the messages stand in the archived transcript."""
    numbers: tuple[int, ...] = ()
    """The number of each message there, counted from 1. What is kept may stand between two of them."""
    previous_step: int = 0
    """The step of the summary before this one: its citations are of that step's transcript."""

    @property
    def numbered(self) -> tuple[int, ...]:
        """A number for each message."""
        return self.numbers or tuple(range(1, len(self.messages) + 1))

    source: Literal["configured", "extractive"] = "configured"
    """Who is asked: the summarizer that the host chose, or the one that needs no model."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a summarizer wrote, and what is known of how it came about."""

    text: str
    sections: tuple[str, ...] | None = None
    """The headings that it was asked for; None: the form is the summarizer's own."""
    cut_off: bool = False
    """It was stopped at its token limit."""
    refused: bool = False
    trusted: bool = False
    """Code took every line of it from the input: there is nothing to check."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Wanted: the whole transcript in the archive, durable, as an attempt at the next step. The answer is a `Begun`."""

    items: Sequence[Any]
    dialect: str
    after: int
    """The step whose state the pass works from; 0: none yet."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at a step: its number if it succeeds, and where the readable transcript will lie."""

    step: int
    history_path: str
    masked: Sequence[Any] = ()
    """The transcript without secrets, one for one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Wanted: the step, made whole or not at all. The answer is True, or False when another worker was first."""

    summary: Mapping[str, Any]
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    trace: Trace | None = None
    """As in `Store`."""


@dataclass(frozen=True, slots=True)
class Emit:
    """Something happened that others should see."""

    properties: Properties
    payload: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None
    """Its place among the others; set by `compact.spans`."""
    is_last: bool = False
    """It ends its run, which has no other event for that."""


@dataclass(frozen=True, slots=True)
class Load:
    """Wanted: what was remembered with the session's newest step. The answer is a `Loaded`, or None before the first."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session's state as it lies in the archive."""

    step: int
    state: Mapping[str, Any]
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KeepRemoved:
    """Wanted: messages that hygiene took out, durable in the archive."""

    items: Sequence[Any]
    reasons: Sequence[str]
    trace: Trace | None = None
    """As in `Store`."""


Need: TypeAlias = Store | SummaryRequest | Begin | Commit | Emit | Load | KeepRemoved
Asking: TypeAlias = Generator[Need, Any, T]
"""A piece of work that asks for what it needs and returns a T."""


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
