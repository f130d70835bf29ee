"""Passes that nobody waits for. One begins in a call that returns at once, and is swapped in by a later call.

    begin     the call decides and plans, and returns; the archive and the ladder follow behind it. That changes nothing
    swap      ledger, check and commit: what was prepared replaces what it was made from, and what arrived meanwhile follows

What was prepared is a value, and its attempt has ended. So whatever happens before the swap leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from compact.engine.call import Call, Result, Seen, decide_call, end_event
from compact.engine.context import Context
from compact.engine.economy import Weighed
from compact.engine.effects import Asking, Collect, Emit
from compact.engine.limits import Decision, Rules
from compact.engine.outcome import Outcome
from compact.engine.state import continues
from compact.errors import ArchiveError, CompactError, InsufficientBudget
from compact.events import Economics, Failure, PassOutcome, Started, TriggerDecision

if TYPE_CHECKING:
    from compact.engine.ladder import Pass, Reduced
    from compact.engine.line import Line

STARTED: Final = "background_started"
SWAPPED: Final = "background_swapped"


@dataclass(frozen=True, slots=True)
class Background:
    """What a call may do with passes in the background."""

    may_start: bool = False
    """Whether it may begin one."""
    above: int = 0
    """The size at which an earlier one came to nothing. The next one begins when the session has grown."""
    is_running: bool = False
    """Whether one of its session is being made."""
    is_ready: bool = False
    """Whether one of its session waits for its swap."""

    def covers(self, call: Call, tokens: int, rules: Rules) -> bool:
        """Whether a pass that is due in this call is made in the background: one that asks a model, in a request that fits."""
        if rules.background is None or not (self.may_start or self.is_running) or not _is_plain(call):
            return False
        asks = rules.summarize_above is None or tokens > rules.summarize_above
        return asks and rules.background <= tokens <= rules.budget

    def is_worth(self, tokens: int, rules: Rules) -> bool:
        """Whether the session has grown since a pass came to nothing."""
        return not self.above or tokens >= self.above + rules.regrow

    def is_wanted(self, call: Call, tokens: int, rules: Rules) -> bool:
        """Whether this call takes what was prepared, or waits for it. A call that fits does not wait."""
        return _is_plain(call) and (self.is_ready or (self.is_running and tokens > rules.budget))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPass:
    """What a pass in the background has made of a session."""

    items: Sequence[object]
    """The context that it was made from."""
    count: int
    """The length of the host's list then."""
    step: int
    """The step that this context stands on."""
    dialect: str
    model: str
    tokens: int
    """Of the whole request then."""
    duration_ms: float
    reduced: Reduced | None
    """What the stages made. None: another worker had made newer steps."""


def decide_aside(seen: Seen, rules: Rules, may: Background, *, is_first: bool) -> Decision:
    """Return whether a pass is due in a call that need not wait for one that asks a model.

    A session whose first call is at its trigger has no later call to rely on, so its pass is made in that call.
    """
    tokens = seen.estimate.total
    if not may.covers(seen.call, tokens, rules):
        return decide_call(seen, rules)
    if may.is_running:
        return replace(decide_call(seen, rules), triggered=False)
    decision = decide_call(seen, replace(rules, trigger=rules.background or rules.trigger))
    if not decision.triggered or (tokens >= rules.trigger and is_first):
        return decision
    if not may.is_worth(tokens, rules):
        return Decision(False, "ineffective")
    return Decision(True, STARTED, due=decision.reason)


def begin(
    line: Line, seen: Seen, decision: Decision, economics: Economics | None
) -> Asking[Asking[PreparedPass | None]]:
    """Plan a pass and return what is left to do, for which the call does not wait."""
    began = line.now()
    yield Emit(Started(reason=STARTED, note=None))
    rows, desk = yield from line.read(seen, known=len(seen.state.standing or ()))
    work = line.make_pass(seen, decision, rows, desk, weighed=Weighed(economics))
    context = work.begin()
    yield Emit(work.plan(context))
    return _prepare(line, seen, work, context, began)


