"""One pass over a session: archive, ladder, check, commit.

    archive   the whole transcript is durable before anything leaves the context
    hear      what people said since the last step joins the ledger
    ladder    stage after stage, until the result fits the target
    ledger    what no message shows any more is written in front
    check     legal, within the budget, smaller, protected messages identical
    commit    the step record and the session's state

An exception that is sent in at any effect leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.engine.attachments import move_attachments
from compact.engine.check import check_budget, check_pinned, check_protected, check_result
from compact.engine.context import Context, Desk, Row, Stage, alternate, total
from compact.engine.effects import Asking, Begin, Begun, Commit, Emit
from compact.engine.intake import find_places
from compact.engine.limits import Rules
from compact.engine.native import NO_NATIVE, NativeRules
from compact.engine.outcome import Outcome
from compact.engine.reporting import count_pruned, report_ledger, report_summaries
from compact.engine.stages.native import compact_natively
from compact.engine.stages.offload import offload
from compact.engine.stages.shrink_calls import shrink_calls
from compact.engine.stages.summarize import summarize
from compact.engine.stages.truncate import truncate
from compact.engine.thinking import KEEP, ThinkingRules, bare_row, settle_thinking, take_thinking_out
from compact.engine.user_words import TakenOut, hear, put_in, set_aside, take_out
from compact.errors import CompactError, ConfigError, InsufficientBudget
from compact.events import (
    Economics,
    Failure,
    Kept,
    Planned,
    Reason,
    TriggerDecision,
)
from compact.messages.cache_marks import keep_marks
from compact.messages.message import text_hash
from compact.messages.thinking import without_thinking
from compact.messages.units import removable
from compact.summaries.ledger import Entry
from compact.tokens.models import NO_LIMITS, RequestLimits

REVERSIBLE_STAGES: tuple[Stage, ...] = (offload, shrink_calls)
DEFAULT_STAGES: tuple[Stage, ...] = (*REVERSIBLE_STAGES, summarize, truncate)
"""The ladder, reversible stages first."""
_WITHOUT_MODEL: tuple[Stage, ...] = (*REVERSIBLE_STAGES, truncate)
_STAGE_HINT = "A stage is a generator function that takes a Context and returns one"


@dataclass(frozen=True, slots=True)
class Reduced:
    """What the stages made of a context, before it is committed."""

    before: Sequence[Row]
    bare: Sequence[Row]
    """The same without the signed thinking that the pass takes out."""
    anchored: Sequence[Row]
    """The rows that get theirs back as long as nothing before them changed."""
    context: Context
    taken: TakenOut
    """Where the ledgers of earlier steps stood."""
    ledgers_taken: int
    """The tokens of these."""
    arrived: int = 0
    """The tokens of what came while a pass was made in the background. No stage has seen it."""
    is_carried: bool = False
    """Whether it was made in the background, from the list of an earlier call."""
    was_refused: bool = False
    """Whether pictures or documents left because the provider would have refused the list for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a pass works on."""

    rows: Sequence[Row]
    desk: Desk
    rules: Rules
    """In raw tokens of messages: see `Rules.for_messages`."""
    stages: Sequence[Stage]
    summaries: frozenset[str]
    """Hashes of the summaries that compact wrote in this session before."""
    after_step: int
    reason: Reason
    note: str | None
    remember: Callable[[Context], tuple[dict[str, Any], dict[str, str]]]
    """Returns the state and the fingerprints that belong to a result."""
    given: Sequence[Any] | None = None
    """The host's messages, if repairs or offloads changed them on the way to `rows`."""
    ledger: tuple[Entry, ...] | None = None
    """What people said up to the last step; None: its record does not say."""
    pins: int = 0
    """How many of the host's pins and unpins are in that ledger."""
    new: int = 0
    """The first row that is new since the last step."""
    thinking: ThinkingRules = KEEP
    """What becomes of signed thinking behind the first message that the pass changes."""
    economics: Economics | None = None
    """What the pass costs in money, as far as anybody asked."""
    native: NativeRules = NO_NATIVE
    """Whether the provider is asked for its own summary first."""
    extract: str = ""
    """The summary behind a block of the provider that stands in the rows."""
    request: RequestLimits = NO_LIMITS
    """What the provider takes in one request."""

    def run(self) -> Asking[Outcome]:
        """Run the whole pass, on top of step `after_step`.

        Raises:
            InsufficientBudget: what must stay is larger than the budget; says what takes the room.
            ArchiveError: the archive did not take the transcript or the step; nothing has changed.
        """
        context = self.begin()
        yield Emit(self.plan(context))
        return (yield from self.conclude((yield from self.reduce(context))))

    def begin(self) -> Context:
        """The context that the stages begin with."""
        return replace(self._at_first(), rows=self._bare())

    def plan(self, context: Context) -> TriggerDecision:
        """The event that says what the pass may take out and what it means to keep."""
        rules, units = self.rules, context.units
        may_go = removable(units, rules.keep_turns, rules.keep_pairs)
        kept = [unit for unit, free in zip(units, may_go, strict=True) if not free and not unit.pinned]
        going = [unit for unit, free in zip(units, may_go, strict=True) if free]
        return TriggerDecision(
            triggered=True,
            reason=self.reason,
            note=self.note,
            policy=rules.in_force,
            planned=Planned(
                kept=Kept(
                    pinned=sum(unit.stop - unit.start for unit in units if unit.pinned),
                    recent_turns=len({unit.turn for unit in kept if unit.kind != "pair" and unit.turn}),
                    tool_pairs=sum(unit.kind == "pair" for unit in kept),
                ),
                pruned_count=sum(unit.stop - unit.start for unit in going),
            ),
            economy=self.economics,
        )

    def reduce(self, context: Context) -> Asking[Reduced]:
        """Make the transcript durable and climb the ladder. Nothing has left the context yet. Raises what `run` raises."""
        desk, before, bare = self.desk, self.rows, context.rows
        check_pinned(context)
        begun = yield self._begin()
        context = replace(
            context,
            rows=_with_masked(before, before if self.native.is_chosen else bare, desk, begun),
            step=begun.step,
            history_path=begun.history_path,
        )
        context = yield from hear(context, self.ledger, self.new)
        anchored = before
        if self.native.is_chosen:
            context = yield from self._ask_provider(context)
            context, anchored = self._without_thinking(context)
            bare = context.rows
        context, taken = take_out(context)
        start, held = total(context.rows), context.rows
        if self.request is not NO_LIMITS:
            context = yield from move_attachments(context, self.request)
        moved = context.rows is not held
        context = yield from climb(context, self.stages)
        return Reduced(before, bare, anchored, context, taken, total(bare) - start, was_refused=moved)

    def take_over(self, reduced: Reduced) -> Asking[Reduced]:
        """Carry over what a pass in the background made of the first rows. What arrived meanwhile follows as it is.

        The whole transcript is made durable, and what people said, pinned and took back meanwhile is heard. Raises what
        `run` raises.
        """
        desk, known = self.desk, len(reduced.before)
        bare, made = self._bare(), reduced.context
        begun = yield self._begin()
        now = _with_masked(self.rows, bare, desk, begun)
        heard = yield from hear(replace(made, rows=now, rules=self.rules, desk=desk), made.ledger, known)
        places = {id(row.own): n for n, row in enumerate(reduced.before)}

        def carry(row: Row) -> Row:
            place = places.get(id(row.own))
            if place is None:
                return row  # a stage wrote it
            own = self.rows[place]
            found = own if row.bare_of is None else bare_row(own, desk)
            return replace(row, message=found.message, source=own.source, bare_of=found.bare_of)

        arrived = now[known:]
        context = made.with_rows(
            [*map(carry, made.rows), *arrived],
            ledger=heard.ledger,
            ledger_room=heard.ledger_room,
            pins=heard.pins,
        )
        taken = TakenOut({each: carry(row) for each, row in reduced.taken.rows.items()})
        held = context.rows
        if self.request is not NO_LIMITS:
            context = yield from move_attachments(context, self.request)
        moved = reduced.was_refused or context.rows is not held
        return Reduced(
            self.rows, bare, self.rows, context, taken, reduced.ledgers_taken, total(arrived), True, moved
        )

    def conclude(self, reduced: Reduced) -> Asking[Outcome]:
        """Write the ledger, check the result and commit the step. Raises what `run` raises."""
        desk, before, bare, taken = self.desk, self.rows, reduced.bare, reduced.taken
        context = replace(reduced.context, rules=self.rules, desk=desk)
        check_protected(before, context)  # a ledger must not hide that such a result is smaller
        size = total(context.rows)
        context, written = yield from put_in(context, taken)
        context = _charge(context, total(context.rows) - size - reduced.ledgers_taken)
        yield from report_summaries(context)
        standing = frozenset(
            text_hash(row.message.text) for row in context.rows if context.is_summary(row.message)
        )
        # A stage may have changed the rules for those after it, and it may have counted in its own way.
        rows = _recount(alternate(context.rows, desk), bare, desk)
        if bare is not before:
            room = self.rules.budget if context.native is not None else self.rules.target + reduced.arrived
            rows = settle_thinking(context.with_rows(rows), reduced.anchored, room, self.thinking)
            rows = _recount(alternate(rows, desk), rows, desk)
        if reduced.is_carried:
            rows = _settle_marks(rows, before, desk)
        context = context.with_rows(rows, summaries=standing, rules=self.rules, desk=desk)
        if bare is not before:
            context = context.credit("thinking", total(before) - context.tokens - sum(context.saved.values()))
        size = desk.scale(total(before))
        if context.tokens >= total(before) and not reduced.was_refused:
            check_budget(context.with_rows(before))
            return Outcome(before, size, size, summaries=self.summaries)
        check_result(before, context)
        state, fingerprints = self.remember(context)
        if not (yield Commit(_record_folds(context), state, fingerprints)):
            return Outcome(before, size, size, lost_race=True)
        saved = {stage: desk.scale(tokens) for stage, tokens in context.saved.items()}
        pruned = count_pruned(self._at_first(), context)
        yield Emit(pruned, payload={"saved": saved})
        yield from report_ledger(self.ledger or (), context, written)
        return Outcome(
            context.rows,
            pruned.tokens_before,
            pruned.tokens_after,
            context.step,
            saved,
            context.summaries,
            ledger=context.ledger,
            pins=context.pins,
            extract=context.extract,
        )

    def _ask_provider(self, context: Context) -> Asking[Context]:
        """The context with the provider's own summary; the same one if it gives none, which has an event."""
        problem = self.native.why_not(self.desk.dialect.NAME)
        if problem:
            yield Emit(Failure(error_type="NoNativeCompaction", message=problem, fallback=self.desk.fallback))
            return context
        return (yield from climb(context, (compact_natively,)))

    def _without_thinking(self, context: Context) -> tuple[Context, Sequence[Row]]:
        """The context without signed thinking, and the rows that get theirs back as long as nothing before them changed."""
        rows = context.rows
        bare = take_thinking_out(rows, self.desk, self.thinking) if self.thinking.strip else rows
        block = context.native
        if block is not None and not (block.binds and bare is not rows):
            block = replace(block, binds=False)
            return context.with_rows(bare, native=block), bare
        return context.with_rows(bare), rows

    def _at_first(self) -> Context:
        return Context(
            rows=self.rows,
            rules=self.rules,
            desk=self.desk,
            step=0,
            history_path="",
            summaries=self.summaries,
            pins=self.pins,
            extract=self.extract,
        )

    def _bare(self) -> Sequence[Row]:
        return take_thinking_out(self.rows, self.desk, self.thinking) if self.thinking.strip else self.rows

    def _begin(self) -> Begin:
        write = self.desk.dialect.write
        return Begin(
            [write(row.message) for row in self.rows],
            self.desk.dialect.NAME,
            self.after_step,
            self.given,
            self.summaries,
        )


