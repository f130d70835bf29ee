"""Let the agent's own provider write the summary (`summary.model: native`).

It runs before the other stages, on the messages as the model saw them: the provider's cache serves them, and signed thinking stays
valid behind the block as long as nothing else changes. If the provider does not answer with a block, nothing has happened, and the
other stages do the work.

    Anthropic   block | what must stay of what it replaces | the newest messages
    OpenAI      what must stay, and the messages of the user | encrypted item | the newest messages
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from compact.engine.context import Context, Desk, Fold, NativeBlock, Row, total
from compact.engine.effects import Asking, Emit
from compact.engine.plan import choose_handed_over
from compact.engine.stages.fold import fold
from compact.errors import CompactError
from compact.events import Failure
from compact.messages import Message, Text
from compact.messages.compaction_blocks import has_block
from compact.messages.hygiene.sanitizing import valid_text
from compact.summaries.request import Reply, SummaryRequest


def compact_natively(context: Context) -> Asking[Context]:
    """Replace the oldest messages by what the provider makes of them. The context itself if it makes nothing of them."""
    rules = context.rules
    if not rules.fold_all and context.tokens <= max(rules.target, rules.summarize_above or 0):
        return context
    gone = choose_handed_over(context)
    stop = _stop(context, gone)
    if not gone or stop >= len(context.rows):
        return context
    items = [context.desk.dialect.write(row.own) for row in context.rows[:stop]]
    asked = SummaryRequest(
        messages=(),
        dialect=context.desk.dialect.NAME,
        strategy=rules.strategy,
        max_tokens=rules.summary_tokens,
        source="native",
        items=items,
    )
    try:
        reply: Reply = yield asked
        if not reply.items:
            return context  # the host has another summarizer for this call
        found = _swap(context, gone, stop, reply)
    except Exception as problem:
        yield _failure(context, asked, problem)
        return context
    extract = yield from _extract(context, sorted(gone), stop)
    return _with_extract(found, extract)


def _stop(context: Context, gone: set[int]) -> int:
    """The end of what is handed over. Summaries and ledgers of compact's own never stay behind a block."""
    last = max(gone, default=-1)
    for n, row in enumerate(context.rows):
        if context.is_summary(row.message):
            last = max(last, n)
    return next((unit.stop for unit in context.units if unit.start <= last < unit.stop), 0)


def _swap(context: Context, gone: set[int], stop: int, reply: Reply) -> Context:
    """The context with the provider's items in place of what was handed over.

    Raises:
        CompactError: that is not smaller than what it replaces.
    """
    rows, desk = context.rows, context.desk
    stays = [
        n
        for n in range(stop)
        if n not in gone and not has_block(rows[n].message) and not context.is_summary(rows[n].message)
    ]
    *users, last = [_row(item, context) for item in reply.items]
    if desk.dialect.RESULTS_IN_USER:
        prompts = [n for n in stays if rows[n].message.role == "system" and n == stays.index(n)]
        others = [n for n in stays if n not in prompts]
        standing = [*(rows[n] for n in prompts), last, *(rows[n] for n in others)]
    else:
        prompts, others = [], stays
        standing = [*_with_users(rows[:stop], set(stays), users, desk), last]
    if total(standing) >= total(rows[:stop]):
        raise CompactError(
            f"the provider's summary takes {desk.scale(total(standing)):,} tokens, not less than the "
            f"{desk.scale(total(rows[:stop])):,} that it replaces"
        )
    kept = rows[stop:]
    binds = (
        not others
        and rows[stop - 1].message.role != kept[0].message.role != "system"
        and kept[-1].message.role == "user"
    )
    block = NativeBlock(last.message, "", binds)
    found = context.with_rows([*standing, *kept], native=block)
    return found.credit("summarize", context.tokens - found.tokens)


def _row(item: Any, context: Context) -> Row:
    message = context.desk.dialect.read(item)
    return Row(message, context.desk.count(message), None, "summary")


def _with_users(rows: Sequence[Row], stays: set[int], users: Sequence[Row], desk: Desk) -> Iterator[Row]:
    """The rows that stay, and the messages of the user that the provider gave back: the host's own, where it has them."""
    waiting = list(users)
    for n, row in enumerate(rows):
        text = row.message.text if row.message.role == "user" else None
        match = next((user for user in waiting if user.message.text == text), None)
        if match is not None:
            waiting.remove(match)
        if match is not None or n in stays:
            yield row
    for user in waiting:
        yield desk.row(user.message, "summary")


def _extract(context: Context, gone: Sequence[int], stop: int) -> Asking[Fold]:
    """The summary that code writes of the same messages, for models that do not read the block."""
    rows = context.rows
    earlier = [row for row in rows[:stop] if context.is_summary(row.message)]
    inputs = [n for n in gone if not context.is_summary(rows[n].message)]
    if context.extract:
        message = Message("assistant", (Text(valid_text(context.extract)),))
        earlier.insert(0, Row(message, context.desk.count(message), None, "summary"))
    return (
        yield from fold(
            [rows[n] for n in inputs],
            context,
            max_tokens=context.rules.summary_tokens,
            earlier=earlier,
            places=inputs or gone,
            by_code=True,
        )
    )


def _with_extract(context: Context, extract: Fold) -> Context:
    block = context.native
    assert block is not None
    row = next(row for row in context.rows if row.message is block.message)
    made = replace(extract, row=row, writer="native", is_empty=False)
    return replace(
        context,
        native=replace(block, extract=extract.text),
        extract=extract.text,
        folds=(*context.folds, made),
    )


def _failure(context: Context, asked: SummaryRequest, problem: Exception) -> Emit:
    """The event for a provider that gave nothing. The other stages go on."""
    redact = context.desk.redact_output
    message = problem.message if isinstance(problem, CompactError) else str(problem) or "no message"
    event = Failure(
        error_type=type(problem).__name__, message=redact(valid_text(message)), fallback=context.desk.fallback
    )
    return Emit(event, payload={"source": asked.source, "input_messages": len(asked.items)})
