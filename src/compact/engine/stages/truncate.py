"""The last rung: cut oversized messages to head and tail, then drop the oldest units. Needs no model.

What it takes out is in the archive, but nothing in the context stands for it.
"""

from __future__ import annotations

from dataclasses import replace

from compact.engine.check import check_budget
from compact.engine.context import Context, Desk, alternate, total
from compact.engine.effects import Asking
from compact.engine.plan import rows_of
from compact.engine.stages.shrink_calls import shrink
from compact.messages import Message, Part, Text, ToolResult
from compact.messages.excerpts import head_and_tail
from compact.messages.message import POINTER_OPENS

_MIN_TOKENS = 40
"""No message is cut below this, because the rest would say nothing."""
_ROUNDS = 5
"""Markers between roles take room, too. Cutting for them can make others necessary."""


def truncate(context: Context) -> Asking[Context]:
    """Make the rows fit the budget, markers between roles included. A no-op if they fit already.

    What is recent is reduced reversibly first. Then oversized messages are cut, and then the oldest units are dropped.

    Raises:
        InsufficientBudget: what must stay is larger than the budget.
    """
    budget, desk = context.rules.budget, context.desk
    if context.tokens > budget:
        may_go = [not unit.pinned for unit in context.units]
        context = yield from shrink(context, may_go, budget, every_tool=True)
    limit = budget
    for _ in range(_ROUNDS):
        after = _drop_oldest(_cut_bulkiest(context, limit), limit) if context.tokens > limit else context
        if after.tokens > limit:
            check_budget(replace(after, rules=replace(after.rules, budget=limit)))
        over = total(alternate(after.rows, desk)) - budget
        if over <= 0:
            return after
        limit -= over
    check_budget(after.with_rows(alternate(after.rows, desk)))
    return after


def _cut_bulkiest(context: Context, limit: int) -> Context:
    """Cut the bulkiest messages, results before words, until the total is at most `limit`.

    Pinned rows, and messages with signed reasoning, stay whole.
    """
    found = list(context.rows)
    free = [n for n in sorted(rows_of(context.units, pinned=False)) if _may_be_cut(found[n].message)]
    size = context.tokens
    by_bulk = sorted(free, key=lambda n: (not found[n].message.results, -found[n].tokens, n))
    for index in by_bulk:
        over = size - limit
        if over <= 0:
            break
        row = found[index]
        if row.tokens <= _MIN_TOKENS * 2:
            continue
        tokens = max(_MIN_TOKENS, row.tokens - over - 8)
        shorter = context.desk.row(_cut(row.message, tokens, context.desk, context.history_path), "cut")
        if shorter.tokens < row.tokens:
            found[index] = shorter
            size += shorter.tokens - row.tokens
    return context.with_rows(found)


def _drop_oldest(context: Context, limit: int) -> Context:
    """Drop the oldest units until the total is at most `limit`.

    Pinned units, the newest unit and the message that opened the newest turn stay.
    """
    size, units = context.tokens, context.units
    newest_turn = max((unit.turn for unit in units), default=0)
    gone: set[int] = set()
    # A summary stands for everything that is gone already, so it is the last to go.
    for unit in sorted(units[:-1], key=lambda unit: unit.kind == "summary"):
        if size <= limit:
            break
        if unit.pinned or unit.in_flight or (unit.kind == "opener" and unit.turn == newest_turn):
            continue
        gone.update(range(unit.start, unit.stop))
        size -= context.tokens_of(unit)
    return context.with_rows([row for n, row in enumerate(context.rows) if n not in gone])


def _may_be_cut(message: Message) -> bool:
    return not message.signed and any(isinstance(part, Text | ToolResult) for part in message.parts)


def _cut(message: Message, tokens: int, desk: Desk, where: str) -> Message:
    """Cut the texts of a message together to about `tokens` tokens. Pictures and calls stay."""
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
