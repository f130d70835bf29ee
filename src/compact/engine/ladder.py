"""One pass over a session: plan, archive, ladder, check, commit. A generator, without I/O of its own.

    plan      units, what may go, how much must go
    archive   the whole transcript, durable, before anything leaves the context
    ladder    offload -> shrink calls -> summarize -> truncate; stop at the first rung where it fits
    check     legal, within the budget, smaller, protected messages identical
    commit    step record and session state

It yields what it needs (`stages.base.Need`) and is sent the answers; an exception sent in leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.engine.effects import Asking, Begin, Begun, Commit, Emit
from compact.engine.plan import Folded, Rules, View, bound_to_fold, layered, reducible, selective
from compact.engine.rows import Desk, Row, total
from compact.engine.stages.offload import offload
from compact.engine.stages.shrink_calls import shrink_calls
from compact.engine.stages.summarize import record
from compact.engine.stages.truncate import drop_oldest, truncate
from compact.errors import CompactError, InsufficientBudget
from compact.events import Kept, Layers, PrunedMessages, SummaryCreated, TriggerDecision, Warned
from compact.messages.legality import gap_before, role_gaps, structure_violations
from compact.messages.markers import POINTER_OPENS, text_hash
from compact.messages.units import Unit, removable

_FITTING_ROUNDS = 5
"""Markers take room too; cutting for them can make others necessary."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass did. `rows` is the context as it now stands."""

    rows: list[Row]
    tokens_before: int
    tokens_after: int
    """Of the messages, in the model's own tokens."""
    step: int | None = None
    """The step that was committed; None when the pass changed nothing."""
    saved: dict[str, int] = field(default_factory=dict)
    """Tokens saved, by stage: offload, compact, summarize, truncate."""
    summaries: frozenset[str] = frozenset()
    """Hashes of the summaries that now stand in the context."""
    lost_race: bool = False
    """Another worker committed this step first: its state is the session's."""
    overtaken: bool = False
    """Another worker had made newer steps before this pass began; it did nothing."""


Remember = Callable[[Sequence[Row], frozenset[str]], tuple[dict[str, Any], dict[str, str]]]
"""The state and the fingerprints that belong to a result."""


def compact_rows(
    rows: list[Row], desk: Desk, rules: Rules, view: View, remember: Remember, after_step: int
) -> Asking[Outcome]:
    """The whole pass, on top of step `after_step`.

    Raises:
        InsufficientBudget: what must stay is larger than the budget; says what takes the room.
        ArchiveError: the archive took neither the transcript nor the step; nothing has changed.
    """
    size = total(rows)
    units = view.units(rows)
    yield _decision(units, rules)
    _refuse_if_hopeless(rows, units, rules)
    begun = yield Begin([_written(row, desk) for row in rows], desk.dialect.NAME, after_step)
    saved: dict[str, int] = {}
    after = yield from _reversible(_quotable(rows, desk, begun), units, desk, rules, saved)
    folded = yield from _summarized(after, desk, rules, view, begun, saved)
    summaries = _summaries_in(folded, view)
    later = replace(view, own_summaries=summaries)
    squeezed = yield from _squeezed(folded.rows, desk, rules, later, saved)
    after = _fitted(squeezed, desk, rules, later, begun, saved)
    if total(after) >= size:
        return Outcome(rows, desk.scale(size), desk.scale(size), summaries=view.own_summaries)
    _check(rows, after, desk, rules, view)
    state, fingerprints = remember(after, summaries)
    summary = record(folded.folds, rules.strategy)
    committed = yield Commit(summary, state, fingerprints)
    if not committed:
        return Outcome(rows, desk.scale(size), desk.scale(size), lost_race=True)
    told = {stage: desk.scale(tokens) for stage, tokens in saved.items()}
    yield replace(_pruned(rows, after, desk, view, summaries), payload={"saved": told})
    return Outcome(after, desk.scale(size), desk.scale(total(after)), begun.step, told, summaries)


def warn_of_copied_pointers(rows: Sequence[Row]) -> Asking[None]:
    """Models imitate what they see: a pointer in the arguments of a new call would be written to a file."""
    for row in rows:
        for call in row.message.calls:
            if POINTER_OPENS in call.arguments_text:
                message = (
                    f"the arguments of {call.name} ({call.id}) contain a pointer of ours instead of real text"
                )
                yield Emit(Warned(code="pointer_copied", severity="high", message=message))


