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
from dataclasses import dataclass, field, replace
from typing import Any

from compact.engine.check import check_budget, check_pinned, check_protected, check_result
from compact.engine.context import Context, Desk, Row, Stage, alternate, total
from compact.engine.effects import Asking, Begin, Begun, Commit, Emit
from compact.engine.limits import Rules
from compact.engine.native import NO_NATIVE, NativeRules
from compact.engine.stages.native import compact_natively
from compact.engine.stages.offload import offload
from compact.engine.stages.shrink_calls import shrink_calls
from compact.engine.stages.summarize import summarize
from compact.engine.stages.truncate import truncate
from compact.engine.thinking import KEEP, ThinkingRules, settle_thinking, take_thinking_out
from compact.engine.user_words import hear, put_in, set_aside, take_out
from compact.errors import CompactError, ConfigError, InsufficientBudget
from compact.events import (
    Failure,
    Kept,
    Layers,
    LedgerAction,
    LedgerChanged,
    Planned,
    PrunedMessages,
    Reason,
    SummaryCreated,
    TriggerDecision,
    Warned,
)
from compact.messages.message import SUMMARY_OPENS, Message, text_hash
from compact.messages.thinking import without_thinking
from compact.messages.units import removable
from compact.summaries.ledger import Entry, Written

REVERSIBLE_STAGES: tuple[Stage, ...] = (offload, shrink_calls)
DEFAULT_STAGES: tuple[Stage, ...] = (*REVERSIBLE_STAGES, summarize, truncate)
"""The ladder, reversible stages first."""
_STAGE_HINT = "A stage is a generator function that takes a Context and returns one"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass did. `rows` is the context as it now stands."""

    rows: Sequence[Row]
    tokens_before: int
    tokens_after: int
    """Of the messages, in the model's own tokens."""
    step: int | None = None
    """The step that was committed; None if the pass changed nothing."""
    saved: dict[str, int] = field(default_factory=dict)
    """Tokens saved, by stage: offload, compact, summarize, truncate, thinking, and those of the host's own stages."""
    summaries: frozenset[str] = frozenset()
    """Hashes of the summaries that are now in the context."""
    lost_race: bool = False
    """Another worker committed this step first: its state is the session's."""
    overtaken: bool = False
    """Another worker had made newer steps before this pass began, so it did nothing."""
    ledger: tuple[Entry, ...] = ()
    """What people said, up to this pass."""
    pins: int = 0
    """How many of the host's pins and unpins are in the ledger."""
    extract: str = ""
    """The summary behind a block of the provider that stands in the rows."""


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
    native: NativeRules = NO_NATIVE
    """Whether the provider is asked for its own summary first."""
    extract: str = ""
    """The summary behind a block of the provider that stands in the rows."""

    def run(self) -> Asking[Outcome]:
        """Run the whole pass, on top of step `after_step`.

        Raises:
            InsufficientBudget: what must stay is larger than the budget; says what takes the room.
            ArchiveError: the archive did not take the transcript or the step; nothing has changed.
        """
        desk, before = self.desk, self.rows
        context = Context(
            rows=before,
            rules=self.rules,
            desk=desk,
            step=0,
            history_path="",
            summaries=self.summaries,
            pins=self.pins,
            extract=self.extract,
        )
        at_first = context
        bare = take_thinking_out(before, desk, self.thinking) if self.thinking.strip else before
        context = replace(context, rows=bare)
        yield Emit(self._plan(context))
        check_pinned(context)
        begun = yield Begin(
            [desk.dialect.write(row.message) for row in before],
            desk.dialect.NAME,
            self.after_step,
            self.given,
            self.summaries,
        )
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
        start = total(context.rows)
        context = yield from climb(context, self.stages)
        context = replace(context, rules=self.rules, desk=desk)
        check_protected(before, context)  # a ledger must not hide that such a result is smaller
        reduced = total(context.rows)
        context, written = yield from put_in(context, taken)
        context = _charge(context, total(context.rows) - reduced - (total(bare) - start))
        yield from _report_summaries(context)
        standing = frozenset(
            text_hash(row.message.text) for row in context.rows if context.is_summary(row.message)
        )
        # A stage may have changed the rules for those after it, and it may have counted in its own way.
        rows = _recount(alternate(context.rows, desk), bare, desk)
        if bare is not before:
            room = self.rules.budget if context.native is not None else self.rules.target
            rows = settle_thinking(context.with_rows(rows), anchored, room, self.thinking)
            rows = _recount(alternate(rows, desk), rows, desk)
        context = context.with_rows(rows, summaries=standing, rules=self.rules, desk=desk)
        if bare is not before:
            context = context.credit("thinking", total(before) - context.tokens - sum(context.saved.values()))
        size = desk.scale(total(before))
        if context.tokens >= total(before):
            check_budget(context.with_rows(before))
            return Outcome(before, size, size, summaries=self.summaries)
        check_result(before, context)
        state, fingerprints = self.remember(context)
        if not (yield Commit(_record_folds(context), state, fingerprints)):
            return Outcome(before, size, size, lost_race=True)
        saved = {stage: desk.scale(tokens) for stage, tokens in context.saved.items()}
        pruned = _count_pruned(at_first, context)
        yield Emit(pruned, payload={"saved": saved})
        yield from _report_ledger(self.ledger or (), context, written)
        return Outcome(
            context.rows,
            pruned.tokens_before,
            pruned.tokens_after,
            begun.step,
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

    def _plan(self, context: Context) -> TriggerDecision:
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
        )


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