def choose_stages(hosts: Sequence[Stage] | None, reversible: bool) -> Sequence[Stage]:
    """Return the stages of a pass: the host's if it has any, or only the reversible ones."""
    if reversible:
        return REVERSIBLE_STAGES
    return DEFAULT_STAGES if hosts is None else hosts


def check_stages(stages: Any) -> tuple[Stage, ...]:
    """Return the ladder of a host.

    Raises:
        ConfigError: it is not a list, or a stage cannot be called.
    """
    if not isinstance(stages, Iterable):
        raise ConfigError(
            f"stages must be a list of stages, got a {type(stages).__name__}", hint=_STAGE_HINT, path="stages"
        )
    found = tuple(stages)
    for stage in found:
        if not callable(stage):
            kind = type(stage).__name__
            raise ConfigError(f"a stage must be callable, got a {kind}", hint=_STAGE_HINT, path="stages")
    return found


def may_ask(stages: Sequence[Stage]) -> bool:
    """Return whether a ladder may ask for a summary. What a host's own stage does is not known."""
    return any(stage not in _WITHOUT_MODEL for stage in stages)


def without_model(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages of a ladder that never ask for a summary."""
    return tuple(stage for stage in stages if stage in _WITHOUT_MODEL)


def climb(context: Context, stages: Sequence[Stage]) -> Asking[Context]:
    """Run the stages in order, until the context fits its target.

    Raises:
        CompactError: a stage returned something other than a context.
    """
    for stage in stages:
        asked = set_aside(context, may_fold=False)
        if asked.fits:
            break
        name = getattr(stage, "__name__", type(stage).__name__)
        before = context
        if stage not in REVERSIBLE_STAGES:
            asked = set_aside(before, may_fold=True)
        try:
            found = yield from _run(stage, name, asked)
        except InsufficientBudget:
            if asked is before:
                raise
            found = yield from _run(stage, name, before)  # the ledger gets what is left
        if found.rules is asked.rules:
            found = found.with_rules(before.rules)
        gained = before.tokens - found.tokens
        credited = sum(found.saved.values()) - sum(before.saved.values())
        context = found.credit(name, gained - credited)
    return context


def _run(stage: Stage, name: str, context: Context) -> Asking[Context]:
    found: Any = stage(context)
    if isinstance(found, Generator):
        found = yield from found
    if not isinstance(found, Context):
        raise CompactError(f"the stage {name} returned no Context", hint=_STAGE_HINT)
    return found


def _charge(context: Context, tokens: int) -> Context:
    """The context with the price of the ledger taken off what the stage saved that gained most by it."""
    if tokens <= 0 or not context.saved:
        return context
    stage = max(context.saved, key=lambda name: context.saved[name])
    saved = {**context.saved, stage: context.saved[stage] - tokens}
    return replace(context, saved={name: gained for name, gained in saved.items() if gained > 0})


def _recount(rows: Sequence[Row], before: Sequence[Row], desk: Desk) -> list[Row]:
    """The rows at what they cost. Only messages that a stage wrote are counted again."""
    known = {id(row.message): row.tokens for row in before}
    return [replace(row, tokens=known.get(id(row.message)) or desk.count(row.message)) for row in rows]


def _settle_marks(rows: Sequence[Row], before: Sequence[Row], desk: Desk) -> list[Row]:
    """The rows of a swap without the cache marks that the host has moved on since."""
    places = find_places((row.own for row in before), (row.own for row in rows))
    items = [desk.dialect.write(row.message) for row in rows]
    kept = keep_marks([desk.dialect.write(row.message) for row in before], items, places)
    return [
        row if item is now else replace(row, message=desk.dialect.read(now))
        for row, item, now in zip(rows, items, kept, strict=True)
    ]


def _with_masked(before: Sequence[Row], bare: Sequence[Row], desk: Desk, begun: Begun) -> list[Row]:
    """The rows with their masked form, which was made for the archive. What compact wrote is already masked."""
    masked = {
        id(row.message): desk.dialect.read(item)
        for row, item in zip(before, begun.masked, strict=True)
        if row.source is not None and item is not row.message.origin and item != row.message.origin
    }
    found = [(row, masked.get(id(row.own))) for row in bare]
    return [
        row if form is None else replace(row, masked=form if row.bare_of is None else without_thinking(form))
        for row, form in found
    ]


def _record_folds(context: Context) -> dict[str, Any]:
    """The content of the step's summary file."""
    return {
        "strategy": context.rules.strategy,
        "summaries": [
            {
                "text": fold.text,
                "summary_tokens": fold.row.tokens,
                "input_tokens": fold.input_tokens,
                "input_messages": fold.input_messages,
                "positions": list(fold.positions),
                "step": fold.step,
                "transcript": fold.transcript,
                "writer": fold.writer,
                "strategy": fold.strategy,
                "struck": list(fold.struck),
            }
            for fold in context.folds
        ],
    }