# --- plan


def _decision(units: Sequence[Unit], rules: Rules) -> Emit:
    may_go = removable(units, rules.keep_turns, rules.keep_pairs)
    kept = [unit for unit, free in zip(units, may_go, strict=True) if not free and not unit.pinned]
    going = [unit for unit, free in zip(units, may_go, strict=True) if free]
    decision = TriggerDecision(
        triggered=True,
        reason=rules.reason,
        note=rules.note,
        policy=rules.policy,
        kept=Kept(
            pinned=sum(unit.stop - unit.start for unit in units if unit.pinned),
            recent_turns=len({unit.turn for unit in kept if unit.kind != "pair" and unit.turn}),
            tool_pairs=sum(unit.kind == "pair" for unit in kept),
        ),
        pruned_count=sum(unit.stop - unit.start for unit in going),
    )
    return Emit(decision)


def _refuse_if_hopeless(rows: Sequence[Row], units: Sequence[Unit], rules: Rules) -> None:
    pinned = sum(rows[n].tokens for unit in units if unit.pinned for n in range(unit.start, unit.stop))
    if pinned > rules.limit:
        raise _insufficient(rows, rules, units)


# --- ladder


def _reversible(
    rows: list[Row], units: Sequence[Unit], desk: Desk, rules: Rules, saved: dict[str, int]
) -> Asking[list[Row]]:
    pinned = frozenset(n for unit in units if unit.pinned for n in range(unit.start, unit.stop))
    offloaded = yield from offload(rows, desk, pinned)
    _credit(saved, "offload", rows, offloaded)
    if rules.fold_all or rules.layout == "selective":
        return offloaded
    folding = bound_to_fold(offloaded, units, desk, rules)
    folding_tokens = sum(
        offloaded[n].tokens for place in folding for n in range(units[place].start, units[place].stop)
    )
    goal = rules.goal + max(0, folding_tokens - rules.summary_tokens)
    may_go = [free and place not in folding for place, free in enumerate(reducible(offloaded, units, rules))]
    shrunk = yield from shrink_calls(offloaded, desk, units, may_go, goal)
    _credit(saved, "compact", offloaded, shrunk)
    return shrunk


def _summarized(
    rows: list[Row], desk: Desk, rules: Rules, view: View, begun: Begun, saved: dict[str, int]
) -> Asking[Folded]:
    if not rules.fold_all and total(rows) <= max(rules.goal, rules.summarize_above):
        return Folded(rows)
    layout = selective if rules.layout == "selective" else layered
    folded = yield from layout(rows, desk, rules, view, begun)
    _credit(saved, "summarize", rows, folded.rows)
    for made in folded.folds:
        if made.writer == "none":
            continue  # pruned without a summary: the error that led to it was told already
        event = SummaryCreated(
            strategy=made.strategy,
            input_messages=made.input_messages,
            summary_tokens=desk.scale(made.row.tokens),
            compression_ratio=round(made.row.tokens / max(1, made.input_tokens), 4),
        )
        yield Emit(event, payload={"summary": made.text})
    return folded


def _squeezed(
    rows: list[Row], desk: Desk, rules: Rules, view: View, saved: dict[str, int]
) -> Asking[list[Row]]:
    """Still over the limit: what is recent is reduced too, reversibly, before anything of it is cut."""
    if total(rows) <= rules.limit:
        return rows
    units = view.units(rows)
    free = [not unit.pinned for unit in units]
    squeezed = yield from shrink_calls(rows, desk, units, free, rules.limit, every_tool=True)
    _credit(saved, "compact", rows, squeezed)
    return squeezed


def _quotable(rows: list[Row], desk: Desk, begun: Begun) -> list[Row]:
    """The rows with their masked form at hand: it was made for the archive already. What compact wrote is masked."""
    return [
        replace(row, masked=desk.dialect.read(item))
        if row.source is not None and item is not row.message.origin and item != row.message.origin
        else row
        for row, item in zip(rows, begun.masked, strict=True)
    ]


