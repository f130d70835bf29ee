"""What a replay found out, as plain data: a session, and one run of it under each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars: without a prompt cache, and with one that serves every unchanged beginning."""

    plain: float
    cached: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One compaction."""

    call: int
    """The model call it was made for, from 0 on."""
    number: int
    reason: str
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    saved: Mapping[str, int]
    """Tokens, by stage."""
    needed: int
    """Identifiers that the agent writes later, and that the newest messages alone would not have kept."""
    kept: int
    """How many of them stand in what is sent, with their meaning."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """One message of a request: who, how much, and its first words, masked."""

    role: str
    tokens: int
    begins: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A session under one policy, as the host would have lived it."""

    policy: str
    window: int
    budget: int
    sent: Sequence[int]
    """Tokens of each request."""
    reused: Sequence[int]
    """Of them, those at the beginning that are unchanged since the request before: what a prompt cache can serve."""
    steps: Sequence[Step]
    illegal: Sequence[str]
    """Every reason why a provider would have refused a request; with the number of the call."""
    over_budget: Sequence[int]
    """Calls whose request costs more than the budget."""
    control: Sequence[str]
    """Every change of the system prompt in what is sent, call by call."""
    over_window_without: int
    """Requests that would not have fitted the window without compaction."""
    cost: Cost | None
    error: str | None = None
    """Why the replay ended early, and at which call."""
    summary: str | None = None
    """The newest summary in the context."""
    outline: Sequence[Outlined] = field(default_factory=list)
    """The last request, message by message."""
    requests: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """The requests after a change of the context and the last one, if they were asked for."""

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.illegal or self.over_budget or self.control or self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One session, without compaction and under each policy."""

    file: str
    session: str
    dialect: str
    model: str
    messages: int
    calls: Sequence[int]
    """Where the model was called: the number of messages before each reply."""
    without: Sequence[int]
    """Tokens of each request without compaction."""
    reused_without: Sequence[int]
    output_tokens: int
    cost_without: Cost | None
    runs: Sequence[Run]
    error: str | None = None
    """Why it could not be played at all."""
