"""Write what is noted of a session beside its steps: that its newest step is forgotten, and what the host pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compact.archive import keys
from compact.archive.log import OpenSession
from compact.archive.masks import add_note
from compact.archive.notes import reset_note
from compact.archive.reading import Reader
from compact.archive.records import Record


def forget_newest(reader: Reader, session: OpenSession, list_output: Callable[[str, Record], None]) -> int:
    """Note that nothing of the newest step and of what was pinned stands any more. Returns the step's number.

    Raises:
        ArchiveError: that cannot be written.
    """
    newest = max(reader.steps_in(session.folder), default=0)
    if newest:
        name, note = keys.reset_name(newest), session.scribe.sealed(reset_note(newest))
        key = f"{session.folder}/{name}"
        if reader.store.create(key, note) == "taken":
            reader.store.replace(key, note)  # what is there is no reset that counts, or says the same
        list_output(name, note)
    if reader.pins_in(session.folder):
        add_note(reader, session, keys.PINS, session.scribe.pin({"reset": newest}))
    return newest


def add_pin(reader: Reader, session: OpenSession, change: Mapping[str, Any]) -> None:
    """Add a change to what the host pinned, durable on return.

    Raises:
        ArchiveError: it cannot be written.
    """
    if not reader.pins_in(session.folder):
        # A host's filesystem keeps the states, and not this log.
        latest = reader.latest_in(session.folder)
        base = 0 if latest is None else int(latest.state.get("pins", 0))
        change = {**change, "base": base} if base else change
    add_note(reader, session, keys.PINS, session.scribe.pin(change))