def _fitted(
    rows: list[Row], desk: Desk, rules: Rules, view: View, begun: Begun, saved: dict[str, int]
) -> list[Row]:
    """The rows within the limit, markers included. The last rung needs no model: cut what is oversized, then drop."""
    limit = rules.limit
    for _ in range(_FITTING_ROUNDS):
        cut = _truncated(rows, desk, rules, view, begun, limit)
        after = _alternating(cut, desk)
        over = total(after) - rules.limit
        if over <= 0:
            _credit(saved, "truncate", rows, cut)
            return after
        limit -= over
    raise _insufficient(after, rules, view.units(after))


def _truncated(rows: list[Row], desk: Desk, rules: Rules, view: View, begun: Begun, limit: int) -> list[Row]:
    if total(rows) <= limit:
        return rows
    after = truncate(rows, desk, view.units(rows), lambda size: size - limit, begun.history_path)
    after = drop_oldest(after, view.units(after), lambda size: size - limit)
    if total(after) > limit:
        raise _insufficient(after, rules, view.units(after))
    return after


def _credit(saved: dict[str, int], stage: str, before: Sequence[Row], after: Sequence[Row]) -> None:
    gain = total(before) - total(after)
    if gain > 0:
        saved[stage] = saved.get(stage, 0) + gain


def _summaries_in(folded: Folded, view: View) -> frozenset[str]:
    new = {text_hash(made.text) for made in folded.folds}
    standing = {text_hash(row.message.text) for row in folded.rows if view.is_summary(row.message)}
    return frozenset(new | standing)


def _alternating(rows: list[Row], desk: Desk) -> list[Row]:
    """The rows with a marker wherever a dialect wants roles to alternate, and a user first."""
    gaps = set(role_gaps([row.message for row in rows], desk.dialect))
    found: list[Row] = []
    for place, row in enumerate(rows):
        if place in gaps:
            marker = gap_before(row.message)
            found.append(Row(marker, desk.count(marker), None, "marker"))
        found.append(row)
    return found


# --- check and commit


def _check(before: Sequence[Row], after: Sequence[Row], desk: Desk, rules: Rules, view: View) -> None:
    """The promises, held against the result before it replaces anything."""
    problems = structure_violations([row.message for row in after], desk.dialect)
    if problems:
        raise CompactError(f"the result would be illegal: {problems[0].message}", rule=problems[0].rule)
    if total(after) > rules.limit:
        raise _insufficient(after, rules, view.units(after))
    pinned = [row.source for row in before if view.is_pinned(row.message)]
    standing = {row.source for row in after if row.source is not None}
    if any(source not in standing for source in pinned if source is not None):
        raise CompactError("the result would lack a protected message")


def _pruned(
    before: Sequence[Row], after: Sequence[Row], desk: Desk, view: View, summaries: frozenset[str]
) -> Emit:
    pinned = sum(view.is_pinned(row.message) for row in after)
    summary = sum(text_hash(row.message.text) in summaries for row in after) if summaries else 0
    event = PrunedMessages(
        layers=Layers(pinned=pinned, summary=summary, recent=len(after) - pinned - summary),
        pruned_count=len(before) - sum(row.level != "summary" and row.level != "marker" for row in after),
        tokens_before=desk.scale(total(before)),
        tokens_after=desk.scale(total(after)),
    )
    return Emit(event)


def _written(row: Row, desk: Desk) -> Any:
    return desk.dialect.write(row.message)


def _insufficient(rows: Sequence[Row], rules: Rules, units: Sequence[Unit]) -> InsufficientBudget:
    shares: dict[str, int] = {}
    for unit in units:
        for n in range(unit.start, unit.stop):
            row = rows[n]
            what = f"protected {row.message.role}" if unit.pinned else row.message.role
            shares[what] = shares.get(what, 0) + row.tokens
    if rules.fixed:
        shares["tools and system prompt"] = rules.fixed
    table = ", ".join(f"{what} {tokens:,}" for what, tokens in sorted(shares.items(), key=lambda kv: -kv[1]))
    return InsufficientBudget(
        f"what must stay takes {total(rows):,} tokens, the budget for messages is {rules.limit:,} ({table})",
        hint="Protect less, shorten the system prompt or the tools, or use a model with a larger context window",
        needed=total(rows),
        budget=rules.limit,
        shares=shares,
    )
