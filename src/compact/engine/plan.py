"""Which messages a summary replaces, and where it stands.

layered     pinned | one summary | recent. The oldest units go first, and only as many as it takes.
selective   user messages stay where they are; the runs between them become one assistant message each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compact.engine.effects import Asking, Begun
from compact.engine.rows import Desk, Row, total
from compact.engine.stages.shrink_calls import least_tokens
from compact.engine.stages.summarize import Fold, fold
from compact.events import PolicyInForce, Reason
from compact.messages import Message
from compact.messages.dialects import Dialect
from compact.messages.markers import text_hash
from compact.messages.units import Unit, removable, run_between_users
from compact.messages.units import units as units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The policy of one pass. Tokens are raw tokens of messages: tools and reply are already taken off."""

    limit: int
    """What the messages may take at most."""
    goal: int
    """How far down a pass goes."""
    fixed: int
    """What the tools and a system prompt outside the list take of the budget."""
    summarize_above: int
    """Nothing is folded while the messages take at most this."""
    fold_all: bool
    """Fold everything that may go, not only what must."""
    keep_turns: int
    keep_pairs: int
    never_prune: frozenset[str]
    layout: str
    retention_window: int
    recent_tokens: int | None
    strategy: str
    summary_tokens: int
    reason: Reason
    note: str | None
    policy: PolicyInForce


