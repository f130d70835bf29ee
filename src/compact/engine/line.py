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
from typing import Any

from compact.engine.context import Context, Desk, Row, Stage, Written
from compact.engine.effects import Asking, Emit, Load
from compact.engine.intake import Intake, Tools, Working, find_places
from compact.engine.ladder import REVERSIBLE_STAGES, Outcome, Pass
from compact.engine.limits import Decision, Rules, decide, measure_fixed, no_room
from compact.engine.native import NO_NATIVE, NativeRules, readable_items
from compact.engine.stages.offload import recognise_pointers
from compact.engine.state import (
    SessionState,
    continues,
    describe_sides,
    describe_state,
    places_in,
    resolve,
    restore_state,
    without_block,
)
from compact.engine.thinking import KEEP, ThinkingRules
from compact.errors import ArchiveError
from compact.events import (
    Breakdown,
    Failure,
    Finished,
    PassOutcome,
    Started,
    TokenEstimate,
    TriggerDecision,
    Warned,
)
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import begins_with
from compact.messages.message import POINTER_OPENS
from compact.tokens import Estimate, Meter

_MAX_RACES = 3
_BELOW = Decision(False, "below")


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
class _Seen:
    """A call after its intake: the context that it stands for, in its dialect, and what it costs."""

    call: Call
    state: SessionState
    given: Sequence[Any]
    """The context before repairs and offloads: the host's own messages."""
    working: Working
    dialect: Dialect
    estimate: Estimate
    at_hand: bool
    """Whether the state was in memory, so that the archive may know of newer steps."""


