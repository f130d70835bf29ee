"""Replace the oldest units by a summary.

layered     pinned | one summary | recent. The oldest units go first, and only as many as it takes.
selective   user messages stay where they are; the runs between them become one assistant message each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from compact.engine.context import Context, Fold, Row, alternate, total
from compact.engine.effects import Asking
from compact.engine.plan import RUN_TOKENS, choose_folded, find_runs, folds_users, least_room, rows_of, spare
from compact.engine.stages.fold import fold, without_mark_of_kept
from compact.engine.user_words import cost, unseen
from compact.messages.message import text_hash

_MOST_OF_COST = 0.8
"""A summary takes at most this share of what it replaces."""
_MOST_OF_ALL = 0.5
"""The same if everything is folded that may be: the pass was asked for to make room."""
_Folded: TypeAlias = tuple[list[Row], tuple[Fold, ...]]
"""The rows with the summaries in place of what is gone, and these summaries."""
_MOST_ASKED = 8
"""Runs that a model is asked to summarize in one pass; code does the rest, because the agent is waiting."""


def summarize(context: Context) -> Asking[Context]:
    """Fold units by the rules' layout. A no-op up to `summarize_above`, unless everything is to be folded."""
    rules = context.rules
    if not rules.fold_all and context.tokens <= max(rules.target, rules.summarize_above or 0):
        return context
    return (yield from (_fold_runs if rules.layout == "selective" else _fold_oldest)(context))


def _fold_oldest(context: Context) -> Asking[Context]:
    """One summary in front of everything that is kept and not pinned. It takes an earlier summary in."""
    rules, rows = context.rules, context.rows
    gone = choose_folded(context)
    tokens = sum(rows[n].tokens for n in gone)
    room = (
        rules.summary_tokens
        if rules.fold_all
        else max(least_room(context), rules.target - (context.tokens - tokens))
    )
    most = _MOST_OF_ALL if rules.fold_all else _MOST_OF_COST
    made = yield from _fold_rows(context, sorted(gone), min(room, int(tokens * most)), words=True)
    if made is None or made.row.tokens >= tokens or made.is_empty:
        return context
    pinned = rows_of(context.units, pinned=True)

    def without(gone: Collection[int]) -> _Folded:
        kept = [n for n in range(len(rows)) if n not in gone]
        place = next((k for k, n in enumerate(kept) if n not in pinned), len(kept))
        after = [rows[n] for n in kept]
        one = without_mark_of_kept(made, [rows[n] for n in sorted(gone)], context.desk)
        return [*after[:place], one.row, *after[place:]], (one,)

    may_stay = () if rules.fold_all or rules.recent_tokens is not None else gone
    return _give_back(context, gone, may_stay, without)


def _fold_runs(context: Context) -> Asking[Context]:
    """Fold the runs between user messages, the earliest first, into one message each until the target is reached.

    Long single messages, such as summaries of earlier passes, are folded only if that is not enough. User messages stay
    unless everything between them, at its smallest, is still too much; then the oldest turns are folded.
    """
    if folds_users(context):
        return (yield from _fold_oldest(context))
    rules, rows = context.rules, context.rows
    runs, earlier = find_runs(context)
    costs = {run: total(rows[run.start : run.stop]) for run in (*runs, *earlier)}
    # What was folded before is folded again only if a pass would end close to the limit: the next one would come soon.
    enough = rules.target + (rules.keep_up_to - rules.target) // 5
    size, made_for, asked = context.tokens, dict[range, Fold](), 0
    ahead = sum(costs[run] for run in runs)
    for run, limit in [*((run, rules.target) for run in runs), *((run, enough) for run in earlier)]:
        if size <= limit and not rules.fold_all:
            continue
        tokens = costs[run]
        # Every run gets the same share. What a summary did not take goes to those behind it.
        share = min(0.5, (rules.target - (size - ahead)) / max(1, ahead))
        wanted = int(tokens * share) if run in runs else tokens // 4
        ahead -= tokens if run in runs else 0
        room = min(rules.summary_tokens, max(wanted, min(tokens // 2, RUN_TOKENS)))
        made = yield from _fold_rows(context, run, room, words=False, by_code=asked >= _MOST_ASKED)
        asked += room > RUN_TOKENS
        if made is not None and made.row.tokens < tokens and not made.is_empty:
            made_for[run] = made
            size -= tokens - made.row.tokens

    def without(gone: Collection[int]) -> _Folded:
        after, folds = list(rows), list[Fold]()
        for run in sorted(made_for, reverse=True, key=lambda run: run.start):
            one = without_mark_of_kept(made_for[run], [rows[n] for n in run if n in gone], context.desk)
            after[run.start : run.stop] = [one.row, *(rows[n] for n in run if n not in gone)]
            folds.insert(0, one)
        return after, tuple(folds)

    gone = {n for run in made_for for n in run}
    return _give_back(context, gone, () if rules.fold_all else gone, without)


def _give_back(
    context: Context,
    gone: Collection[int],
    may_stay: Collection[int],
    without: Callable[[Collection[int]], _Folded],
) -> Context:
    """The context without the rows that are `gone`, but with the newest that `may_stay` and have room.

    A context that is half empty has forgotten what it could have kept. The room is what the summaries and the ledger leave. What stays
    needs no place in the ledger.
    """
    rules = context.rules
    rows, folds = without(gone)
    own = context.summaries | {text_hash(made.text) for made in folds}

    def room_in(found: Context) -> int:
        ledger = cost(found, unseen(found.ledger, found.rows)) if rules.aside else 0
        return rules.target + rules.aside - total(alternate(found.rows, found.desk)) - ledger

    found, folded = context.with_rows(rows, summaries=own, folds=folds), set(may_stay)
    while more := spare(context, folded, room_in(found)):
        folded -= more
        rows, folds = without(folded)
        fuller = found.with_rows(rows, folds=folds)
        if room_in(fuller) < 0:
            break
        found = fuller
    return found


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
