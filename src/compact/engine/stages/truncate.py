"""The last rung: cut what is oversized, head and tail; then drop the oldest units. Archived, but lost from the context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compact.engine.rows import Desk, Row, total
from compact.messages import Message, Part, Text, ToolResult
from compact.messages.excerpts import head_and_tail
from compact.messages.markers import POINTER_OPENS
from compact.messages.units import Unit

_MIN_TOKENS = 40
"""No message is cut below this: the rest would say nothing."""


def truncate(
    rows: Sequence[Row],
    desk: Desk,
    units: Sequence[Unit],
    excess: Callable[[int], int],
    where: str,
) -> list[Row]:
    """The rows with the bulkiest cut first, results before words, until `excess` of the total is zero or less.

    Pinned rows, and messages with signed reasoning, stay whole.
    """
    found = list(rows)
    free = [n for unit in units if not unit.pinned for n in range(unit.start, unit.stop)]
    free = [n for n in free if not found[n].message.signed and _cuttable(found[n].message)]
    size = total(found)
    by_bulk = sorted(free, key=lambda n: (not found[n].message.results, -found[n].tokens, n))
    for index in by_bulk:
        over = excess(size)
        if over <= 0:
            break
        row = found[index]
        if row.tokens <= _MIN_TOKENS * 2:
            continue
        cut = _cut(row.message, max(_MIN_TOKENS, row.tokens - over - 8), desk, where)
        shorter = desk.row(cut, "cut")
        if shorter.tokens < row.tokens:
            found[index] = shorter
            size += shorter.tokens - row.tokens
    return found


def drop_oldest(rows: Sequence[Row], units: Sequence[Unit], excess: Callable[[int], int]) -> list[Row]:
    """The rows without the oldest units, pairs whole, until `excess` of the total is zero or less.

    Pinned units, the newest unit and what opened the newest turn stay.
    """
    size = total(rows)
    newest_turn = max((unit.turn for unit in units), default=0)
    gone: set[int] = set()
    # A summary stands for everything that is gone already: it is the last to follow.
    for unit in sorted(units[:-1], key=lambda unit: unit.kind == "summary"):
        if excess(size) <= 0:
            break
        if unit.pinned or unit.in_flight or (unit.kind == "opener" and unit.turn == newest_turn):
            continue
        gone.update(range(unit.start, unit.stop))
        size -= sum(rows[n].tokens for n in range(unit.start, unit.stop))
    return [row for n, row in enumerate(rows) if n not in gone]


def _cuttable(message: Message) -> bool:
    return any(isinstance(part, Text | ToolResult) for part in message.parts)


def _cut(message: Message, tokens: int, desk: Desk, where: str) -> Message:
    """The message with its texts cut together to about `tokens` tokens; pictures and calls stay."""
    texts = [text for part in message.parts for text in _texts(part)]
    sizes = [desk.count_text(text) for text in texts]
    whole = sum(sizes)
    fixed = max(0, desk.count(message) - whole)
    room = max(_MIN_TOKENS // 2, tokens - fixed)
    note = f"{POINTER_OPENS}the middle is omitted; the whole is in {where}]"
    shares = iter([max(8, size * room // max(1, whole)) for size in sizes])
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            content = tuple(
                _cut_text(inner, next(shares), desk, note) if isinstance(inner, Text) else inner
                for inner in part.content
            )
            parts.append(replace(part, content=content))
        elif isinstance(part, Text):
            parts.append(_cut_text(part, next(shares), desk, note))
        else:
            parts.append(part)
    return message.with_parts(tuple(parts))


def _texts(part: Part) -> list[str]:
    if isinstance(part, ToolResult):
        return [inner.text for inner in part.content if isinstance(inner, Text)]
    return [part.text] if isinstance(part, Text) else []


def _cut_text(part: Text, tokens: int, desk: Desk, note: str) -> Text:
    if desk.count_text(part.text) <= tokens:
        return part
    return replace(part, text=head_and_tail(desk.redact(part.text), tokens, desk.count_text, note))