@dataclass(frozen=True, slots=True)
class View:
    """How a session is looked at: what is pinned in it, and which summaries are our own."""

    dialect: Dialect
    never_prune: frozenset[str]
    own_summaries: frozenset[str] = frozenset()

    def units(self, rows: Sequence[Row]) -> list[Unit]:
        """The units of the rows."""
        messages = [row.message for row in rows]
        return units_of(messages, self.dialect, is_pinned=self.is_pinned, is_summary=self.is_summary)

    def is_pinned(self, message: Message) -> bool:
        """Whether a message always stays."""
        return message.protected or message.role in self.never_prune

    def is_summary(self, message: Message) -> bool:
        """Whether compact wrote it as a summary in this session. Text that only looks like one is not."""
        return bool(self.own_summaries) and text_hash(message.text) in self.own_summaries


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows with summaries in them, and what was folded."""

    rows: list[Row]
    folds: tuple[Fold, ...] = ()


def reducible(rows: Sequence[Row], units: Sequence[Unit], rules: Rules) -> list[bool]:
    """For each unit, whether its bulk may become pointers. The newest pairs stay whole in at most half of the room."""
    for pairs in range(rules.keep_pairs, 0, -1):
        may_go = removable(units, rules.keep_turns, pairs)
        kept = sum(
            rows[n].tokens
            for unit, free in zip(units, may_go, strict=True)
            if not free and unit.kind == "pair" and not unit.pinned
            for n in range(unit.start, unit.stop)
        )
        if kept * 2 <= rules.goal:
            return may_go
    return removable(units, rules.keep_turns, min(1, rules.keep_pairs))


def bound_to_fold(rows: Sequence[Row], units: Sequence[Unit], desk: Desk, rules: Rules) -> set[int]:
    """Places of the units that will be folded even if everything else that may be reduced is: not worth reducing.

    Folded whole, they also give the summarizer their own words instead of pointers.
    """
    if rules.summarize_above or rules.layout == "selective" or rules.recent_tokens is not None:
        return set()
    may_go = removable(units, rules.keep_turns, rules.keep_pairs)
    least = [
        least_tokens(rows, unit, desk) if free else sum(rows[n].tokens for n in range(unit.start, unit.stop))
        for unit, free in zip(units, reducible(rows, units, rules), strict=True)
    ]
    size = sum(least)
    reserve = _summary_room(rows, units, rules)
    found: set[int] = set()
    for place, free in enumerate(may_go):
        if size + (reserve if found else 0) <= rules.goal:
            break
        if free:
            found.add(place)
            size -= least[place]
    return found


def layered(rows: list[Row], desk: Desk, rules: Rules, view: View, begun: Begun) -> Asking[Folded]:
    """One summary in front of everything that is kept and not pinned. It takes an earlier summary in."""
    units = view.units(rows)
    reserve = _summary_room(rows, units, rules)
    gone = _to_fold(rows, units, rules, reserve)
    folding = [rows[n] for n in sorted(gone)]
    inputs = [row for row in folding if not view.is_summary(row.message)]
    if not inputs:
        return Folded(rows)
    cost = total(folding)
    made = yield from fold(
        inputs,
        desk,
        step=begun.step,
        strategy=rules.strategy,
        max_tokens=min(reserve, cost * 2 // 3),
        where=begun.history_path,
        previous="\n\n".join(row.message.text for row in folding if view.is_summary(row.message)),
        previous_tokens=cost - total(inputs),
        places=[n for n in sorted(gone) if not view.is_summary(rows[n].message)],
    )
    if made.row.tokens >= cost or made.is_empty:
        return Folded(rows)
    if not rules.fold_all and rules.recent_tokens is None:
        gone -= _spared(rows, units, gone, rules.goal - (total(rows) - cost + made.row.tokens))
    pinned = {n for unit in units if unit.pinned for n in range(unit.start, unit.stop)}
    kept = [n for n in range(len(rows)) if n not in gone]
    place = next((k for k, n in enumerate(kept) if n not in pinned), len(kept))
    after = [rows[n] for n in kept]
    return Folded([*after[:place], made.row, *after[place:]], (made,))


def selective(rows: list[Row], desk: Desk, rules: Rules, view: View, begun: Begun) -> Asking[Folded]:
    """Run after run between user messages becomes one message, the earliest first, while it is still too much."""
    folds: list[Fold] = []
    places = list(range(len(rows)))
    while rules.fold_all or total(rows) > rules.goal:
        messages = [row.message for row in rows]
        run = run_between_users(messages, desk.dialect, rules.retention_window, view.is_pinned)
        if run is None:
            break
        inputs = rows[run.start : run.stop]
        cost = total(inputs)
        made = yield from fold(
            inputs,
            desk,
            step=begun.step,
            strategy=rules.strategy,
            max_tokens=min(rules.summary_tokens, cost // 2),
            where=begun.history_path,
            places=places[run.start : run.stop],
            carry_instructions=False,
        )
        if made.row.tokens >= cost or made.is_empty:
            break
        folds.append(made)
        rows = [*rows[: run.start], made.row, *rows[run.stop :]]
        places[run.start : run.stop] = places[run.start : run.start + 1]
    return Folded(rows, tuple(folds))


def _spared(rows: Sequence[Row], units: Sequence[Unit], gone: set[int], room: int) -> set[int]:
    """The newest of what was folded, as far as a short summary left room for it: a context half empty has forgotten."""
    found: set[int] = set()
    for unit in reversed(units):
        if unit.start not in gone or unit.kind == "summary":
            continue
        room -= sum(rows[n].tokens for n in range(unit.start, unit.stop))
        if room < 0:
            break
        found.update(range(unit.start, unit.stop))
    return found


def _to_fold(rows: Sequence[Row], units: Sequence[Unit], rules: Rules, reserve: int) -> set[int]:
    """The rows to fold. While the rest would not fit the limit, one turn less is kept, then one pair less, down to one."""
    turns, pairs = rules.keep_turns, rules.keep_pairs
    if rules.recent_tokens is not None:
        turns, pairs = 1, 0  # the share decides what is recent, not the counts
    reduce_turns = True
    while True:
        gone, size = _oldest(rows, units, rules, removable(units, turns, pairs), reserve)
        if size <= rules.limit or (turns <= 1 and pairs <= 1):
            return gone
        if (reduce_turns and turns > 1) or pairs <= 1:
            turns -= 1
        else:
            pairs -= 1
        reduce_turns = not reduce_turns


def _oldest(
    rows: Sequence[Row], units: Sequence[Unit], rules: Rules, may_go: Sequence[bool], reserve: int
) -> tuple[set[int], int]:
    """The oldest rows that may go, as many as it takes, and the size of what then stands."""
    gone: set[int] = set()
    size = total(rows)
    folded = 0
    recent = _recent_by_share(rows, units, rules.recent_tokens)
    for place, unit in enumerate(units):
        if not may_go[place] or place in recent:
            continue
        enough = size + min(reserve, folded) <= rules.goal
        if enough and not rules.fold_all and rules.recent_tokens is None and unit.kind != "summary":
            break
        cost = sum(rows[n].tokens for n in range(unit.start, unit.stop))
        gone.update(range(unit.start, unit.stop))
        size -= cost
        folded += cost
    return gone, size + min(reserve, folded)


def _recent_by_share(rows: Sequence[Row], units: Sequence[Unit], tokens: int | None) -> set[int]:
    """With a share for the recent part: the newest units that fit into it. All older ones are folded."""
    found: set[int] = set()
    if tokens is None:
        return found
    for place in range(len(units) - 1, -1, -1):
        unit = units[place]
        if unit.pinned:
            continue
        tokens -= sum(rows[n].tokens for n in range(unit.start, unit.stop))
        if tokens < 0:
            break
        found.add(place)
    return found


def _summary_room(rows: Sequence[Row], units: Sequence[Unit], rules: Rules) -> int:
    """Tokens for a summary: the configured number, less where the window is small."""
    pinned = sum(rows[n].tokens for unit in units if unit.pinned for n in range(unit.start, unit.stop))
    return max(48, min(rules.summary_tokens, (rules.limit - pinned) // 4))
