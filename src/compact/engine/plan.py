"""What a pass may reduce, and which units a summary replaces. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from compact.engine.context import Context, total
from compact.messages import Message, Text
from compact.messages.units import Unit, removable, runs_between_users

_RECORD_SHARE = 0.75
"""The part of the room for old units that goes to a summary and its record, if one is needed."""
RUN_TOKENS = 100
"""Roughly the least that a summary of a run between user messages takes."""


def choose_kept(context: Context) -> tuple[int, int]:
    """How many of the newest turns and pairs stay whole: the configured numbers, as far as they fit `keep_up_to`.

    While what must stay beside them does not fit, one turn less is kept, then one pair less, down to one of each.
    """
    rules, reserve = context.rules, least_room(context)
    turns, pairs = rules.keep_turns, rules.keep_pairs
    reduce_turns = True
    while (turns > 1 or pairs > 1) and _least_size(context, turns, pairs, reserve) > rules.keep_up_to:
        if (reduce_turns and turns > 1) or pairs <= 1:
            turns -= 1
        else:
            pairs -= 1
        reduce_turns = not reduce_turns
    return turns, pairs


def _least_size(context: Context, turns: int, pairs: int, reserve: int) -> int:
    """The size of the context if `turns` and `pairs` stay whole and a summary of `reserve` tokens replaces the rest."""
    may_go = removable(context.units, turns, pairs)
    going = sum(context.tokens_of(unit) for unit, free in zip(context.units, may_go, strict=True) if free)
    return context.tokens - going + min(going, reserve)


def doomed(context: Context, may_go: Sequence[bool], least: Sequence[int]) -> set[int]:
    """Places of the units that must be folded even if everything else is reduced. Reducing them gains nothing.

    Folded whole, they also give the summarizer their own words instead of pointers. `least` says what each unit costs
    when it is reduced.
    """
    rules = context.rules
    if rules.summarize_above or rules.layout == "selective" or rules.recent_tokens is not None:
        return set()
    size = sum(least)
    reserve = summary_room(context, may_go)
    found: set[int] = set()
    for place, free in enumerate(may_go):
        if size + (reserve if found else 0) <= rules.target:
            break
        if free:
            found.add(place)
            size -= least[place]
    return found


def choose_folded(context: Context, reserve: int | None = None) -> set[int]:
    """Indices of the rows to fold into a summary: the oldest that may go, as many as it takes.

    In the selective layout user messages go only if everything between them is not enough. `reserve` are the tokens of the summary;
    None: what it may take with its record.
    """
    may_go = foldable(context)
    reserve = summary_room(context, may_go) if reserve is None else reserve
    if context.rules.layout == "selective":
        without_users = [
            free and unit.kind != "opener" for unit, free in zip(context.units, may_go, strict=True)
        ]
        gone, size = _take_oldest(context, without_users, reserve)
        if size <= context.rules.keep_up_to:
            return gone
    return _take_oldest(context, may_go, reserve)[0]


def choose_handed_over(context: Context) -> set[int]:
    """Indices of the rows that the provider's own summary replaces, which brings no record with it."""
    return choose_folded(context, context.rules.summary_tokens)


def _take_oldest(context: Context, may_go: Sequence[bool], reserve: int) -> tuple[set[int], int]:
    """The oldest rows that may go, as many as it takes, and the size of what then stands."""
    rules = context.rules
    gone: set[int] = set()
    size = context.tokens
    folded = 0
    recent = _recent_by_share(context)
    for place, unit in enumerate(context.units):
        if not may_go[place] or place in recent:
            continue
        enough = size + min(reserve, folded) <= rules.target
        if enough and not rules.fold_all and rules.recent_tokens is None and unit.kind != "summary":
            break
        cost = context.tokens_of(unit)
        gone.update(range(unit.start, unit.stop))
        size -= cost
        folded += cost
    return gone, size + min(reserve, folded)


def foldable(context: Context) -> list[bool]:
    """For each unit, whether a summary may replace it."""
    rules, units = context.rules, context.units
    if rules.layout == "selective":
        first_kept = len(context.rows) - rules.retention_window
        free = removable(units, 0, 0)
        return [may_go and unit.stop <= first_kept for unit, may_go in zip(units, free, strict=True)]
    if rules.recent_tokens is not None:
        return removable(units, 1, 0)  # the share decides what is recent, not the counts
    return removable(units, *choose_kept(context))


def find_runs(context: Context) -> tuple[list[range], list[range]]:
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
        run for run, row in zip(found, alone, strict=True) if len(run) == 1 and row.tokens > 2 * RUN_TOKENS
    ]
    return [run for run in found if len(run) > 1], earlier


def folds_users(context: Context) -> bool:
    """Whether user messages go, too: everything between them, at its smallest, is still too much."""
    rules = context.rules
    if rules.fold_all:
        return False
    costs = [total(context.rows[run.start : run.stop]) for runs in find_runs(context) for run in runs]
    return context.tokens - sum(cost - min(cost, RUN_TOKENS) for cost in costs) > rules.keep_up_to


def spare(context: Context, gone: set[int], room: int) -> set[int]:
    """The newest of the folded rows that still have room beside a short summary."""
    found: set[int] = set()
    for unit in reversed(context.units):
        if unit.start not in gone or unit.kind == "summary":
            continue
        room -= context.tokens_of(unit)
        if room < 0:
            break
        found.update(range(unit.start, unit.stop))
    return found


def least_room(context: Context) -> int:
    """Tokens that the newest turns and pairs leave for what is older, whatever they contain."""
    always = newest_of_user(context)
    fixed = sum(context.rows[n].tokens for n in rows_of(context.units, pinned=True) | always)
    return max(48, min(2 * context.rules.summary_tokens, (context.rules.budget - fixed) // 2))


def summary_room(context: Context, may_go: Sequence[bool]) -> int:
    """Tokens for a summary with its record, if one is needed.

    What is folded costs less as lines of a record than as messages, so the record gets the larger part of the room that is left
    for what may go. The rest goes to the newest of these units, which stay where they are.
    """
    units = zip(context.units, may_go, strict=True)
    staying = sum(context.tokens_of(unit) for unit, free in units if not free)
    return max(least_room(context), int((context.rules.target - staying) * _RECORD_SHARE))


def _recent_by_share(context: Context) -> set[int]:
    """Places of the newest units that fit the recent part's share. Empty without a share."""
    found: set[int] = set()
    tokens = context.rules.recent_tokens
    if tokens is None:
        return found
    for place, unit in reversed(list(enumerate(context.units))):
        if unit.pinned:
            continue
        tokens -= context.tokens_of(unit)
        if tokens < 0:
            break
        found.add(place)
    return found


def rows_of(units: Sequence[Unit], *, pinned: bool) -> frozenset[int]:
    """Indices of all rows in pinned units, or of all others."""
    return frozenset(n for unit in units if unit.pinned is pinned for n in range(unit.start, unit.stop))


def newest_of_user(context: Context) -> frozenset[int]:
    """The index of the newest message with words of a person, which are never cut; empty if there is none.

    In some dialects a person's words may stand in one message with the results before them.
    """
    found = [
        n
        for n, row in enumerate(context.rows)
        if _has_words_of_user(row.message) and not context.is_summary(row.message)
    ]
    return frozenset(found[-1:])


def _has_words_of_user(message: Message) -> bool:
    return message.starts_turn or (
        message.role == "user"
        and not message.injected
        and any(isinstance(part, Text) for part in message.parts)
    )
