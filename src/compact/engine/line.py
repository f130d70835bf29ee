"""The line: what happens to a session's messages before each model call. One generator, no I/O of its own.

resolve   the host's list, seen through what the last step left
arrivals  sanitize, limit turns, repair pairs; a huge result goes to the archive when it is first seen (arrivals.py)
meter     exact tokens
trigger   act now, and why
pass      plan, archive, ladder, check, commit (passes.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.engine.effects import Asking, Emit, Load
from compact.engine.intake import Arrivals
from compact.engine.ladder import Outcome, compact_rows, warn_of_copied_pointers
from compact.engine.limits import Limits as Limits
from compact.engine.limits import fixed_shares, no_room
from compact.engine.plan import Rules, View
from compact.engine.rows import Desk, Row
from compact.engine.spans import Spans
from compact.engine.state import SessionState, Working, recalled, remembered, resolve
from compact.engine.triggers import Decision, decide
from compact.errors import ArchiveError
from compact.events import (
    Breakdown,
    Failure,
    Finished,
    PassOutcome,
    PolicyInForce,
    Started,
    TokenEstimate,
    TriggerDecision,
    Warned,
)
from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.hygiene.verified import Verified
from compact.tokens import Estimate, Meter

_MAX_RACES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The part of the configuration that the line needs, already checked."""

    keep_turns: int
    keep_pairs: int
    never_prune: frozenset[str]
    layout: str
    retention_window: int
    max_turns: int | None
    strategy: str
    summary_tokens: int
    ineffective_passes: int
    in_force: PolicyInForce


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a host."""

    messages: Sequence[Any]
    given: Any = None
    """The host's own list, if `messages` is a copy of it."""
    tools: Any = None
    system: Any = None
    dialect: str | None = None
    manual: bool = False
    note: str | None = None
    fit: int | None = None
    """The result may take so many tokens at most, whatever the window; None: as the limits say."""
    without_model: bool = False
    """Whether summaries must be made without a model."""
    races: int = 0
    """How often another worker was faster."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the host gets, and what is remembered."""

    messages: Any
    state: SessionState
    estimate: Estimate
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What a pass works on: if it does not end in time, this is what the host gets, unless it is too large."""

    before: Result
    rows: list[Row]
    decision: Decision
    note: str | None
    started: float
    fits: bool
    """Whether the messages fit the budget as they are."""


@dataclass(slots=True)
class Line:
    """The line of one session with its parts. Everything it needs from outside it asks for."""

    meter: Meter
    limits: Limits
    policy: Policy
    desk: Callable[[Dialect], Desk]
    verified: Verified
    moved: dict[int, tuple[Any, Any]]
    """Results that went to the archive, by their place in the host's list, and what stands for them."""
    now: Callable[[], float]
    """Seconds, for durations."""
    spans: Spans
    under_way: UnderWay | None = None
    """The pass that was begun; None before there is one."""

    def run(self, call: Call, state: SessionState) -> Asking[Result]:
        """The whole line, its events in their places.

        Raises:
            MessageError: an entry is not a message.
            InsufficientBudget: what must stay is larger than the budget.
            ArchiveError: the context does not fit, and the archive does not take what would have to leave it.
        """
        return self.spans.around(self._line(call, state))

    def _line(self, call: Call, state: SessionState) -> Asking[Result]:
        dialects.require_list(call.messages)
        if call.fit is not None:
            self.limits = self.limits.fitting(call.fit)
        known, (working, state) = state, (yield from self._resolved(call, state))
        arrivals = Arrivals(self.meter, self.desk, self.verified, self.moved, self.policy.max_turns)
        seen, dialect = arrivals.dialect(call.dialect, working.items)
        working = yield from arrivals.cleaned(working, dialect, seen)
        working = yield from arrivals.offloaded(working, dialect, seen)
        estimate = self.meter.estimate(
            working.items, call.tools, system=call.system, dialect=dialect, max_tokens=self.limits.window
        )
        yield Emit(_estimated(estimate))
        yield from self._require_room(working, dialect, estimate)
        decision = self._decide(call, state, working, dialect, estimate)
        if not decision.triggered:
            yield Emit(self._not_now(decision, call))
            return Result(self._given(call, working), state, estimate)
        at_hand = state is known and state.asked
        return (yield from self._pass(call, state, working, dialect, estimate, decision, at_hand))

    # --- before the trigger

    def _resolved(self, call: Call, state: SessionState) -> Asking[tuple[Working, SessionState]]:
        """The context, and the state that it continues: the one at hand, the archive's, or none."""
        working = resolve(state, call.messages) if state.asked else None
        if working is not None:
            return working, state
        try:
            loaded = yield Load()
        except ArchiveError as problem:
            # Without the archive nothing can be compacted; counting goes on, and a session that fits is not held up.
            yield Emit(Failure.of(problem, "none"))
            return Working(call.messages, range(len(call.messages))), state
        if loaded is None:
            return Working(call.messages, range(len(call.messages))), SessionState(asked=True)
        found = recalled(loaded, call.messages)
        if found is not None:
            working = resolve(found, call.messages)
            assert working is not None
            return working, found
        reset = SessionState(step=loaded.step, asked=True)
        if state != reset:  # told once, not at every call until the next step
            message = f"the list does not continue what step {loaded.step} left: history was edited, branched or rewound"
            yield Emit(Warned(code="state_reset", severity="low", message=message))
        return Working(call.messages, range(len(call.messages))), reset

    def _require_room(self, working: Working, dialect: Dialect, estimate: Estimate) -> Asking[None]:
        """Refuses a request whose fixed part fits, but leaves nothing to work in. One that does not fit fails its pass."""
        limits = self.limits
        if not limits.least_room or estimate.total <= limits.budget - limits.least_room:
            return  # all of it leaves enough
        shares = fixed_shares(estimate, working.items, dialect, self.meter, self.policy.never_prune)
        if 0 <= limits.budget - sum(shares.values()) < limits.least_room:
            problem = no_room(shares, limits)
            yield Emit(Failure.of(problem, "none"), is_last=True)
            raise problem

    def _decide(
        self, call: Call, state: SessionState, working: Working, dialect: Dialect, estimate: Estimate
    ) -> Decision:
        if call.manual:
            return Decision(True, "manual")
        thresholds = self.limits.thresholds
        turns = 0
        if thresholds.turns is not None:
            turns = sum(dialect.read(item).starts_turn for item in working.items)
        decision = decide(thresholds, tokens=estimate.total, messages=len(working.items), turns=turns)
        if not decision.triggered or decision.reason == "budget" or not state.tokens_after:
            return decision
        # A pass that left the session above its threshold would be tried again on every call.
        waiting = state.ineffective >= self.policy.ineffective_passes or state.tokens_after >= min(
            thresholds.window_share, thresholds.tokens or thresholds.window_share
        )
        if decision.reason in ("message_threshold", "turn_threshold"):
            # What is kept alone may exceed a count: then it is the size that has to grow.
            waiting = waiting or len(state.standing or ()) >= (thresholds.messages or len(working.items))
        above = self.limits.summarize_above
        if above is not None and state.tokens_after < above <= estimate.total:
            return decision  # what was out of reach below this size may help now
        grown = estimate.total - state.tokens_after
        if grown <= 0 or (waiting and grown < self.limits.regrow):
            return Decision(False, "ineffective")
        return decision

    def _not_now(self, decision: Decision, call: Call) -> TriggerDecision:
        return TriggerDecision(
            triggered=False, reason=decision.reason, note=call.note, policy=self.policy.in_force
        )

    def _given(self, call: Call, working: Working) -> Any:
        """The host's own list, when its messages are the context as they are."""
        return call.messages if working.items is call.messages else list(working.items)

    # --- the pass

    def _pass(
        self,
        call: Call,
        state: SessionState,
        working: Working,
        dialect: Dialect,
        estimate: Estimate,
        decision: Decision,
        at_hand: bool,
    ) -> Asking[Result]:
        started = self.now()
        yield Emit(Started(reason=decision.reason, note=call.note))
        desk = self.desk(dialect)
        rules = self._rules(call, estimate, decision)
        view = View(dialect, self.policy.never_prune, state.summaries)
        rows = [
            Row(dialect.read(item), self.meter.count_item(item, dialect), source)
            for item, source in zip(working.items, working.sources, strict=True)
        ]
        before = Result(self._given(call, working), state, estimate)
        fits = estimate.total <= self.limits.budget
        self.under_way = UnderWay(before, rows, decision, call.note, started, fits)
        yield from warn_of_copied_pointers(rows[len(state.standing or ()) :])

        def remember(
            after: Sequence[Row], summaries: frozenset[str]
        ) -> tuple[dict[str, Any], dict[str, str]]:
            items = [dialect.write(row.message) for row in after]
            size = self._total(items, dialect, call, estimate)
            return remembered(
                call.messages, after, items, summaries, size, self._ineffective(state, estimate, size)
            )

        try:
            if at_hand and (yield from self._overtaken(state)):
                outcome = Outcome(rows, estimate.total, estimate.total, overtaken=True)
            else:
                outcome = yield from compact_rows(rows, desk, rules, view, remember, state.step)
        except ArchiveError as problem:
            yield Emit(Failure.of(problem, "snapshot"))
            yield Emit(self._finished(call, decision, "failed", started, estimate.total, estimate.total))
            if not fits:
                raise
            return before
        except Exception as problem:
            yield Emit(Failure.of(problem, "none"))
            yield Emit(self._finished(call, decision, "failed", started, estimate.total, estimate.total))
            raise
        result = yield from self._concluded(call, state, working, dialect, estimate, outcome)
        after = result.state.tokens_after if outcome.step is not None else estimate.total
        ended: PassOutcome = "unchanged" if outcome.step is None else "compacted"
        if outcome.lost_race or outcome.overtaken:
            ended = "adopted"
        yield Emit(self._finished(call, decision, ended, started, estimate.total, after))
        return result

    def _overtaken(self, state: SessionState) -> Asking[bool]:
        """Whether another worker made steps since this state was at hand: the pass, and its summary, would be in vain."""
        newest = yield Load()
        return newest is not None and newest.step > state.step

    def _finished(
        self, call: Call, decision: Decision, outcome: PassOutcome, started: float, before: int, after: int
    ) -> Finished:
        return Finished(
            reason=decision.reason,
            note=call.note,
            outcome=outcome,
            duration_ms=round((self.now() - started) * 1000, 3),
            tokens_before=before,
            tokens_after=after,
        )

    def _concluded(
        self,
        call: Call,
        state: SessionState,
        working: Working,
        dialect: Dialect,
        estimate: Estimate,
        outcome: Outcome,
    ) -> Asking[Result]:
        if outcome.lost_race or outcome.overtaken:
            # The winner's state is the session's now; seen through it, the list is mostly compacted already.
            if call.races >= _MAX_RACES:
                if estimate.total <= self.limits.budget:
                    return Result(self._given(call, working), state, estimate)
                raise ArchiveError(f"other workers were faster {call.races + 1} times", reason="taken")
            # Who asked for a compaction while another one was made has got it; a step of long ago is no answer.
            manual = call.manual and outcome.overtaken
            return (yield from self._line(replace(call, manual=manual, races=call.races + 1), SessionState()))
        if outcome.step is None:
            stuck = replace(state, tokens_after=estimate.total, ineffective=self.policy.ineffective_passes)
            yield from self._warn_ineffective(state, estimate, estimate.total)
            return Result(self._given(call, working), stuck, estimate, outcome)
        items = [dialect.write(row.message) for row in outcome.rows]
        size = self._total(items, dialect, call, estimate)
        ineffective = self._ineffective(state, estimate, size)
        after = SessionState(
            step=outcome.step,
            asked=True,
            replaced=list(call.messages),
            standing=items,
            sources=[row.source for row in outcome.rows],
            summaries=outcome.summaries,
            tokens_after=size,
            ineffective=ineffective,
        )
        if ineffective:
            yield from self._warn_ineffective(after, estimate, size)
        return Result(list(items), after, estimate, outcome)

    def _total(self, items: Sequence[Any], dialect: Dialect, call: Call, estimate: Estimate) -> int:
        messages = self.meter.estimate(items, dialect=dialect, max_tokens=self.limits.window)
        return messages.total + self._fixed(call, estimate)

    def _fixed(self, call: Call, estimate: Estimate) -> int:
        """Tokens of what is sent beside the messages: the tools, and a system prompt outside the list."""
        if not call.system:
            return estimate.tools_schema
        prompt = self.meter.estimate([], system=call.system, max_tokens=self.limits.window)
        return estimate.tools_schema + prompt.total

    def _ineffective(self, state: SessionState, estimate: Estimate, after: int) -> int:
        helped = estimate.total - after >= estimate.total // 10
        return 0 if helped else state.ineffective + 1

    def _warn_ineffective(self, state: SessionState, estimate: Estimate, floor: int) -> Asking[None]:
        if state.ineffective == self.policy.ineffective_passes or not state.step:
            message = (
                f"compaction no longer helps: {floor:,} of {self.limits.window:,} tokens cannot be reduced "
                f"(it was {estimate.total:,}); it waits until the session has grown by {self.limits.regrow:,} tokens"
            )
            yield Emit(Warned(code="ineffective", severity="medium", message=message))

    def _rules(self, call: Call, estimate: Estimate, decision: Decision) -> Rules:
        policy, limits = self.policy, self.limits
        fixed = self._fixed(call, estimate)
        by_count = decision.reason in ("message_threshold", "turn_threshold")
        return Rules(
            limit=self._raw(limits.budget - fixed),
            fixed=fixed,
            goal=self._raw(min(limits.goal, limits.budget) - fixed),
            summarize_above=0
            if limits.summarize_above is None
            else self._raw(limits.summarize_above - fixed),
            fold_all=call.manual or by_count,
            keep_turns=policy.keep_turns,
            keep_pairs=policy.keep_pairs,
            never_prune=policy.never_prune,
            layout=policy.layout,
            retention_window=policy.retention_window,
            recent_tokens=None if limits.recent_tokens is None else self._raw(limits.recent_tokens),
            strategy=policy.strategy,
            summary_tokens=policy.summary_tokens,
            reason=decision.reason,
            note=call.note,
            policy=policy.in_force,
        )

    def _raw(self, tokens: int) -> int:
        """Raw tokens of messages that cost at most this many, reply and rounding of the shares included."""
        return max(0, int((tokens - 4) / self.meter.factor))


def _estimated(estimate: Estimate) -> TokenEstimate:
    return TokenEstimate(
        model=estimate.model,
        t_est=estimate.total,
        max_tokens=estimate.max_tokens,
        usage_pct=round(estimate.usage_pct, 6),
        breakdown=Breakdown(
            system=estimate.system,
            developer=estimate.developer,
            tools_schema=estimate.tools_schema,
            messages=estimate.messages,
        ),
    )
