"""What a pass may reduce, and which units a summary replaces. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from compact.engine.context import Context
from compact.messages.units import Unit, removable


def reducible(context: Context) -> list[bool]:
    """For each unit, whether its bulk may become pointers. The newest pairs stay whole in at most half of the target."""
    rules, units = context.rules, context.units
    for pairs in range(rules.keep_pairs, 0, -1):
        may_go = removable(units, rules.keep_turns, pairs)
        kept = sum(
            context.tokens_of(unit)
            for unit, free in zip(units, may_go, strict=True)
            if not free and unit.kind == "pair" and not unit.pinned
        )
        if kept * 2 <= rules.target:
            return may_go
    return removable(units, rules.keep_turns, min(1, rules.keep_pairs))


def doomed(context: Context, least: Sequence[int]) -> set[int]:
    """Places of the units that must be folded even if everything else is reduced. Reducing them gains nothing.

    Folded whole, they also give the summarizer their own words instead of pointers. `least` says what each unit costs
    when it is reduced.
    """
    rules, units = context.rules, context.units
    if rules.summarize_above or rules.layout == "selective" or rules.recent_tokens is not None:
        return set()
    size = sum(least)
    reserve = summary_room(context)
    found: set[int] = set()
    for place, free in enumerate(removable(units, rules.keep_turns, rules.keep_pairs)):
        if size + (reserve if found else 0) <= rules.target:
            break
        if free:
            found.add(place)
            size -= least[place]
    return found


def choose_folded(context: Context, reserve: int) -> set[int]:
    """Indices of the rows to fold into a summary of `reserve` tokens.

    While the rest would not fit the budget, one turn less is kept, then one pair less, down to one of each.
    """
    rules = context.rules
    turns, pairs = rules.keep_turns, rules.keep_pairs
    if rules.recent_tokens is not None:
        turns, pairs = 1, 0  # the share decides what is recent, not the counts
    reduce_turns = True
    while True:
        gone, size = _take_oldest(context, removable(context.units, turns, pairs), reserve)
        if size <= rules.budget or (turns <= 1 and pairs <= 1):
            return gone
        if (reduce_turns and turns > 1) or pairs <= 1:
            turns -= 1
        else:
            pairs -= 1
        reduce_turns = not reduce_turns


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


def summary_room(context: Context) -> int:
    """Tokens for a summary: the configured number, or fewer if the window is small."""
    pinned = sum(context.tokens_of(unit) for unit in context.units if unit.pinned)
    return max(48, min(context.rules.summary_tokens, (context.rules.budget - pinned) // 4))


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
