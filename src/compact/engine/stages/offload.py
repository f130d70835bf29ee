"""Large tool results go to the archive at once; a preview, the path and how to read it stay. Reversible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compact.engine.effects import Asking, Emit, Store
from compact.engine.rows import Desk, Row, tool_names, with_result_text
from compact.events import Offload
from compact.messages import ToolResult
from compact.messages.excerpts import preview
from compact.messages.markers import POINTER_OPENS, is_pointer, is_recovery_output


def offload(
    rows: Sequence[Row],
    desk: Desk,
    pinned: frozenset[int] = frozenset(),
    names: Mapping[str, str] | None = None,
) -> Asking[list[Row]]:
    """Every result over the limit becomes a pointer, wherever it stands; protected rows stay as they are.

    `names` gives the tool of a call id, where the rows do not hold the calls themselves.
    """
    names = tool_names(rows) if names is None else names
    found = list(rows)
    for index, row in enumerate(rows):
        if index in pinned or row.tokens <= desk.large_result_tokens:
            continue
        message = row.message
        for place, part in enumerate(message.parts):
            if not isinstance(part, ToolResult) or not is_large(part.text, desk):
                continue
            name = part.name or names.get(part.call_id, "tool")
            text = part.text
            pointer = yield from offloaded(text, name, part.call_id, desk)
            if pointer is not text:
                message = with_result_text(message, place, pointer)
        if message is not row.message:
            found[index] = desk.row(message, "offloaded")
    return found


def is_large(text: str, desk: Desk) -> bool:
    """Whether a result belongs into the archive: too many tokens, and not itself something out of the archive."""
    if len(text) * 4 <= desk.large_result_tokens or is_pointer(text) or is_recovery_output(text):
        return False
    return desk.count_text(text) > desk.large_result_tokens


def offloaded(text: str, tool_name: str, tool_call_id: str, desk: Desk) -> Asking[str]:
    """The pointer that stands for a text, after the text is durable in the archive; the text, if that is shorter."""
    path = yield Store(text, tool_name, tool_call_id)
    shown = preview(desk.redact(text), desk.preview_lines, desk.preview_tokens, desk.count_text)
    tokens = desk.count_text(text)
    lines = text.count("\n") + 1
    pointer = (
        f"{POINTER_OPENS}the output of {desk.redact(tool_name)} is in {path}: {tokens:,} tokens, {lines:,} lines. "
        f'Read it with read_file("{path}"), search it with grep("...", "{path}"). It begins:]\n{shown}'
    )
    if desk.count_text(pointer) >= tokens:
        return text
    yield Emit(
        Offload(
            tool_name=tool_name,
            tool_call_id=tool_call_id,
            tokens_before=tokens,
            tokens_after=desk.count_text(pointer),
            file_path=path,
        )
    )
    return pointer
