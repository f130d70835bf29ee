"""`/compact` as a chat command: a person asks for a compaction in the chat itself.

handled = handle_command(manager, session_id, messages)
if handled is not None:
    messages = handled.messages    # the command is not among them, and no model is called
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compact.messages import Text
from compact.messages.dialects import detect, get, require_list
from compact.runtime.manager import CompactManager

__all__ = ["HandledCommand", "ahandle_command", "command_note", "handle_command"]

M = TypeVar("M")

_COMMAND = re.compile(r"/compact(?:\s+(?P<note>.*))?", re.IGNORECASE | re.DOTALL)
_NO_NOTE = "/compact"


@dataclass(frozen=True, slots=True)
class HandledCommand(Generic[M]):
    """What a chat command did."""

    messages: list[M]
    """The compacted session, without the command. A host keeps these and waits for the next message."""
    note: str
    """What the person wrote behind the command; the command itself if that was nothing."""
    tokens_before: int
    tokens_after: int


def command_note(messages: Sequence[Any], dialect: str | None = None) -> str | None:
    """Return the note of a `/compact` in the newest message; None if that is anything else.

    Only the text of a person counts: never a tool's output, in whatever role it stands, nor a message that a host marked as
    injected, nor one with anything beside the command.

    Raises:
        MessageError: the list is not recognisable, or its newest entry is not a message.
    """
    require_list(messages)
    if not messages:
        return None
    known = detect(messages) if dialect is None else get(dialect)
    newest = known.read(messages[-1])
    if not newest.starts_turn or not all(isinstance(part, Text) for part in newest.parts):
        return None
    found = _COMMAND.fullmatch(newest.text.strip())
    return None if found is None else (found["note"] or "").strip() or _NO_NOTE


def handle_command(
    manager: CompactManager,
    session_id: str,
    messages: Sequence[M],
    tools: Any = None,
    *,
    system: Any = None,
    dialect: str | None = None,
    model: str | None = None,
) -> HandledCommand[M] | None:
    """Compact the session if its newest message is `/compact`, with an optional note behind it; else return None.

    The note stands in the events of the pass. Raises what `manual_compact` raises; then nothing was changed.
    """
    note = command_note(messages, dialect)
    if note is None:
        return None
    before = list(messages[:-1])
    found = (
        manager.manual_compact(session_id, before, note, tools, system=system, dialect=dialect, model=model)
        if before
        else before
    )
    return _handled(manager, before, found, note, tools, system)


async def ahandle_command(
    manager: CompactManager,
    session_id: str,
    messages: Sequence[M],
    tools: Any = None,
    *,
    system: Any = None,
    dialect: str | None = None,
    model: str | None = None,
) -> HandledCommand[M] | None:
    """`handle_command` for async hosts."""
    note = command_note(messages, dialect)
    if note is None:
        return None
    before = list(messages[:-1])
    found = (
        await manager.amanual_compact(
            session_id, before, note, tools, system=system, dialect=dialect, model=model
        )
        if before
        else before
    )
    return _handled(manager, before, found, note, tools, system)


def _handled(
    manager: CompactManager, before: list[M], found: list[M], note: str, tools: Any, system: Any
) -> HandledCommand[M]:
    counts = [manager.estimate(items, tools, system=system).total for items in (before, found)]
    return HandledCommand(found, note, *counts)
