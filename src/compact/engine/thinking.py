"""Signed thinking in a pass. A model that binds a block to its prefix refuses every block behind a message that was changed.

So a pass works on the context without its signed thinking, and what stands before the first change gets its own back. Words and
calls are never touched. What is sent between passes is what was sent before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from compact.engine.context import Context, Desk, Row, total
from compact.messages.cache_marks import without_marks
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import begins_with
from compact.messages.legality import has_content
from compact.messages.thinking import bound_beside, bound_form, open_loop, without_thinking


@dataclass(frozen=True, slots=True)
class ThinkingRules:
    """What becomes of signed thinking behind the first message that a pass changes."""

    strip: bool = False
    """Whether it is taken out."""
    keep_open_loop: bool = True
    """Whether the tool loop that the next reply continues keeps its own all the same, as older models want it."""
    model: str = ""
    """The model that is asked."""
    reads: Callable[[str], bool] = field(default=lambda _: True, compare=False)
    """Whether it reads the blocks of another model."""


KEEP = ThinkingRules()
"""Signed thinking stays with its message."""


def take_thinking_out(rows: Sequence[Row], desk: Desk, rules: ThinkingRules) -> Sequence[Row]:
    """The rows without signed thinking; the same list if none is taken out.

    In a dialect where thinking is an entry of its own, calls refer to it, so it stays.
    """
    if not rules.strip or desk.dialect.ITEMS_ARE_PARTS or not any(row.message.signed for row in rows):
        return rows
    stop = open_loop([row.message for row in rows]) if rules.keep_open_loop else len(rows)
    return [bare_row(row, desk) if n < stop else row for n, row in enumerate(rows)]


def bare_row(row: Row, desk: Desk) -> Row:
    """The row without its signed thinking; the same one if it has none, or nothing else."""
    item = desk.dialect.write(row.message)
    found = bare_item(item, desk.dialect)
    if found is item:
        return row  # it has no thinking, or nothing else: see `settle_thinking`
    message = desk.dialect.read(found)
    masked = None if row.masked is None else without_thinking(row.masked)
    return replace(row, message=message, tokens=desk.count(message), bare_of=row.message, masked=masked)


def settle_thinking(context: Context, before: Sequence[Row], target: int, rules: ThinkingRules) -> list[Row]:
    """The rows of a result: before the first change with their thinking, if that fits the target; behind it without.

    A message behind it that is nothing but thinking is left out.
    """
    rows, given = context.rows, zip(context.rows, before, strict=False)
    same = sum(1 for _ in takewhile(lambda both: both[0].own is both[1].own, given))
    kept = [*before[:same], *rows[same:]]
    if total(kept) > target:
        kept, same = list(rows), 0
    if not rules.strip or rules.keep_open_loop or context.desk.dialect.ITEMS_ARE_PARTS:
        return kept
    behind = [row for row in kept[same:] if not row.message.signed or context.is_pinned(row.message)]
    return [*kept[:same], *behind]


def bare_item(item: Any, dialect: Dialect) -> Any:
    """A host's message without its signed thinking; the same object if it has none, or nothing else."""
    message = dialect.read(item)
    found = without_thinking(message)
    if found is None or found is message or not has_content(found, dialect):
        return item
    return dialect.write(found)


@dataclass(slots=True)
class BetweenPasses:
    """What becomes of signed thinking between two passes: it goes where what stands before it is not what it was made with.

    A pass settles its own changes, and compact makes no others behind a reply. But the host may have edited its history, its system
    prompt or its tools. A block of another model goes where the model that is asked does not read it. What was taken out once is
    taken out of the same message again, for hosts that pass their full history. Only the run that holds the session's lane uses it.
    """

    taken: dict[int, Any] = field(default_factory=dict)
    """The host's messages that lost their thinking, by their index in its list."""
    makers: list[str] = field(default_factory=list)
    """The models that were asked since all thinking was taken out, the newest last."""
    beside: tuple[Any, Any] = (None, None)
    """The system prompt and the tools of the call before."""

    def renew(self) -> BetweenPasses:
        """The same for the next run, when a run that lost the lane may still be using this one."""
        return BetweenPasses(dict(self.taken), list(self.makers), self.beside)

    def settle(
        self,
        items: Sequence[Any],
        sources: Sequence[int | None],
        sent: Sequence[Any],
        beside: tuple[Any, ...],
        dialect: Dialect,
        rules: ThinkingRules,
    ) -> tuple[dict[int, Any], list[int]]:
        """What stands for messages whose thinking goes, by their place in `items`, and the places of those that are new.

        Args:
            items: The context of this call.
            sources: For each message its index in the host's list, or None.
            sent: The request before; empty if it is not known.
            beside: The system prompt and the tools; None is not compared.
            dialect: The dialect of the messages.
            rules: What holds for the model that is asked.
        """
        unread = self._meets_unread(rules)
        if dialect.ITEMS_ARE_PARTS or not (rules.strip or unread or self.taken):
            return {}, []
        found = dict(self._again(items, sources, dialect))
        first = None
        if unread or (rules.strip and self._is_beside_changed(beside)):
            first = 0
        elif rules.strip:
            first = _first_change([found.get(n, item) for n, item in enumerate(items)], sent, dialect)
        new = []
        for n in range(len(items) if first is None else first, len(items)):
            if n not in found and (bare := bare_item(items[n], dialect)) is not items[n]:
                found[n] = bare
                new.append(n)
        return found, new

    def remember(self, items: Sequence[Any], sources: Sequence[int | None], places: Sequence[int]) -> None:
        """Note what lost its thinking now, so that it loses it again."""
        for n in places:
            source = sources[n]
            if source is not None:
                self.taken[source] = without_marks(items[n])

    def _meets_unread(self, rules: ThinkingRules) -> bool:
        """Whether blocks of a model that was asked before are not read by this one. Looked at when the model changes."""
        if self.makers[-1:] == [rules.model]:
            return False
        unread = any(not rules.reads(maker) for maker in self.makers)
        kept = [] if unread else [maker for maker in self.makers if maker != rules.model]
        self.makers = [*kept, rules.model]
        return unread

    def _again(
        self, items: Sequence[Any], sources: Sequence[int | None], dialect: Dialect
    ) -> Iterator[tuple[int, Any]]:
        for n, source in enumerate(sources) if self.taken else ():
            before = self.taken.get(source) if source is not None else None
            if before is not None and without_marks(items[n]) == before:
                yield n, bare_item(items[n], dialect)

    def _is_beside_changed(self, beside: tuple[Any, ...]) -> bool:
        (system, tools), (new_system, new_tools) = self.beside, beside
        self.beside = (new_system or system, new_tools or tools)
        changed = [
            (one, other)
            for one, other in ((system, new_system), (tools, new_tools))
            if one and other and one is not other and one != other
        ]
        return any(bound_beside(one) != bound_beside(other) for one, other in changed)


def _first_change(items: Sequence[Any], sent: Sequence[Any], dialect: Dialect) -> int | None:
    """The first place where a list is not what was sent, as far as thinking is bound to it; None if it begins with that."""
    if begins_with(items, sent):
        return None
    for n, (one, other) in enumerate(zip(items, sent, strict=False)):
        if one is not other and one != other and bound_form(one, dialect) != bound_form(other, dialect):
            return n
    return None if len(items) >= len(sent) else len(items)


def list_bare(bare: frozenset[int], rows: Sequence[Row]) -> frozenset[int]:
    """Which messages of the host's list stand without their signed thinking. `bare` are those that did before."""
    return frozenset(
        row.source
        for row in rows
        if row.source is not None and (row.bare_of is not None or row.source in bare)
    )
