"""Old tool traffic becomes pointers: results, and the bulky arguments of calls that write files. Reversible.

Oldest first, and only until the context fits. Every text lies in the archive before its pointer stands in the context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compact.cuts import Unit
from compact.events import CallsShrunk
from compact.excerpts import fitting_head
from compact.markers import POINTER_OPENS, is_pointer, is_recovery_output
from compact.messages import Message, ToolCall, ToolResult, to_json
from compact.stages.base import Asking, Desk, Emit, Row, Store, tool_names, total, with_result_text

_PREVIEW_TOKENS = 24
_WORTH_TOKENS = 80
"""A text shorter than this is not worth a pointer."""


def shrink_calls(
    rows: Sequence[Row],
    desk: Desk,
    units: Sequence[Unit],
    may_go: Sequence[bool],
    fits: Callable[[int], bool],
    every_tool: bool = False,
) -> Asking[list[Row]]:
    """Pairs that may go are reduced until `fits` says that the total is low enough: repeated reads first, then by age.

    With `every_tool`, long arguments of any tool become pointers, not only of those that write files.
    """
    found = list(rows)
    size = total(found)
    names = tool_names(found)
    candidates = [unit for unit, free in zip(units, may_go, strict=True) if free and unit.kind == "pair"]
    repeated = _repeated(found, candidates)
    for unit in sorted(candidates, key=lambda unit: (unit.start not in repeated, unit.start)):
        if fits(size):
            break
        bound = any(found[index].message.signed for index in range(unit.start, unit.stop))
        for index in range(unit.start, unit.stop):
            row = found[index]
            shrunk = yield from _shrunk(row.message, desk, names, bound, every_tool)
            if shrunk is not row.message:
                found[index] = desk.row(shrunk, "shrunk")
                size += found[index].tokens - row.tokens
    return found


def _repeated(rows: Sequence[Row], candidates: Sequence[Unit]) -> set[int]:
    """The units that only read again what a later call reads too: the newest reading is the one that counts."""
    newest: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows):
        for call in row.message.calls:
            newest[(call.name, call.arguments_text)] = index
    found = set()
    for unit in candidates:
        calls = [
            (index, call) for index in range(unit.start, unit.stop) for call in rows[index].message.calls
        ]
        if calls and all(newest[(call.name, call.arguments_text)] > index for index, call in calls):
            found.add(unit.start)
    return found


def _shrunk(
    message: Message, desk: Desk, names: Mapping[str, str], bound: bool, every_tool: bool
) -> Asking[Message]:
    """The message with pointers in place of bulk. What is bound to signed reasoning is never edited, results are."""
    changed = message
    for place, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            text = part.text
            if not _is_bulky(text, desk) or is_recovery_output(text):
                continue
            name = part.name or names.get(part.call_id, "tool")
            pointer = yield from _pointer(text, f"the output of {name}", name, part.call_id, desk)
            if pointer is not text:
                changed = with_result_text(changed, place, pointer)
        elif isinstance(part, ToolCall) and not bound and (every_tool or part.name in desk.write_tools):
            arguments = yield from _shrunk_arguments(part, desk)
            if arguments is not None:
                parts = list(changed.parts)
                as_text = isinstance(part.arguments, str)
                parts[place] = replace(part, arguments=to_json(arguments) if as_text else arguments)
                changed = changed.with_parts(tuple(parts))
    return changed


def _shrunk_arguments(call: ToolCall, desk: Desk) -> Asking[dict[str, Any] | None]:
    """The same keys, with pointers in the place of long texts; None when there is nothing to gain."""
    arguments = call.parsed_arguments()
    if call.free_form or arguments is None:
        return None
    changed = False
    for key, value in arguments.items():
        if isinstance(value, str) and _is_bulky(value, desk):
            what = f"the {key} that {call.name} wrote"
            arguments[key] = yield from _pointer(value, what, call.name, call.id, desk)
            changed = changed or arguments[key] is not value
    return arguments if changed else None


def _is_bulky(text: str, desk: Desk) -> bool:
    return len(text) > _WORTH_TOKENS and not is_pointer(text) and desk.count_text(text) > _WORTH_TOKENS


def _pointer(text: str, what: str, tool_name: str, call_id: str, desk: Desk) -> Asking[str]:
    path = yield Store(text, tool_name, call_id)
    tokens = desk.count_text(text)
    head = fitting_head(desk.redact(text[:400]), _PREVIEW_TOKENS, desk.count_text)
    shown = " ".join(head.split())
    pointer = f"{POINTER_OPENS}{desk.redact(what)} is in {path}, {tokens:,} tokens] {shown} ..."
    if desk.count_text(pointer) >= tokens:
        return text
    yield Emit(
        CallsShrunk(
            tool_name=tool_name,
            tool_call_id=call_id,
            tokens_before=tokens,
            tokens_after=desk.count_text(pointer),
            file_path=path,
        )
    )
    return pointer
