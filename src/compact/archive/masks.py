"""What masking remembers: the notes of a session's redactor and of live masking, as keyed hashes.

Without them a value that was masked before would appear. So the logs with these notes are chained like the events, states and
the list of outputs say how far they went, and a session that comes back without its notes is warned about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from compact.archive import keys
from compact.archive.copies import Copies
from compact.archive.log import EventLog, OpenSession
from compact.archive.reading import Reader
from compact.archive.records import Record
from compact.archive.stores.chain import LogHead
from compact.archive.stores.port import Chained
from compact.errors import ArchiveError


def read_notes(reader: Reader, log: str) -> list[dict[str, str]]:
    """Return the notes of a log, oldest first. Unreadable lines are left out."""
    notes = []
    for line in reader.store.read_log(log).split(b"\n"):
        with suppress(ValueError, RecursionError):
            notes.append(json.loads(line))
    return [note for note in notes if isinstance(note, dict)]


def add_note(reader: Reader, session: OpenSession, name: str, note: Record) -> None:
    """Add a note to a log, durable on return. The first of a process is followed by an entry in the list of outputs.

    That entry only says that there must be such a log, and is durable with the next output.

    Raises:
        ArchiveError: it cannot be written.
    """
    store, log = reader.store, f"{session.folder}/{name}"
    store.append(log, note)
    store.sync(log)
    head = store.head(log) if isinstance(store, Chained) and name not in session.listed else None
    if head is not None:
        session.listed.add(name)
        listed = f"{session.folder}/{keys.LISTED}"
        store.append(listed, session.scribe.listing(name, head.seal, head.place))
        session.is_list_durable = False


def save_learned(reader: Reader, session: OpenSession) -> None:
    """Save what the session's redactor has learned. What the store does not take now, it gets with the next note."""
    with suppress(ArchiveError):
        while session.unsaved:
            add_note(reader, session, keys.LEARNED, session.scribe.note(session.unsaved[0]))
            del session.unsaved[0]


def listed_head(copies: Copies, folder: str, name: str) -> LogHead | None:
    """Return how far the list of outputs saw a log of notes go; None if it never saw it."""
    entry = copies.listed(folder).get(name)
    return None if entry is None else LogHead(entry.bytes, entry.sha256)


def _lost_notes(reader: Reader, folder: str) -> Iterator[str]:
    """Find out which notes of a session are gone or not as they were written, and say why."""
    if not isinstance(reader.store, Chained):
        return
    for name in (keys.LEARNED, keys.PLACEHOLDERS):
        found = reader.store.check_log(f"{folder}/{name}")
        if found.problems:  # in a bucket, another process may have appended in between
            found = reader.store.check_log(f"{folder}/{name}")
        head = listed_head(reader.copies, folder, name)
        if found.problems:
            yield f"{name}: {found.problems[0]}"
        elif head is not None and found.lacks(head):
            yield f"{name} is gone or was made anew"


def warn_of_lost_notes(reader: Reader, log: EventLog, session: OpenSession) -> None:
    """Warn if values that were masked in a session may appear, because the notes about them are lost."""
    lost = "; ".join(_lost_notes(reader, session.folder))
    if lost:
        message = f"values that were masked before may appear: the notes about them are not as they were written: {lost}"
        log.warn(session, "state_reset", "high", message)
