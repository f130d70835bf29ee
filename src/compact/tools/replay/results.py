"""What a replay found, as plain data: a session, and one run of it under each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars: without a prompt cache, and with one that serves an unchanged prefix as long as it lives."""

    plain: float
    cached: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One compaction."""

    call: int
    """The model call that it was made for, counted from 0."""
    number: int
    reason: str
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    saved: Mapping[str, int]
    """Tokens, by stage."""
    needed: int
    """Identifiers that the agent writes later and that the newest messages alone would not have kept."""
    kept: int
    """How many of them are in what is sent, with their meaning."""

    @property
    def saved_by(self) -> str:
        """What each stage saved, in words."""
        return ", ".join(f"{stage} {tokens:,}" for stage, tokens in self.saved.items())


@dataclass(frozen=True, slots=True)
class Outlined:
    """One message of a request: its role, its size, and its first words, masked."""

    role: str
    tokens: int
    begins: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A session played under one policy."""

    policy: str
    window: int
    budget: int
    sent: Sequence[int]
    """Tokens of each request."""
    reused: Sequence[int]
    """Of these, the prefix that is unchanged since the request before: what a prompt cache can serve."""
    steps: Sequence[Step]
    illegal: Sequence[str]
    """Every reason for a provider to refuse a request, with the number of the call."""
    over_budget: Sequence[int]
    """Calls whose request costs more than the budget."""
    control: Sequence[str]
    """Every change of the system prompt in what is sent, with the number of the call."""
    over_window_without: int
    """Requests among `Played.compared` that would not have fit the window without compaction."""
    cost: Cost | None
    """Of the calls that are compared."""
    stopped_at: int | None = None
    """The call that failed, counted from 0; None if the session was played to its end."""
    error: str | None = None
    """Why the replay stopped early, and at which call."""
    summary: str | None = None
    """The newest summary in the context."""
    outline: Sequence[Outlined] = field(default_factory=list)
    """The last request, message by message."""
    requests: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """The request after each change of the context, and the last one, if they were asked for."""

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """Everything that went wrong, a sentence each. Calls are counted from 1, as in the tables."""
        over = [f"call {call + 1}: over the budget of {self.budget:,}" for call in self.over_budget]
        return [*self.illegal, *self.control, *over, *([self.error] if self.error else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One session, without compaction and under each policy."""

    file: str
    session: str
    dialect: str
    model: str
    messages: int
    calls: Sequence[int] = ()
    """Where the model was called: the number of messages before each reply."""
    without: Sequence[int] = ()
    """Tokens of each request without compaction."""
    reused_without: Sequence[int] = ()
    compared: int = 0
    """How many calls, from the first on, every policy finished. Sums, shares and costs count these and no others."""
    output_tokens: int = 0
    """What the model wrote in the calls that are compared."""
    cost_without: Cost | None = None
    """Of the calls that are compared."""
    runs: Sequence[Run] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Entries of the file that are not part of the conversation: how many by kind."""
    error: str | None = None
    """Why the session could not be played at all."""

    @property
    def problems(self) -> list[str]:
        """Everything that went wrong under any policy, a sentence each."""
        found = [f"{run.policy}: {problem}" for run in self.runs for problem in run.problems]
        return [self.error, *found] if self.error else found