@dataclass(slots=True, kw_only=True)
class Line:
    """The line of one session with its parts. It asks for everything that it needs from outside."""

    meter: Meter
    rules: Rules
    stages: Sequence[Stage]
    desk: Callable[[Dialect], Desk]
    intake: Intake
    now: Callable[[], float]
    """Seconds, for durations."""
    written: Written
    """What compact wrote into the session's results and arguments."""
    thinking: ThinkingRules = KEEP
    """What becomes of signed thinking in a pass, and where the model does not read it."""
    native: NativeRules = NO_NATIVE
    """Whether the provider writes summaries, and whose blocks the model reads."""
    sent: Sequence[Any] = ()
    """What the session's last call returned."""
    moves_arriving: bool = True
    """Whether a huge result goes to the archive when it is first seen."""
    under_way: UnderWay | None = None
    """The pass that was begun; None before there is one."""

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
        estimate = self.meter.estimate(
            working.items, call.tools, system=call.system, dialect=dialect, max_tokens=self.rules.window
        )
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
        seen = _Seen(call, state, given, working, dialect, estimate, at_hand=state is known and state.asked)
        if estimate.total > self.rules.budget - self.rules.least_room:
            yield from self._require_room(seen)
        decision = self._decide(seen)
        if not decision.triggered:
            in_force = self.rules.in_force
            yield Emit(
                TriggerDecision(triggered=False, reason=decision.reason, note=call.note, policy=in_force)
            )
            return _unchanged(seen)
        return (yield from self._compact(seen, decision))

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

    def _require_room(self, seen: _Seen) -> Asking[None]:
        """Refuse a request whose fixed part fits but leaves nothing to work in. One that does not fit fails its pass."""
        rules = self.rules
        if not rules.least_room:
            return
        shares = measure_fixed(seen.estimate, seen.working.items, seen.dialect, self.meter, rules.never_prune)
        if 0 <= rules.budget - sum(shares.values()) < rules.least_room:
            problem = no_room(shares, rules)
            yield Emit(Failure.of(problem, "none"), is_last=True)
            raise problem

    def _decide(self, seen: _Seen) -> Decision:
        rules, state, tokens, items = self.rules, seen.state, seen.estimate.total, seen.working.items
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
        least = 1 if _is_by_count(decision) else min(rules.regrow, limit // 10)
        if _is_by_count(decision):
            # What must be kept may alone exceed a count. Then the size has to grow.
            waiting = waiting or len(state.standing or ()) >= (rules.message_threshold or len(items))
        above = rules.summarize_above
        if above is not None and state.tokens_after < above <= tokens:
            return decision  # what was out of reach below this size may help now
        if tokens - state.tokens_after < (rules.regrow if waiting else least):
            return Decision(False, "ineffective")
        return decision

    # --- the pass

    def _compact(self, seen: _Seen, decision: Decision) -> Asking[Result]:
        call, dialect, estimate = seen.call, seen.dialect, seen.estimate
        started = self.now()
        yield Emit(Started(reason=decision.reason, note=call.note))
        rows = [
            Row(dialect.read(item), self.meter.count_item(item, dialect), source)
            for item, source in zip(seen.working.items, seen.working.sources, strict=True)
        ]
        desk = self.desk(dialect)
        yield from recognise_pointers(rows, desk)
        before = _unchanged(seen)
        fits = estimate.total <= self.rules.budget
        self.under_way = UnderWay(before, rows, decision, call.note, started, fits)
        yield from _warn_of_copied_pointers(rows[len(seen.state.standing or ()) :])
        fixed = self._fixed_tokens(call, estimate)
        work = Pass(
            rows=rows,
            desk=desk,
            rules=(self.rules.hurry() if self._is_soon(seen, decision) else self.rules).for_messages(
                fixed, self.meter.factor, fold_all=call.manual or _is_by_count(decision)
            ),
            stages=REVERSIBLE_STAGES if call.reversible else self.stages,
            summaries=seen.state.summaries,
            after_step=seen.state.step,
            reason=decision.reason,
            note=call.note,
            remember=lambda after: self._describe(seen, rows, after, fixed),
            given=None if seen.given is seen.working.items else seen.given,
            ledger=seen.state.ledger,
            pins=seen.state.pins,
            new=_first_new(seen),
            thinking=self.thinking,
            native=NO_NATIVE if call.reversible or call.without_model else self.native,
            extract=seen.state.extract,
        )

        def finish(outcome: PassOutcome, after: int) -> Emit:
            duration_ms = round((self.now() - started) * 1000, 3)
            return Emit(
                Finished(
                    reason=decision.reason,
                    note=call.note,
                    outcome=outcome,
                    duration_ms=duration_ms,
                    tokens_before=estimate.total,
                    tokens_after=after,
                )
            )

        try:
            if seen.at_hand and (yield from self._is_overtaken(seen.state)):
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
            result = yield from self._adopt(seen, outcome)
            yield finish("adopted", estimate.total)
        elif outcome.step is None:
            result = yield from self._give_up(seen, outcome)
            yield finish("unchanged", estimate.total)
        else:
            result = yield from self._conclude(seen, outcome, fixed)
            yield finish("compacted", result.state.tokens_after)
        return result

    def _is_soon(self, seen: _Seen, decision: Decision) -> bool:
        """Whether only a few replies came since the last step. A session must not be compacted in every call.

        Below the budget there is a choice: a session that nothing could be done about waits until it has grown.
        """
        if not seen.state.standing or decision.reason != "budget":
            return False
        new = seen.working.items[len(seen.state.standing) :]
        replies = sum(seen.dialect.read(item).role == "assistant" for item in new)
        return replies < self.rules.calls_between

    def _is_overtaken(self, state: SessionState) -> Asking[bool]:
        """Whether another worker has made newer steps. The pass, and its summary, would be in vain."""
        newest = yield Load()
        return newest is not None and newest.step > state.step

    def _adopt(self, seen: _Seen, outcome: Outcome) -> Asking[Result]:
        """Run again on the winner's state. Seen through it, the list is mostly compacted already."""
        call = seen.call
        if call.races >= _MAX_RACES:
            if seen.estimate.total <= self.rules.budget:
                return _unchanged(seen)
            raise ArchiveError(f"other workers were faster {call.races + 1} times", reason="taken")
        # A manual compaction is done if another one was just made. A step of long ago does not count.
        again = replace(call, manual=call.manual and outcome.overtaken, races=call.races + 1)
        return (yield from self.run(again, SessionState()))

    def _give_up(self, seen: _Seen, outcome: Outcome) -> Asking[Result]:
        """Note that the pass changed nothing, so that it is not tried again until the session has grown."""
        size = seen.estimate.total
        stuck = replace(seen.state, tokens_after=size, ineffective=self.rules.ineffective_passes)
        yield from self._warn_ineffective(seen.state, size, size)
        return replace(_unchanged(seen), state=stuck, outcome=outcome)

    def _conclude(self, seen: _Seen, outcome: Outcome, fixed: int) -> Asking[Result]:
        items = [seen.dialect.write(row.message) for row in outcome.rows]
        size = self._count(items, seen.dialect) + fixed
        ineffective = _count_ineffective(seen, size)
        after = SessionState(
            step=outcome.step or 0,
            asked=True,
            replaced=list(seen.call.messages),
            standing=items,
            sources=[row.source for row in outcome.rows],
            bare=_list_bare(seen, outcome.rows),
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
        if ineffective:
            yield from self._warn_ineffective(after, seen.estimate.total, size)
        return Result(list(items), after, seen.estimate, outcome)

    def _describe(
        self, seen: _Seen, before: Sequence[Row], after: Context, fixed: int
    ) -> tuple[dict[str, Any], dict[str, str]]:
        items = [seen.dialect.write(row.message) for row in after.rows]
        size = self._count(items, seen.dialect) + fixed
        sides = describe_sides(seen.given, seen.working.items, before, after.rows, items, after.desk.scale)
        ineffective = _count_ineffective(seen, size)
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
            _list_bare(seen, after.rows),
            seen.dialect.NAME,
            after.extract,
            readable_items(after.rows, items, after.extract, after.desk),
        )

    def _count(self, items: Sequence[Any], dialect: Dialect) -> int:
        return self.meter.estimate(items, dialect=dialect, max_tokens=self.rules.window).total

    def _fixed_tokens(self, call: Call, estimate: Estimate) -> int:
        """Tokens of what is sent beside the messages: the tools, and a system prompt outside the list."""
        if not call.system:
            return estimate.tools_schema
        prompt = self.meter.estimate([], system=call.system, max_tokens=self.rules.window)
        return estimate.tools_schema + prompt.total

    def _warn_ineffective(self, state: SessionState, before: int, floor: int) -> Asking[None]:
        rules = self.rules
        if state.ineffective == rules.ineffective_passes or not state.step:
            message = (
                f"compaction no longer helps: {floor:,} of {rules.window:,} tokens cannot be reduced "
                f"(it was {before:,}); it waits until the session has grown by {rules.regrow:,} tokens"
            )
            yield Emit(Warned(code="ineffective", severity="medium", message=message))


def _unchanged(seen: _Seen) -> Result:
    """The result of a call that changes nothing."""
    items, messages = seen.working.items, seen.call.messages
    return Result(messages if items is messages else list(items), seen.state, seen.estimate)


def _first_new(seen: _Seen) -> int:
    """The index of the first message that is new since the last step."""
    known, given, items = len(seen.state.standing or ()), seen.given, seen.working.items
    if given is items or len(given) == len(items):
        return known
    first = len(items)
    for n, place in reversed(list(enumerate(find_places(given, items)))):
        if place is not None and place < known:
            break
        first = n  # a message that was repaired follows the one before it
    return first


def _list_bare(seen: _Seen, rows: Sequence[Row]) -> frozenset[int]:
    """Which messages of the host's list stand without their signed thinking."""
    return frozenset(
        row.source
        for row in rows
        if row.source is not None and (row.bare_of is not None or row.source in seen.working.bare)
    )


def _is_by_count(decision: Decision) -> bool:
    return decision.reason in ("messages", "turns")


def _count_ineffective(seen: _Seen, after: int) -> int:
    """Passes in a row that saved too little."""
    before = seen.estimate.total
    return 0 if before - after >= before // 10 else seen.state.ineffective + 1


def _warn_of_copied_pointers(rows: Sequence[Row]) -> Asking[None]:
    """Models imitate what they see. A pointer in the arguments of a new call would be written to a file."""
    for row in rows:
        for call in row.message.calls:
            if POINTER_OPENS in call.arguments_text:
                message = (
                    f"the arguments of {call.name} ({call.id}) contain a pointer of ours instead of real text"
                )
                yield Emit(Warned(code="pointer_copied", severity="high", message=message))
