"""Move large tool results to the archive. A preview, the path and how to read it stay in the context. Reversible."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compact.engine.context import Context, Desk, Row, tool_names, with_result_text
from compact.engine.effects import Asking, Emit, Find, Store
from compact.engine.plan import rows_of
from compact.errors import ArchiveError
from compact.events import Offload, Warned
from compact.messages import ToolResult
from compact.messages.excerpts import MAX_TOKEN_CHARS, preview
from compact.messages.message import POINTER_OPENS

_MOST_FOUND = 32
"""Pointers of unknown origin that are looked up in one pass. A session has at most a few of them, after a restart."""
_LONGEST_POINTER = 20_000
"""Characters. Whatever is longer was not written as a preview."""
_POINTER = re.compile(
    re.escape(POINTER_OPENS)
    + r"the output of (?P<tool>[^\n]{1,200}) is in (?P<path>/tool_outputs/[^\s:]{1,300}): (?P<tokens>\d[\d,]{0,14}) tokens, "
)


class Offloaded(NamedTuple):
    """Where a text is in the archive, and what replaces it in the context."""

    path: str
    pointer: str


def offload(context: Context) -> Asking[Context]:
    """Replace every result over the limit by a pointer, wherever it stands. Pinned rows stay as they are."""
    rows, names = list(context.rows), tool_names(context.rows)
    for index in sorted(rows_of(context.units, pinned=False)):
        rows[index] = yield from offload_row(rows[index], context.desk, names)
    return context.with_rows(rows)


def offload_row(row: Row, desk: Desk, names: Mapping[str, str]) -> Asking[Row]:
    """Replace the large results of one row by pointers. `names` gives the tool of a call id.

    A row without large results is returned as it is.
    """
    if row.tokens <= desk.large_result_tokens:
        return row
    message = row.message
    for place, part in enumerate(message.parts):
        if not isinstance(part, ToolResult) or not is_large(part.text, desk):
            continue
        text = part.text
        name = part.name or names.get(part.call_id, "tool")
        stored = yield from store(text, name, part.call_id, desk)
        if stored.pointer is not text:
            message = with_result_text(message, place, stored.pointer)
    return row if message is row.message else desk.row(message, "offloaded")


def is_large(text: str, desk: Desk) -> bool:
    """Whether a result belongs in the archive: it has too many tokens and does not itself come from there."""
    written = desk.written
    if len(text) * 4 <= desk.large_result_tokens or written.is_pointer(text) or written.is_recalled(text):
        return False
    return is_long(text, desk) or desk.count_text(text) > desk.large_result_tokens


def is_long(text: str, desk: Desk) -> bool:
    """Whether a text has too many tokens for certain, so that it need not be counted."""
    return len(text) > desk.large_result_tokens * MAX_TOKEN_CHARS


def store(text: str, tool_name: str, tool_call_id: str, desk: Desk) -> Asking[Offloaded]:
    """Store a text. If the text is shorter than a pointer, it stays in the context as it is."""
    path = yield Store(text, tool_name, tool_call_id)
    tokens = desk.gauge_text(text)
    pointer = write_pointer(path, tool_name, text, f"{tokens:,}", desk)
    if desk.count_text(pointer) >= tokens:
        return Offloaded(path, text)
    desk.written.note_pointer(pointer)
    yield Emit(
        Offload(
            tool_name=tool_name,
            tool_call_id=tool_call_id,
            tokens_before=tokens,
            tokens_after=desk.count_text(pointer),
            file_path=path,
        )
    )
    return Offloaded(path, pointer)


def write_pointer(path: str, tool_name: str, text: str, tokens: str, desk: Desk) -> str:
    """The pointer to a text in the archive: where it is, how large it is, how to read it, and how it begins."""
    shown = preview(desk.redact_output(text), desk.preview_lines, desk.preview_tokens, desk.count_text)
    lines = text.count("\n") + 1
    return (
        f"{POINTER_OPENS}the output of {desk.redact(tool_name)} is in {path}: {tokens} tokens, {lines:,} lines. "
        f'Read it with read_file("{path}"), search it with grep("...", "{path}"). It begins:]\n{shown}'
    )


def recognise_pointers(rows: Sequence[Row], desk: Desk) -> Asking[None]:
    """Recognise the pointers of another process: those that are exactly what compact writes for a text in the archive.

    The number of tokens is taken as stated, because the archive keeps a text masked.
    """
    names, left = tool_names(rows), _MOST_FOUND
    for result in (result for row in rows for result in row.message.results):
        text = result.text
        if (
            len(text) > _LONGEST_POINTER
            or not text.startswith(POINTER_OPENS)
            or desk.written.is_pointer(text)
        ):
            continue
        head = _POINTER.match(text)
        if head is None or head["path"].count("/") != 2 or not left:
            continue
        left -= 1
        try:
            stored = yield Find(head["path"])
        except ArchiveError:
            continue
        tool = result.name or names.get(result.call_id, "tool")
        if stored is not None and write_pointer(head["path"], tool, stored, head["tokens"], desk) == text:
            desk.written.note_pointer(text)


def warn_of_copied_pointers(rows: Sequence[Row]) -> Asking[None]:
    """Models imitate what they see. A pointer in the arguments of a new call would be written to a file."""
    for row in rows:
        for call in row.message.calls:
            if POINTER_OPENS in call.arguments_text:
                message = (
                    f"the arguments of {call.name} ({call.id}) contain a pointer of ours instead of real text"
                )
                yield Emit(Warned(code="pointer_copied", severity="high", message=message))
