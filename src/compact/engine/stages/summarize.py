"""Replace the oldest units by a summary.

layered     pinned | one summary | recent. The oldest units go first, and only as many as it takes.
selective   user messages stay where they are; the runs between them become one assistant message each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compact.engine.context import Context, Fold, total
from compact.engine.effects import Asking, Emit
from compact.engine.plan import choose_folded, rows_of, spare, summary_room
from compact.engine.stages.fold import fold
from compact.events import SummaryCreated
from compact.messages.message import text_hash
from compact.messages.units import runs_between_users

_RUN_TOKENS = 100
"""Roughly the least that a summary of a run between user messages takes."""
_MOST_ASKED = 8
"""Runs that a model is asked to summarize in one pass; code does the rest, because the agent is waiting."""


def summarize(context: Context) -> Asking[Context]:
    """Fold units by the rules' layout. A no-op up to `summarize_above`, unless everything is to be folded."""
    rules = context.rules
    if not rules.fold_all and context.tokens <= max(rules.target, rules.summarize_above or 0):
        return context
    folded = yield from (_fold_runs if rules.layout == "selective" else _fold_oldest)(context)
    for made in folded.folds:
        if made.writer == "none":
            continue  # pruned without a summary: the error that led to it has its own event
        event = SummaryCreated(
            strategy=made.strategy,
            input_messages=made.input_messages,
            summary_tokens=context.desk.scale(made.row.tokens),
            compression_ratio=round(made.row.tokens / max(1, made.input_tokens), 4),
        )
        yield Emit(event, payload={"summary": made.text})
    return replace(folded, summaries=context.summaries | {text_hash(made.text) for made in folded.folds})


def _fold_oldest(context: Context) -> Asking[Context]:
    """One summary in front of everything that is kept and not pinned. It takes an earlier summary in."""
    rules, rows = context.rules, context.rows
    reserve = summary_room(context)
    gone = choose_folded(context, reserve)
    cost = sum(rows[n].tokens for n in gone)
    made = yield from _fold_rows(context, sorted(gone), min(reserve, cost * 2 // 3), words=True)
    if made is None or made.row.tokens >= cost or made.is_empty:
        return context
    if not rules.fold_all and rules.recent_tokens is None:
        # A context that is half empty has forgotten what it could have kept.
        gone -= spare(context, gone, rules.target - (context.tokens - cost + made.row.tokens))
    pinned = rows_of(context.units, pinned=True)
    kept = [n for n in range(len(rows)) if n not in gone]
    place = next((k for k, n in enumerate(kept) if n not in pinned), len(kept))
    after = [rows[n] for n in kept]
    return context.with_rows([*after[:place], made.row, *after[place:]], folds=(made,))


def _fold_runs(context: Context) -> Asking[Context]:
    """Fold the runs between user messages, the earliest first, into one message each until the target is reached.

    Long single messages, such as summaries of earlier passes, are folded only if that is not enough. User messages stay
    unless everything between them, at its smallest, is still too much; then the oldest turns are folded.
    """
    rules, rows = context.rules, context.rows
    runs, earlier = _find_runs(context)
    costs = {run: total(rows[run.start : run.stop]) for run in (*runs, *earlier)}
    beside = context.tokens - sum(costs.values())
    if (
        beside + sum(min(cost, _RUN_TOKENS) for cost in costs.values()) > rules.keep_up_to
        and not rules.fold_all
    ):
        return (yield from _fold_oldest(context))
    # A pass that ends close to the limit is soon followed by the next one.
    enough = rules.target + (rules.keep_up_to - rules.target) // 5
    room_for_runs = enough - beside - sum(costs[run] for run in earlier)
    share = min(0.5, room_for_runs / max(1, sum(costs[run] for run in runs)))
    size, made_for, asked = context.tokens, dict[range, Fold](), 0
    for run, limit in [*((run, rules.target) for run in runs), *((run, enough) for run in earlier)]:
        if size <= limit and not rules.fold_all:
            continue
        cost = costs[run]
        wanted = int(cost * share) if run in runs else cost // 4
        room = min(rules.summary_tokens, max(wanted, min(cost // 2, _RUN_TOKENS)))
        made = yield from _fold_rows(context, run, room, words=False, by_code=asked >= _MOST_ASKED)
        asked += room > _RUN_TOKENS
        if made is not None and made.row.tokens < cost and not made.is_empty:
            made_for[run] = made
            size -= cost - made.row.tokens
    after = list(rows)
    in_order = sorted(made_for, key=lambda run: run.start)
    for run in reversed(in_order):
        after[run.start : run.stop] = [made_for[run].row]
    return context.with_rows(after, folds=tuple(made_for[run] for run in in_order))


def _find_runs(context: Context) -> tuple[list[range], list[range]]:
    """The runs between user messages; and long single messages, most of which earlier passes left of such runs."""
    rows, rules = context.rows, context.rules
    messages = [row.message for row in rows]
    found = list(
        runs_between_users(
            messages, context.desk.dialect, rules.retention_window, context.is_pinned, shortest=1
        )
    )
    alone = [rows[run.start] for run in found]
    earlier = [
        run for run, row in zip(found, alone, strict=True) if len(run) == 1 and row.tokens > 2 * _RUN_TOKENS
    ]
    return [run for run in found if len(run) > 1], earlier


def _fold_rows(
    context: Context, places: Sequence[int], room: int, *, words: bool, by_code: bool = False
) -> Asking[Fold | None]:
    """One summary of the rows at these places. Earlier summaries among them are taken in.

    With `words`, it carries what the user said in them. None: one earlier summary alone is not worth another.
    """
    rows = context.rows
    earlier = [rows[n] for n in places if context.is_summary(rows[n].message)]
    inputs = [n for n in places if not context.is_summary(rows[n].message)]
    if not inputs and len(earlier) <= (1 if words else 0):
        return None
    return (
        yield from fold(
            [rows[n] for n in inputs],
            context,
            max_tokens=room,
            earlier=earlier,
            places=inputs or places,
            carry_instructions=words,
            by_code=by_code,
        )
    )