def _prepare(
    line: Line, seen: Seen, work: Pass, context: Context, began: float
) -> Asking[PreparedPass | None]:
    """Make a pass up to its ledger, check and commit. None: it failed, which its events tell."""
    tokens = seen.estimate.total
    reduced = None
    try:
        if not (seen.at_hand and (yield from line.is_overtaken(seen.state))):
            reduced = yield from work.reduce(context)
    except Exception as problem:
        yield Emit(Failure.of(problem, "snapshot"))
        yield end_event(STARTED, None, line.elapsed_ms(began), "failed", tokens, tokens)
        return None
    return PreparedPass(
        items=seen.working.items,
        count=len(seen.call.messages),
        step=seen.state.step,
        dialect=seen.dialect.NAME,
        model=line.meter.model,
        tokens=tokens,
        duration_ms=line.elapsed_ms(began),
        reduced=reduced,
    )


def swap(line: Line, seen: Seen, may: Background) -> Asking[Result | None]:
    """Swap in what was prepared. None: nothing came of it, and the call goes on without it."""
    made: PreparedPass | None = yield Collect()
    if made is None:
        return None
    line.background = replace(may, is_running=False, is_ready=False, above=made.tokens)
    began, before = line.now(), seen.estimate.total

    def finished(outcome: PassOutcome, after: int, why: str = "") -> Emit:
        duration_ms = round(made.duration_ms + line.elapsed_ms(began), 3)
        return end_event(STARTED, None, duration_ms, outcome, before, after, why)

    why = _why_outgrown(line, seen, made)
    if why:
        yield finished("dropped", before, why)
        return None
    rows, desk = yield from line.read(seen, known=len(made.items))
    decision = Decision(True, SWAPPED)
    work = line.make_pass(seen, decision, rows, desk, made_from=made.count)
    line.begin_pass(seen, rows, decision, began)
    try:
        is_overtaken = made.reduced is None or (seen.at_hand and (yield from line.is_overtaken(seen.state)))
        if is_overtaken or made.reduced is None:
            outcome = Outcome(rows, before, before, overtaken=True)
        else:
            outcome = yield from work.conclude((yield from work.take_over(made.reduced)))
    except InsufficientBudget:
        yield finished("dropped", before, "with what arrived meanwhile it does not fit the budget")
        return None
    except (ArchiveError, CompactError) as problem:
        yield Emit(Failure.of(problem, "snapshot"))
        yield finished("failed", before)
        return None
    if outcome.lost_race or outcome.overtaken:
        yield finished("dropped", before, "another worker was faster")
        return (yield from line.adopt(seen, outcome))
    if outcome.step is None:
        result = yield from line.give_up(seen, outcome, decision)
        yield finished("unchanged", before)
        return None if before > line.rules.budget else (yield from _decline(line, result))
    result = yield from line.conclude(seen, outcome, decision)
    yield finished("compacted", result.state.tokens_after)
    yield Emit(work.plan(work.begin()))
    return result


def _decline(line: Line, result: Result) -> Asking[Result]:
    """Return a result that is the list as it was, and say why."""
    yield Emit(TriggerDecision(triggered=False, reason="ineffective", note=None, policy=line.rules.in_force))
    return result


def _is_plain(call: Call) -> bool:
    """Whether a call asks for nothing but a list that fits."""
    return not (call.manual or call.reversible or call.without_model or call.fit is not None)


def _why_outgrown(line: Line, seen: Seen, made: PreparedPass) -> str:
    """Why the session is not the one any more that a pass was made for; empty if it is."""
    if seen.state.step != made.step:
        return "another pass came first"
    if line.meter.model != made.model:
        return "another model is asked"
    if made.dialect != seen.dialect.NAME or not continues(seen.working.items, made.items):
        return "the list was edited, branched or rewound"
    return ""
