"""What a summarizer is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compact.messages import Message


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
