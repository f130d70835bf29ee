"""The last rung: make the context fit the budget without a model, whatever it takes.

What it takes out is in the archive, but nothing in the context stands for it. The user's newest message is never cut, and
the newest unit goes last: the model has not seen its results yet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from compact.engine.check import check_budget
from compact.engine.context import Context, Desk, Row, alternate, total
from compact.engine.effects import Asking
from compact.engine.plan import newest_of_user
from compact.engine.stages.shrink_calls import shrink
from compact.messages import Message, Part, Text, ToolResult
from compact.messages.excerpts import head_and_tail
from compact.messages.message import POINTER_OPENS

_MIN_TOKENS = 40
"""No message is cut below this, because the rest would say nothing."""
_ROUNDS = 8
"""Markers between roles take room, too. Cutting for them can make others necessary."""
_TRIES = 4
"""A cut that comes out too long is made again, shorter by the excess."""


def truncate(context: Context) -> Asking[Context]:
    """Make the rows fit the budget, markers between roles included. A no-op if they fit already.

    Raises:
        InsufficientBudget: what is pinned, the user's newest message and the newest unit with its outputs as pointers are
            larger than the budget.
    """
    budget = context.rules.budget
    limit = budget
    for _ in range(_ROUNDS):
        context = yield from _reduce(context, limit)
        size = total(alternate(context.rows, context.desk))
        if size <= budget:
            return context
        limit = min(limit, budget - (size - context.tokens))
    check_budget(context.with_rows(alternate(context.rows, context.desk)))
    return context


def _reduce(context: Context, limit: int) -> Asking[Context]:
    """Reduce the rows to `limit`: what is old before what is new, and of both what can be read back first."""
    newest = _newest_unit(context)
    for is_newest in (False, True):
        if context.tokens <= limit:
            return context
        may_go = [
            not unit.pinned and (place == newest) is is_newest for place, unit in enumerate(context.units)
        ]
        context = yield from shrink(context, may_go, limit, every_tool=True)
        context = _cut_bulkiest(
            context, [n for n in _rows_of(context, may_go) if _may_be_cut(context, n)], limit
        )
        if not is_newest:
            context = _drop_oldest(context, limit, summaries=False)
            newest = _newest_unit(context)
    context = _drop_oldest(context, limit, summaries=True)
    check_budget(replace(context, rules=replace(context.rules, budget=limit)))
    return context


def _newest_unit(context: Context) -> int:
    """The place of the newest unit that is not a summary."""
    return max((place for place, unit in enumerate(context.units) if unit.kind != "summary"), default=-1)


def _rows_of(context: Context, chosen: Sequence[bool]) -> list[int]:
    return [
        n
        for unit, free in zip(context.units, chosen, strict=True)
        if free
        for n in range(unit.start, unit.stop)
    ]


def _may_be_cut(context: Context, index: int) -> bool:
    """Whether a row has text that may be cut. Signed messages, summaries and the user's newest message stay whole."""
    message = context.rows[index].message
    if message.signed or context.is_summary(message):
        return False
    if index in newest_of_user(context) and not message.results:
        return False
    return any(isinstance(part, Text | ToolResult) for part in message.parts)


def _cut_bulkiest(context: Context, free: Collection[int], limit: int) -> Context:
    """Cut the bulkiest of these rows, results before words, until the total is at most `limit`."""
    found = list(context.rows)
    size = context.tokens
    for index in sorted(free, key=lambda n: (not found[n].message.results, -found[n].tokens, n)):
        over = size - limit
        if over <= 0:
            break
        row = found[index]
        if row.tokens <= _MIN_TOKENS * 2:
            continue
        shorter = _cut_to(row, max(_MIN_TOKENS, row.tokens - over), context)
        if shorter.tokens < row.tokens:
            found[index] = shorter
            size += shorter.tokens - row.tokens
    return context.with_rows(found)


def _drop_oldest(context: Context, limit: int, *, summaries: bool) -> Context:
    """Drop the oldest units until the total is at most `limit`; a summary stands for much and is asked for by name.

    Pinned units, the newest unit and the user's newest message stay.
    """
    size, newest, users = context.tokens, _newest_unit(context), newest_of_user(context)
    gone: set[int] = set()
    for place, unit in enumerate(context.units):
        if size <= limit:
            break
        if unit.pinned or unit.in_flight or place == newest or unit.start in users:
            continue
        if (unit.kind == "summary") is not summaries:
            continue
        gone.update(range(unit.start, unit.stop))
        size -= context.tokens_of(unit)
    return context.with_rows([row for n, row in enumerate(context.rows) if n not in gone])


def _cut_to(row: Row, tokens: int, context: Context) -> Row:
    """The row with its texts cut, so that it takes `tokens` tokens at most if its fixed parts leave room for that."""
    room = tokens
    # Masked first: of a secret that is cut in two, nobody would know the pieces.
    masked = context.desk.rewrite(row.quotable)
    for _ in range(_TRIES):
        found = context.desk.row(_cut(masked, room, context.desk, context.history_path), "cut")
        over = found.tokens - tokens
        if over <= 0:
            break
        room -= over
    return found


def _cut(message: Message, tokens: int, desk: Desk, where: str) -> Message:
    """Cut the texts of a message together to about `tokens` tokens. Pictures and calls stay."""
    # Beside results, a text in the user's role is what a person added to them.
    is_person = message.role == "user" and bool(message.results)
    texts = [text for part in message.parts for text in _texts(part, is_person)]
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
        elif isinstance(part, Text) and not is_person:
            parts.append(_cut_text(part, next(shares), desk, note))
        else:
            parts.append(part)
    return message.with_parts(tuple(parts))


def _texts(part: Part, is_person: bool) -> list[str]:
    """The texts of a part that may be cut."""
    if isinstance(part, ToolResult):
        return [inner.text for inner in part.content if isinstance(inner, Text)]
    return [part.text] if isinstance(part, Text) and not is_person else []


def _cut_text(part: Text, tokens: int, desk: Desk, note: str) -> Text:
    if desk.count_text(part.text) <= tokens:
        return part
    cut = head_and_tail(part.text, tokens, desk.count_text, note)
    desk.written.note_cut(cut)
    return replace(part, text=cut)
