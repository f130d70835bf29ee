"""Replace the oldest units by a summary.

layered     pinned | one summary | recent. The oldest units go first, and only as many as it takes.
selective   user messages stay where they are; the runs between them become one assistant message each.
"""

from __future__ import annotations

from dataclasses import replace

from compact.engine.context import Context, Fold, total
from compact.engine.effects import Asking, Emit
from compact.engine.plan import choose_folded, rows_of, spare, summary_room
from compact.engine.stages.fold import fold
from compact.events import SummaryCreated
from compact.messages.message import text_hash
from compact.messages.units import run_between_users


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
    folding = [(n, rows[n]) for n in sorted(gone)]
    inputs = [(n, row) for n, row in folding if not context.is_summary(row.message)]
    if not inputs:
        return context
    cost = sum(row.tokens for _, row in folding)
    made = yield from fold(
        [row for _, row in inputs],
        context,
        max_tokens=min(reserve, cost * 2 // 3),
        previous="\n\n".join(row.message.text for _, row in folding if context.is_summary(row.message)),
        previous_tokens=cost - sum(row.tokens for _, row in inputs),
        places=[n for n, _ in inputs],
    )
    if made.row.tokens >= cost or made.is_empty:
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
    """Run after run between user messages becomes one message, the earliest first, while it is still too much."""
    rules, rows = context.rules, list(context.rows)
    folds: list[Fold] = []
    places = list(range(len(rows)))
    while rules.fold_all or total(rows) > rules.target:
        messages = [row.message for row in rows]
        run = run_between_users(messages, context.desk.dialect, rules.retention_window, context.is_pinned)
        if run is None:
            break
        inputs = rows[run.start : run.stop]
        cost = total(inputs)
        made = yield from fold(
            inputs,
            context,
            max_tokens=min(rules.summary_tokens, cost // 2),
            places=places[run.start : run.stop],
            carry_instructions=False,
        )
        if made.row.tokens >= cost or made.is_empty:
            break
        folds.append(made)
        rows = [*rows[: run.start], made.row, *rows[run.stop :]]
        places[run.start : run.stop] = places[run.start : run.start + 1]
    return context.with_rows(rows, folds=tuple(folds))
