"""The request to a summarizer, and its reply."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from compact.messages import Message

LEAST_ASKED = 64
"""Tokens. No model is asked for a shorter summary, because nothing useful fits."""
_UNVERSIONED = re.compile(r"\[m(\d+)\]")


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request to summarize these messages in at most `max_tokens` tokens. The answer is a `Reply` or a string."""

    messages: Sequence[Message]
    dialect: str
    strategy: str
    max_tokens: int
    previous: str = ""
    """The previous summary, whose facts must not be lost."""
    positions: tuple[int, int] = (0, 0)
    """The indexes of the first and the last message in the archived transcript."""
    numbers: tuple[int, ...] = ()
    """The number of each message there, from 1. They may have gaps, where messages are kept."""
    previous_step: int = 0
    """The step of the previous summary, to whose transcript its citations refer."""
    instructions: tuple[str, ...] = ()
    """What the user said before these messages, in their words. Code carries it over; a summary may refer to it."""
    withdrawn: tuple[str, ...] = ()
    """What the user said and later changed or took back. The record does not quote it."""
    around: tuple[str, ...] = ()
    """What people say in the rest of the context. It stays there; a summary may refer to it."""
    pointers: frozenset[str] = frozenset()
    """Hashes (`text_hash`) of the tool results and arguments in them that are pointers of compact's. Others only look like it."""
    record_tokens: int = 0
    """Tokens for the record: lines of the messages that code chooses and puts beside the summary."""
    kept: Sequence[Message] = ()
    """The messages that stay in the context behind these. What they say need not be said again."""
    values: Mapping[str, float] | None = field(default=None, repr=False, compare=False)
    """How likely each word of the session is to be needed again (`needs.weigh`). None: it has to be worked out."""
    source: Literal["configured", "extractive", "record", "native"] = "configured"
    """Who is asked: the summarizer that the host chose, the one that needs no model, nobody for more than the record, or the
    agent's own provider."""
    items: Sequence[Any] = field(default=(), repr=False, compare=False)
    """The messages in the host's form, as the model saw them. Only the provider gets these."""

    @property
    def numbered(self) -> tuple[int, ...]:
        """A number for each message: `numbers`, or 1, 2, 3 ..."""
        return self.numbers or tuple(range(1, len(self.messages) + 1))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a summarizer wrote, and how it came about."""

    text: str
    by_model: bool = False
    """Whether a model wrote it. Then a few words, or a copy of the input, are not taken for a summary."""
    cut_off: bool = False
    """The model was stopped at its token limit."""
    refused: bool = False
    trusted: bool = False
    """Code took every line from the input, so there is nothing to check."""
    items: tuple[Mapping[str, Any], ...] = ()
    """What the provider's own compaction put in place of the messages, in their dialect."""


def cite_step(summary: str, step: int) -> str:
    """The text with `[m12]` as `[v3 m12]`, so that it can stand in a summary of another step."""
    return _UNVERSIONED.sub(rf"[v{step} m\1]", summary)


Summarizer: TypeAlias = Callable[[SummaryRequest], str | Reply | Awaitable[str | Reply]]
"""Writes a summary. It gets masked messages, and its answer is verified and masked."""
