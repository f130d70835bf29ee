"""What the events of a pass say about its result."""

from __future__ import annotations

from collections.abc import Sequence

from compact.engine.context import Context, Desk
from compact.engine.effects import Asking, Emit
from compact.events import Kept, Layers, LedgerAction, LedgerChanged, PrunedMessages, SummaryCreated, Warned
from compact.messages.message import SUMMARY_OPENS, Message
from compact.summaries.ledger import Entry, Written


def report_summaries(context: Context) -> Asking[None]:
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


def report_ledger(before: Sequence[Entry], context: Context, written: Written) -> Asking[None]:
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


def count_pruned(before: Context, after: Context) -> PrunedMessages:
    """The event that says what left the context, and what was kept."""
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
