"""One call of a host: what it asks, what its intake saw, the pass that it began, and what the host gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.engine.context import Row
from compact.engine.effects import Asking
from compact.engine.intake import Working
from compact.engine.limits import Decision
from compact.engine.outcome import Outcome
from compact.engine.state import SessionState
from compact.messages.dialects import Dialect
from compact.tokens import Estimate

if TYPE_CHECKING:
    from compact.engine.background import PreparedPass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a host."""

    messages: list[Any]
    """A copy of the host's list. The host may go on writing to its own."""
    given: Any
    """The host's own list."""
    tools: Any = None
    system: Any = None
    dialect: str | None = None
    manual: bool = False
    note: str | None = None
    fit: int | None = None
    """The most tokens that the result may take. None: as the rules say."""
    reversible: bool = False
    """Whether only the reversible stages may run, however large the rest is."""
    without_model: bool = False
    """Whether summaries must be made without a model."""
    races: int = 0
    """How often another worker was faster."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the host gets, and what the session remembers."""

    messages: Any
    state: SessionState
    estimate: Estimate
    outcome: Outcome | None = None
    ours: int = 0
    """What the messages and all beside them take by our own count."""
    background: Asking[PreparedPass | None] | None = None
    """A pass that begins now, and that the host does not wait for."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What a pass works on. If it does not end in time, the host gets `before`, unless that is too large."""

    before: Result
    rows: list[Row]
    decision: Decision
    note: str | None
    started: float
    fits: bool
    """Whether the messages fit the budget as they are."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A call after its intake: the context that it stands for, in its dialect, and what it costs."""

    call: Call
    state: SessionState
    given: Sequence[Any]
    """The context before repairs and offloads: the host's own messages."""
    working: Working
    dialect: Dialect
    estimate: Estimate
    ours: int
    """The total by our own count, before it was corrected by what the provider counted."""
    at_hand: bool
    """Whether the state was in memory, so that the archive may know of newer steps."""
