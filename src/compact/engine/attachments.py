"""Pictures and documents that a provider would refuse. It limits their number in a request, however large its window is.

The oldest leave the context, until half of what is allowed is left, so that the next ones fit for a while. The transcript of
the step has them; a text stands in their place, in the same message. The user's newest message, protected messages and
what a provider's tool must answer stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from compact.engine.context import Context, Desk, Row, tool_names
from compact.engine.effects import Asking, Emit
from compact.engine.limits import Decision, Rules
from compact.engine.plan import newest_of_user, rows_of
from compact.events import Offload
from compact.messages import Message, Part, Text, ToolResult
from compact.messages.attachments import Attachment, attachments
from compact.messages.cache_marks import mark_of_block
from compact.messages.message import POINTER_OPENS
from compact.tokens import Estimate
from compact.tokens.models import RequestLimits

REFUSED = Decision(True, "budget")
"""The decision for a pass over a request that fits the window and that the provider would refuse all the same."""

_TOKEN_CHARS = 4
"""Roughly what a token takes in a request's body."""
_LEAST_CHARS = 1_000
"""Whatever is smaller weighs no more than the text in its place."""
_MOST_IN_CONVERSE = (20, 5)
"""Images and documents in a request to Bedrock's Converse, whatever the model takes elsewhere."""


def limits_for(limits: RequestLimits, dialect: str) -> RequestLimits:
    """What a model takes in one request in this dialect."""
    return limits.with_most(*_MOST_IN_CONVERSE) if dialect == "converse" else limits


def may_exceed(estimate: Estimate, limits: RequestLimits) -> bool:
    """Whether a request may hold more than its provider takes. Costs nothing: what was counted decides."""
    counts = [most for most in (limits.images, limits.documents) if most is not None]
    return bool(estimate.attached) and (
        any(estimate.attached > most for most in counts)
        or (limits.bytes is not None and _body(estimate.attached_chars, estimate.total) > limits.bytes)
    )


def is_refused(
    rows: Sequence[Row], rules: Rules, desk: Desk, summaries: frozenset[str], limits: RequestLimits
) -> bool:
    """Whether the provider would refuse these messages for what they hold, and some of it may leave them."""
    context = Context(rows=rows, rules=rules, desk=desk, step=0, history_path="", summaries=summaries)
    return bool(choose_leaving(context, limits))


def choose_leaving(context: Context, limits: RequestLimits) -> dict[int, list[Attachment]]:
    """What has to leave the context, by row; empty if the provider takes the request, or nothing may leave."""
    found = [(n, each) for n, row in enumerate(context.rows) for each in attachments(row.message)]
    counts = {"image": 0, "document": 0}
    chars = _body(sum(each.chars for _, each in found if each.is_inline), context.tokens)
    for _, each in found:
        counts[each.kind] += 1
    goals = {
        "image": _goal(counts["image"], limits.images),
        "document": _goal(counts["document"], limits.documents),
    }
    most_chars = _goal(chars, limits.bytes)
    free = rows_of(context.units, pinned=False) - newest_of_user(context)
    leaving: dict[int, list[Attachment]] = defaultdict(list)
    for n, each in found:
        row = context.rows[n]
        if n not in free or row.message.role not in ("user", "tool") or not each.may_leave:
            continue
        weight = each.chars if each.is_inline else 0
        if counts[each.kind] > goals[each.kind] or (chars > most_chars and weight >= _LEAST_CHARS):
            leaving[n].append(each)
            counts[each.kind] -= 1
            chars -= weight
    return dict(leaving)


def move_attachments(context: Context, limits: RequestLimits) -> Asking[Context]:
    """Put a text in the place of everything that has to leave. The transcript is durable when this runs."""
    leaving = choose_leaving(context, limits)
    if not leaving:
        return context
    rows, names, desk = list(context.rows), tool_names(context.rows), context.desk
    for n, gone in leaving.items():
        row = rows[n]
        rows[n] = desk.row(_without(row.message, gone, context), "offloaded")
        call_id = next((result.call_id for result in row.message.results), "")
        yield Emit(
            Offload(
                tool_name=names.get(call_id, row.message.role),
                tool_call_id=call_id,
                tokens_before=desk.scale(row.tokens),
                tokens_after=desk.scale(rows[n].tokens),
                file_path=context.history_path,
            )
        )
    changed = context.with_rows(rows)
    return changed.credit("offload", context.tokens - changed.tokens)


def _body(chars: int, tokens: int) -> int:
    """Roughly the bytes of a request's body."""
    return chars + _TOKEN_CHARS * tokens


def _goal(count: int, most: int | None) -> int:
    """How many may stay: half of what is allowed, once it is more."""
    return count if most is None or count <= most else most // 2


def _without(message: Message, gone: Sequence[Attachment], context: Context) -> Message:
    parts = list(message.parts)
    for each in gone:
        part = parts[each.place]
        if each.inner is None or not isinstance(part, ToolResult):
            parts[each.place] = _pointer(part, each, context)
            continue
        content = list(part.content)
        content[each.inner] = _pointer(content[each.inner], each, context)
        parts[each.place] = replace(part, content=tuple(content))
    for part in parts:
        if isinstance(part, ToolResult) and part.text.startswith(POINTER_OPENS):
            context.desk.written.note_pointer(part.text)
    return message.with_parts(tuple(parts))


def _pointer(part: Part, gone: Attachment, context: Context) -> Text:
    """What stands in the place of a picture or a document. A cache mark on it stays."""
    article = "an" if gone.kind == "image" else "a"
    size = f"{gone.size:,} bytes" if gone.is_inline else "given by its address"
    about = f"{gone.media_type}, {size}" if gone.media_type else size
    text = (
        f"{POINTER_OPENS}{article} {gone.kind} ({about}) stood here. The provider takes no more of them, so the oldest are in "
        f"the archived transcript of step {context.step}; {context.history_path} has the words around it]"
    )
    mark = mark_of_block(part.origin)
    return Text(text, origin=None if mark is None else {"type": "text", "text": text, **mark})
