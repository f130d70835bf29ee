"""One call of a host: what it asks, what its intake saw, whether a pass is due, the pass that it began, and what the host gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.engine.attachments import REFUSED
from compact.engine.context import Row
from compact.engine.economy import EARLY
from compact.engine.effects import Asking, Emit
from compact.engine.intake import Working
from compact.engine.limits import Decision, Rules, decide
from compact.engine.outcome import Outcome
from compact.engine.state import SessionState
from compact.events import Finished, PassOutcome, Reason
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


def count_ineffective(seen: Seen, decision: Decision, after: int) -> int:
    """Passes in a row that saved too little. One that was not due may save little on purpose."""
    before = seen.estimate.total
    return 0 if before - after >= before // 10 else seen.state.ineffective + is_due(decision)


def is_due(decision: Decision) -> bool:
    """Whether the size of the session decided."""
    return decision is not EARLY and decision is not REFUSED


_BELOW = Decision(False, "below")


def decide_call(seen: Seen, rules: Rules) -> Decision:
    """Return whether a pass is due in this call, by these rules.

    One that could do little is not made again until the session has grown.
    """
    state, tokens, items = seen.state, seen.estimate.total, seen.working.items
    if seen.call.manual:
        return Decision(True, "manual")
    if tokens < rules.trigger and not rules.has_thresholds:
        return _BELOW
    turns = 0
    if rules.turn_threshold is not None:
        turns = sum(seen.dialect.read(item).starts_turn for item in items)
    decision = decide(rules, tokens=tokens, messages=len(items), turns=turns)
    if decision.reason == "budget" and seen.call.fit is not None:
        return Decision(True, "overflow")
    if not decision.triggered or decision.reason == "budget" or not state.tokens_after:
        return decision
    # A pass that left the session above its threshold would be tried again on every call; one that left it just
    # below, in every other call.
    limit = min(rules.trigger, rules.token_threshold or rules.trigger)
    waiting = state.ineffective >= rules.ineffective_passes or state.tokens_after >= limit
    least = 1 if decision.is_by_count else min(rules.regrow, limit // 10)
    if decision.is_by_count:
        # What must be kept may alone exceed a count. Then the size has to grow.
        waiting = waiting or len(state.standing or ()) >= (rules.message_threshold or len(items))
    above = rules.summarize_above
    if above is not None and state.tokens_after < above <= tokens:
        return decision  # what was out of reach below this size may help now
    if tokens - state.tokens_after < (rules.regrow if waiting else least):
        return Decision(False, "ineffective")
    return decision


def end_event(
    reason: Reason,
    note: str | None,
    duration_ms: float,
    outcome: PassOutcome,
    before: int,
    after: int,
    why: str = "",
) -> Emit:
    """The event that ends a pass. `why` it was dropped."""
    event = Finished(
        reason=reason,
        note=note,
        outcome=outcome,
        duration_ms=duration_ms,
        tokens_before=before,
        tokens_after=after,
    )
    return Emit(event, payload={"why": why} if why else {})
