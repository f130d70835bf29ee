"""The line: what happens to a session's messages before each model call. One generator without I/O.

resolve   the host's list, seen through what the last step left
intake    sanitize, limit turns, repair pairs; a huge result goes to the archive when it is first seen
meter     exact tokens
trigger   act now, and why
pass      archive, ladder, check, commit (`ladder.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from compact.engine.attachments import REFUSED, is_refused, limits_for, may_exceed
from compact.engine.background import STARTED, Background, begin, decide_aside, swap
from compact.engine.call import (
    Call,
    Result,
    Seen,
    UnderWay,
    count_ineffective,
    decide_call,
    end_event,
    is_due,
)
from compact.engine.context import Context, Desk, Row, Stage, Written
from compact.engine.corrections import UNCORRECTED, Correction
from compact.engine.economy import EARLY, NOTHING, Economy, Weighed, weigh
from compact.engine.effects import Asking, Emit, Load
from compact.engine.intake import Intake, Tools, Working, first_new
from compact.engine.limits import Decision, Rules, measure_fixed, no_room
from compact.engine.native import NO_NATIVE, NativeRules, readable_items
from compact.engine.outcome import Outcome
from compact.engine.stages.offload import recognise_pointers, warn_of_copied_pointers
from compact.engine.state import (
    SessionState,
    continues,
    describe_sides,
    describe_state,
    places_in,
    resolve,
    restore_state,
    without_block,
    write_rows,
)
from compact.engine.thinking import KEEP, ThinkingRules, list_bare
from compact.errors import ArchiveError
from compact.events import (
    Breakdown,
    Failure,
    PassOutcome,
    Started,
    TokenEstimate,
    TriggerDecision,
    Warned,
)
from compact.messages.cache_marks import longest_life
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import begins_with
from compact.tokens import Meter
from compact.tokens.models import NO_LIMITS, RequestLimits

if TYPE_CHECKING:
    from compact.engine.ladder import Pass

_MAX_RACES = 3


@dataclass(slots=True, kw_only=True)
class Line:
    """The line of one session with its parts. It asks for everything that it needs from outside."""

    meter: Meter
    rules: Rules
    stages: Sequence[Stage] | None
    """The host's ladder; None: the default one."""
    desk: Callable[[Dialect], Desk]
    intake: Intake
    now: Callable[[], float]
    """Seconds, for durations."""
    written: Written
    """What compact wrote into the session's results and arguments."""
    correct: Callable[[int, int], Correction] | None = None
    """Takes our count of a request and its step, and returns the correction. None: nothing was observed."""
    thinking: ThinkingRules = KEEP
    """What becomes of signed thinking in a pass, and where the model does not read it."""
    native: NativeRules = NO_NATIVE
    """Whether the provider writes summaries, and whose blocks the model reads."""
    request: RequestLimits = NO_LIMITS
    """What the model's provider takes in one request."""
    sent: Sequence[Any] = ()
    """What the session's last call returned."""
    economy: Economy | None = None
    """Weighs what passes cost. None: money decides nothing."""
    called_at: datetime | None = None
    """When the host called, by the wall clock; None: not known, so money decides nothing."""
    moves_arriving: bool = True
    """Whether a huge result goes to the archive when it is first seen."""
    under_way: UnderWay | None = None
    """The pass that was begun; None before there is one."""
    background: Background | None = None
    """What the call may do with passes in the background; None: nothing."""
    correction: Correction = UNCORRECTED
    """What holds for the request at hand."""

    def run(self, call: Call, state: SessionState) -> Asking[Result]:
        """Run the whole line.

        Raises:
            MessageError: an entry is not a message.
            InsufficientBudget: what must stay is larger than the budget.
            ArchiveError: the context does not fit, and the archive does not take what would have to leave it.
        """
        if call.fit is not None:
            self.rules = self.rules.fit(call.fit)
        if call.reversible:
            self.rules = self.rules.without_budget()
        known, (working, state) = state, (yield from self._resolve(call, state))
        if state.readable is not None and not self.native.reads_block(state.dialect):
            working, state = without_block(state, working)
        # If the archive has a newer step, another worker has sent something since.
        tools = Tools(
            self.meter,
            self.desk,
            self.rules.max_turns,
            beside=(call.system, call.tools),
            sent=self.sent if state.step == known.step else (),
            keeps_sent=self.thinking.strip,
            moves_arriving=self.moves_arriving,
        )
        given = working.items
        working, dialect = yield from self.intake.take(working, call.dialect, tools)
        between, asked = self.intake.thinking, self.thinking
        if not between.makers:
            between.makers.append(asked.model)
        if asked.strip or between.taken or between.makers[-1] != asked.model:
            working = yield from self.intake.settle_thinking(working, dialect, asked, tools)
        window, counts = self.rules.window, self.intake.counts
        estimate = self.meter.estimate(
            working.items, call.tools, system=call.system, dialect=dialect, max_tokens=window, running=counts
        )
        if (ours := estimate.total) and self.correct is not None:
            self.correction = self.correct(ours, state.step)
            estimate = self.correction.correct(estimate)
        yield Emit(
            TokenEstimate(
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
        )
        at_hand = state is known and state.asked
        seen = Seen(call, state, given, working, dialect, estimate, ours, at_hand)
        if estimate.total > self.rules.budget - self.rules.least_room:
            yield from self._require_room(seen)
        aside = self.background
        if aside is not None and aside.is_wanted(call, estimate.total, self.rules):
            swapped = yield from swap(self, seen, aside)
            if swapped is not None:
                return swapped
        decision, weighed = yield from self._decide(seen)
        if not decision.triggered:
            yield Emit(
                TriggerDecision(
                    triggered=False,
                    reason=decision.reason,
                    note=call.note,
                    policy=self.rules.in_force,
                    economy=weighed.economics,
                )
            )
            return _unchanged(seen)
        if decision.reason == STARTED:
            begun = yield from begin(self, seen, decision, weighed.economics)
            return replace(_unchanged(seen), background=begun)
        return (yield from self._compact(seen, decision, weighed))

    # --- before the trigger

    def _resolve(self, call: Call, state: SessionState) -> Asking[tuple[Working, SessionState]]:
        """The context, and the state that it continues: the one in memory, the archive's, or none."""
        as_given = Working(call.messages, range(len(call.messages)))
        if state.asked:
            known = state.standing if not state.is_ambiguous else None
            if not state.step or (known and begins_with(call.messages, known)):
                return as_given, state
            working = resolve(state, call.messages)
            if working is not None:
                return working, state
        try:
            loaded = yield Load()
        except ArchiveError as problem:
            # Nothing can be compacted without the archive. Counting goes on, so a session that fits is not held up.
            yield Emit(Failure.of(problem, "none"))
            return as_given, state
        if loaded is None:
            return as_given, SessionState(asked=True)
        found = restore_state(loaded, call.messages)
        if found is not None:
            self.written.adopt(found.written)
            working = resolve(found, call.messages)
            assert working is not None
            return working, found
        reset = SessionState(step=loaded.step, asked=True)
        if state != reset:  # warn once, not at every call until the next step
            message = f"the list does not continue what step {loaded.step} left: history was edited, branched or rewound"
            yield Emit(Warned(code="state_reset", severity="low", message=message))
        return as_given, reset

    def _require_room(self, seen: Seen) -> Asking[None]:
        """Refuse a request whose fixed part fits but leaves nothing to work in. One that does not fit fails its pass."""
        rules = self.rules
        if not rules.least_room:
            return
        shares = measure_fixed(seen.estimate, seen.working.items, seen.dialect, self.meter, rules.never_prune)
        if 0 <= rules.budget - sum(shares.values()) < rules.least_room:
            problem = no_room(shares, rules)
            yield Emit(Failure.of(problem, "none"), is_last=True)
            raise problem

    def _decide(self, seen: Seen) -> Asking[tuple[Decision, Weighed]]:
        """Whether the call gets a pass: because one is due, because it saves money, or because the provider would refuse the list."""
        call, estimate, aside = seen.call, seen.estimate, self.background
        decision = (
            decide_call(seen, self.rules)
            if aside is None
            else decide_aside(seen, self.rules, aside, is_first=not self.sent)
        )
        weighed, economy = NOTHING, self.economy
        is_free = not (call.manual or call.reversible or call.fit or (aside is not None and aside.is_running))
        if economy is not None and is_free and estimate.total >= economy.least:
            life = partial(longest_life, call.system, call.tools, seen.working.items)
            weighed = yield from weigh(economy, self.called_at, estimate, self.rules, decision, life)
        if weighed.early_target is not None:
            decision = EARLY
        limits = limits_for(self.request, seen.dialect.NAME) if estimate.attached else NO_LIMITS
        if (
            limits is not NO_LIMITS
            and (not decision.triggered or decision.reason in (EARLY.reason, STARTED))
            and may_exceed(estimate, limits)
            and is_refused(
                self._rows(seen), self.rules, self.desk(seen.dialect), seen.state.summaries, limits
            )
        ):
            decision, weighed = REFUSED, NOTHING
        return decision, weighed

    # --- the pass

    def _compact(self, seen: Seen, decision: Decision, weighed: Weighed) -> Asking[Result]:
        call, estimate = seen.call, seen.estimate
        started = self.now()
        yield Emit(Started(reason=decision.reason, note=call.note))
        rows, desk = yield from self.read(seen, known=len(seen.state.standing or ()))
        self.begin_pass(seen, rows, decision, started)
        assert self.under_way is not None
        before, fits = self.under_way.before, self.under_way.fits
        work = self.make_pass(seen, decision, rows, desk, weighed=weighed)

        def finish(outcome: PassOutcome, after: int) -> Emit:
            spent = self.elapsed_ms(started)
            return end_event(decision.reason, call.note, spent, outcome, estimate.total, after)

        try:
            if seen.at_hand and (yield from self.is_overtaken(seen.state)):
                outcome = Outcome(rows, estimate.total, estimate.total, overtaken=True)
            else:
                outcome = yield from work.run()
        except ArchiveError as problem:
            yield Emit(Failure.of(problem, "snapshot"))
            yield finish("failed", estimate.total)
            if not fits:
                raise
            return before
        except Exception as problem:
            yield Emit(Failure.of(problem, "none"))
            yield finish("failed", estimate.total)
            raise
        if outcome.lost_race or outcome.overtaken:
            result = yield from self.adopt(seen, outcome)
            yield finish("adopted", estimate.total)
        elif outcome.step is None:
            result = yield from self.give_up(seen, outcome, decision)
            yield finish("unchanged", estimate.total)
        else:
            result = yield from self.conclude(seen, outcome, decision)
            yield finish("compacted", result.state.tokens_after)
        return result

    def read(self, seen: Seen, known: int) -> Asking[tuple[list[Row], Desk]]:
        """The context as rows, and the desk for it. Copied pointers behind the first `known` messages are reported."""
        rows, desk = self._rows(seen), self._desk(seen.dialect)
        yield from recognise_pointers(rows, desk)
        yield from warn_of_copied_pointers(rows[known:])
        return rows, desk

    def _rows(self, seen: Seen) -> list[Row]:
        return [
            Row(seen.dialect.read(item), self.meter.count_item(item, seen.dialect), source)
            for item, source in zip(seen.working.items, seen.working.sources, strict=True)
        ]

    def begin_pass(self, seen: Seen, rows: list[Row], decision: Decision, started: float) -> None:
        """Note what the host gets if the pass does not end in time."""
        fits = seen.estimate.total <= self.rules.budget
        self.under_way = UnderWay(_unchanged(seen), rows, decision, seen.call.note, started, fits)

    def make_pass(
        self,
        seen: Seen,
        decision: Decision,
        rows: list[Row],
        desk: Desk,
        *,
        weighed: Weighed = NOTHING,
        made_from: int | None = None,
    ) -> Pass:
        """The pass over these rows. `made_from`: it was made from that many messages, in the background."""
        # Most calls make no pass. With the ladder come all who read and write summaries, half of what the package loads.
        from compact.engine import ladder

        call, fixed, early = seen.call, self._fixed_tokens(seen.call), weighed.early_target
        rules = self.rules if early is None else replace(self.rules, target=early)
        stages = ladder.choose_stages(self.stages, call.reversible)
        # The request fits, so it waits for no model.
        asks_nobody = decision is REFUSED or (
            decision is EARLY and (self.background is not None or self.native.is_chosen)
        )
        if decision is REFUSED:
            stages = ()
        return ladder.Pass(
            rows=rows,
            desk=desk,
            rules=(rules.hurry() if self._is_soon(seen, decision) else rules).for_messages(
                fixed,
                self.meter.factor * self.correction.rate,
                fold_all=call.manual or decision.is_by_count,
            ),
            stages=ladder.without_model(stages) if asks_nobody else stages,
            summaries=seen.state.summaries,
            after_step=seen.state.step,
            reason=decision.reason,
            note=call.note,
            remember=lambda after: self._describe(seen, decision, rows, after, made_from),
            given=None if seen.given is seen.working.items else seen.given,
            ledger=seen.state.ledger,
            pins=seen.state.pins,
            new=first_new(len(seen.state.standing or ()), seen.given, seen.working.items),
            thinking=self.thinking,
            economics=weighed.economics,
            native=NO_NATIVE if call.reversible or call.without_model or asks_nobody else self.native,
            extract=seen.state.extract,
            request=limits_for(self.request, seen.dialect.NAME) if seen.estimate.attached else NO_LIMITS,
        )

    def elapsed_ms(self, since: float) -> float:
        """Milliseconds since a moment."""
        return round((self.now() - since) * 1000, 3)

    def _is_soon(self, seen: Seen, decision: Decision) -> bool:
        """Whether only a few replies came since the last step. A session must not be compacted in every call.

        Below the budget there is a choice: a session that nothing could be done about waits until it has grown.
        """
        if not seen.state.standing or decision.reason != "budget":
            return False
        new = seen.working.items[len(seen.state.standing) :]
        replies = sum(seen.dialect.read(item).role == "assistant" for item in new)
        return replies < self.rules.calls_between

    def is_overtaken(self, state: SessionState) -> Asking[bool]:
        """Whether another worker has made newer steps. The pass, and its summary, would be in vain."""
        newest = yield Load()
        return newest is not None and newest.step > state.step

    def adopt(self, seen: Seen, outcome: Outcome) -> Asking[Result]:
        """Run again on the winner's state. Seen through it, the list is mostly compacted already."""
        call = seen.call
        if call.races >= _MAX_RACES:
            if seen.estimate.total <= self.rules.budget:
                return _unchanged(seen)
            raise ArchiveError(f"other workers were faster {call.races + 1} times", reason="taken")
        # A manual compaction is done if another one was just made. A step of long ago does not count.
        again = replace(call, manual=call.manual and outcome.overtaken, races=call.races + 1)
        return (yield from self.run(again, SessionState()))

    def give_up(self, seen: Seen, outcome: Outcome, decision: Decision) -> Asking[Result]:
        """Note that the pass changed nothing, so that it is not tried again until the session has grown.

        An early pass is only tried again on the next cold cache, and hinders none that is due.
        """
        if not is_due(decision):
            return replace(_unchanged(seen), outcome=outcome)
        size = seen.estimate.total
        stuck = replace(seen.state, tokens_after=size, ineffective=self.rules.ineffective_passes)
        yield from self._warn_ineffective(seen.state, size, size)
        return replace(_unchanged(seen), state=stuck, outcome=outcome)

    def conclude(self, seen: Seen, outcome: Outcome, decision: Decision) -> Asking[Result]:
        """The session's new state, and what the host gets."""
        items = write_rows(outcome.rows, seen.dialect, seen.call.tools, seen.call.system)
        ours = self._count(items, seen.dialect)
        size = self.correction.scale(ours) + self._fixed_tokens(seen.call)
        ineffective = count_ineffective(seen, decision, size)
        after = SessionState(
            step=outcome.step or 0,
            asked=True,
            replaced=list(seen.call.messages),
            standing=items,
            sources=[row.source for row in outcome.rows],
            bare=list_bare(seen.working.bare, outcome.rows),
            dialect=seen.dialect.NAME,
            is_ambiguous=continues(seen.call.messages, items),
            summaries=outcome.summaries,
            tokens_after=size,
            ineffective=ineffective,
            ledger=outcome.ledger,
            pins=outcome.pins,
            extract=outcome.extract,
        )
        readable = readable_items(outcome.rows, items, outcome.extract, self.desk(seen.dialect))
        if readable is not None:
            after = replace(after, readable=places_in(items, readable))
        if ineffective and is_due(decision):
            yield from self._warn_ineffective(after, seen.estimate.total, size)
        return Result(list(items), after, seen.estimate, outcome, ours + self._count_beside(seen.call))

    def _describe(
        self, seen: Seen, decision: Decision, before: Sequence[Row], after: Context, made_from: int | None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        items = write_rows(after.rows, seen.dialect, seen.call.tools, seen.call.system)
        size = self.correction.scale(self._count(items, seen.dialect)) + self._fixed_tokens(seen.call)
        sides = describe_sides(seen.given, seen.working.items, before, after.rows, items, after.desk.scale)
        ineffective = count_ineffective(seen, decision, size)
        return describe_state(
            seen.call.messages,
            after.rows,
            items,
            after.summaries,
            size,
            ineffective,
            sides,
            self.written.describe(row.message for row in after.rows),
            after.ledger,
            after.pins,
            list_bare(seen.working.bare, after.rows),
            seen.dialect.NAME,
            after.extract,
            readable_items(after.rows, items, after.extract, after.desk),
            made_from,
        )

    def _count(self, items: Sequence[Any], dialect: Dialect) -> int:
        return self.meter.estimate(items, dialect=dialect, max_tokens=self.rules.window).total

    def _count_beside(self, call: Call) -> int:
        """What is sent beside the messages by our own count: the tools, and a system prompt outside the list."""
        return self.meter.estimate([], call.tools, system=call.system, max_tokens=self.rules.window).total

    def _fixed_tokens(self, call: Call) -> int:
        """The same as the provider counts it."""
        return self.correction.scale_fixed(self._count_beside(call))

    def _desk(self, dialect: Dialect) -> Desk:
        """The desk, where what people are told is what the provider counts."""
        desk = self.desk(dialect)
        return replace(desk, scale=lambda raw: self.correction.scale(desk.scale(raw)))

    def _warn_ineffective(self, state: SessionState, before: int, floor: int) -> Asking[None]:
        rules = self.rules
        if state.ineffective == rules.ineffective_passes or not state.step:
            message = (
                f"compaction no longer helps: {floor:,} of {rules.window:,} tokens cannot be reduced "
                f"(it was {before:,}); it waits until the session has grown by {rules.regrow:,} tokens"
            )
            yield Emit(Warned(code="ineffective", severity="medium", message=message))


def _unchanged(seen: Seen) -> Result:
    """The result of a call that changes nothing."""
    items, messages = seen.working.items, seen.call.messages
    return Result(messages if items is messages else list(items), seen.state, seen.estimate, ours=seen.ours)