def _report_summaries(context: Context) -> Asking[None]:
    """Say which summaries stand now, as they stand."""
    standing = {id(row.message) for row in context.rows}
    for made in context.folds:
        # Pruned without a summary: the error that led to it has its own event.
        if made.writer != "none" and id(made.row.message) in standing:
            event = SummaryCreated(
                strategy=made.strategy,
                input_messages=made.input_messages,
                summary_tokens=context.desk.scale(made.row.tokens),
                compression_ratio=round(made.row.tokens / max(1, made.input_tokens), 4),
            )
            yield Emit(event, payload={"summary": made.text})


def _charge(context: Context, tokens: int) -> Context:
    """The context with the price of the ledger taken off what the stage saved that gained most by it."""
    if tokens <= 0 or not context.saved:
        return context
    stage = max(context.saved, key=lambda name: context.saved[name])
    saved = {**context.saved, stage: context.saved[stage] - tokens}
    return replace(context, saved={name: gained for name, gained in saved.items() if gained > 0})


def _report_ledger(before: Sequence[Entry], context: Context, written: Written) -> Asking[None]:
    """Say what changed in the ledger, and what there was no room for."""
    known = {entry.id: entry.status for entry in before}
    for entry in context.ledger:
        if entry.id not in known:
            yield _ledger_event("added", entry)
        if entry.status != "stands" and known.get(entry.id) != entry.status:
            yield _ledger_event(entry.status, entry)
    for entry in written.left:
        yield _ledger_event("left", entry)
    if written.left:
        message = (
            f"{len(written.left):,} of the {_count_standing(context.ledger):,} things that the user said and that stand did not fit "
            f"into {context.desk.scale(context.ledger_room):,} tokens (policy.ledger_share); the archive has them"
        )
        yield Emit(Warned(code="ledger_full", severity="medium", message=message))


def _ledger_event(action: LedgerAction, entry: Entry) -> Emit:
    event = LedgerChanged(action=action, entry_id=entry.id, kind=entry.kind, source=entry.source)
    return Emit(event, payload={"text": entry.text, "said_in": entry.said_in})


def _count_standing(entries: Sequence[Entry]) -> int:
    return sum(entry.status == "stands" for entry in entries)


def _recount(rows: Sequence[Row], before: Sequence[Row], desk: Desk) -> list[Row]:
    """The rows at what they cost. Only messages that a stage wrote are counted again."""
    known = {id(row.message): row.tokens for row in before}
    return [replace(row, tokens=known.get(id(row.message)) or desk.count(row.message)) for row in rows]


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


def _count_pruned(before: Context, after: Context) -> PrunedMessages:
    pinned = sum(after.is_pinned(row.message) for row in after.rows)
    # A ledger stands for folded history as well, but it is neither a summary nor recent.
    frames = [row.message.text for row in after.rows if after.is_summary(row.message)]
    summary = sum(text.startswith(SUMMARY_OPENS) for text in frames)
    standing = sum(row.level not in ("summary", "ledger", "marker") for row in after.rows)
    turns, pairs = _count_whole(before, after)
    return PrunedMessages(
        layers=Layers(pinned=pinned, summary=summary, recent=len(after.rows) - pinned - len(frames)),
        pruned_count=len(before.rows) - standing,
        tokens_before=after.desk.scale(before.tokens),
        tokens_after=after.desk.scale(after.tokens),
        kept=Kept(pinned=pinned, recent_turns=turns, tool_pairs=pairs),
    )


def _count_whole(before: Context, after: Context) -> tuple[int, int]:
    """How many of the newest turns and pairs that were to be kept stand as they were."""
    rules, standing = before.rules, {id(row.own) for row in after.rows}
    is_whole = {
        unit.start: all(
            id(row.message) in standing and not _is_reduced(row.message, before.desk)
            for row in before.rows[unit.start : unit.stop]
        )
        for unit in before.units
    }
    pairs = [is_whole[unit.start] for unit in before.units if unit.kind == "pair"]
    turns: dict[int, bool] = {}
    for unit in before.units:
        if unit.turn and unit.kind in ("opener", "words"):
            turns[unit.turn] = turns.get(unit.turn, True) and is_whole[unit.start]

    def count(whole: Sequence[bool], most: int) -> int:
        newest = list(whole)[::-1][:most]
        return newest.index(False) if False in newest else len(newest)

    return count(list(turns.values()), rules.keep_turns), count(pairs, rules.keep_pairs)


def _is_reduced(message: Message, desk: Desk) -> bool:
    """Whether an earlier pass took something out of one of its results."""
    return any(desk.written.is_reduced(result.text) for result in message.results)


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
