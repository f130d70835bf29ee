"""A session's event log: the archive's own entries in it, how far each exporter has read it, and what is new in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from compact.archive import keys
from compact.archive.reading import Reader
from compact.archive.records import Scribe
from compact.archive.stores.port import Store
from compact.errors import ArchiveError
from compact.events import (
    Archival,
    Event,
    Finished,
    Recorder,
    Severity,
    Trace,
    TriggerDecision,
    Warned,
    WarningCode,
    moment,
    parse,
    session_trace,
)
from compact.events.session_key import SessionKey

Listener: TypeAlias = Callable[[SessionKey, bytes], None]
"""Receives a session and the redacted lines that were just written to its log. Must not raise or wait."""

Period: TypeAlias = tuple[datetime, datetime]

MANY = 50
"""In an archive of more sessions than this, sessions that have been quiet for a while are checked less often."""
QUIET_LOOKS = 300
SELDOM = 10


@dataclass(slots=True)
class OpenSession:
    """A session that is being written to, and what is remembered about it."""

    key: SessionKey
    folder: str
    scribe: Scribe
    tidy_at: int | None = None
    """All steps up to this one are known to be finished."""
    outputs: dict[str, str] | None = None
    """The names of stored outputs by the hash in them; None until they were listed."""
    listed: set[str] = field(default_factory=set)
    """Names that this process has put into the list of outputs."""
    is_list_durable: bool = True
    """Whether all entries of the list of outputs are. Those of copies may be lost with the power."""
    spooling: bool = False
    """Whether a warning about the current outage was logged."""
    unsaved: list[Mapping[str, str]] = field(default_factory=list)
    """Notes about what the redactor has learned that the store did not take yet."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.key.session_id

    @property
    def trace(self) -> Trace:
        """The session's trace."""
        return session_trace(*self.key)

    def outputs_in(self, store: Store) -> dict[str, str]:
        """The names of the session's outputs by the hash in them."""
        if self.outputs is None:
            try:
                blobs = store.blobs(self.folder, f"{keys.OUTPUTS}/")
            except ArchiveError:
                return {}  # the same text may then be stored twice, which is better than not at all
            names = [blob.name for blob in blobs if not blob.hidden]
            self.outputs = {digest: name for name in names if (digest := keys.content_hash(name))}
            self.listed.update(names)  # they were listed before they were written
        return self.outputs


class EventLog:
    """Appends events. They survive a killed process at once, and power loss after `sync`, which every step calls."""

    def __init__(self, store: Store, recorder: Recorder, listener: Listener | None) -> None:
        self._store = store
        self._recorder = recorder
        self._listeners = [] if listener is None else [listener]

    def listen(self, listener: Listener) -> None:
        """Call another listener for everything written from now on."""
        self._listeners.append(listener)

    def append(self, session: OpenSession, events: Iterable[Event]) -> None:
        """Add events to the session's log, in order and in one write.

        Raises:
            ArchiveError: the log cannot be written. None of the events is in it.
        """
        batch = list(events)
        if not batch:
            return
        record = session.scribe.events(batch)
        outcome = self._store.append(f"{session.folder}/{keys.EVENTS}", record)
        self.tell(session.key, record.data)
        if outcome == "mended":
            self.warn(
                session,
                "torn_events",
                "low",
                "a half-written last line was cut from the event log: its writer was killed or the disk was full",
            )
        elif outcome == "spooled":
            self.warn_spooled(session)
        else:
            session.spooling = False

    def tell(self, session: SessionKey, lines: bytes) -> None:
        """Call the listeners. The log of a tenant, which is a part of this one, calls them too."""
        for listener in self._listeners:
            listener(session, lines)

    def record_saved(
        self, session: OpenSession, step: int, saved: Mapping[str, Period | None], trace: Trace | None
    ) -> None:
        """Record that files were saved, and how long each took where that is known."""
        now = self._recorder.clock()
        self.append(
            session,
            [
                self._recorder.event(
                    Archival(
                        session_id=session.id,
                        step=step,
                        storage_adapter=self._store.adapter,
                        file_path=self._store.address(f"{session.folder}/{name}"),
                    ),
                    session_id=session.id,
                    step=step,
                    trace=trace or session.trace,
                    started_at=(period or (now, now))[0],
                    ended_at=(period or (now, now))[1],
                )
                for name, period in saved.items()
            ],
        )

    def warn_spooled(self, session: OpenSession) -> None:
        """Warn, once for each outage, that records wait in the local spool."""
        if not session.spooling:
            session.spooling = True
            self.warn(
                session,
                "spooled",
                "medium",
                "the object store did not take a record in time; it is safe in the local spool and goes out later",
            )

    def warn(
        self, session: OpenSession, code: WarningCode, severity: Severity, message: str, step: int = 0
    ) -> None:
        """Record a warning."""
        warning = Warned(code=code, severity=severity, message=message)
        event = self._recorder.event(warning, session_id=session.id, step=step, trace=session.trace)
        self.append(session, [event])

    def sync(self, session: OpenSession) -> None:
        """Make the session's log durable."""
        self._store.sync(f"{session.folder}/{keys.EVENTS}")


_ENDS = (TriggerDecision.NAME, Finished.NAME)


def last_called(lines: Sequence[bytes]) -> datetime | None:
    """Return when the session of a log was last called, by any worker; None if it never was.

    A call ends with the decision not to act, or with the end of its pass. Damaged lines are skipped.
    """
    for line in reversed(lines):
        if any(name.encode() in line for name in _ENDS):
            with suppress(ValueError):
                event = parse(json.loads(line))
                if event.name in _ENDS:
                    return moment(event.started_at)
    return None


def read_cursor(store: Store, folder: str, exporter: str) -> str | None:
    """Return the span of the last event that an exporter received.

    None if there is no cursor, or if it belongs to another process that still runs.
    """
    data = store.read(_cursor_key(folder, exporter))
    try:
        note = json.loads(data or b"")
        span_id, owner = str(note["span_id"]), str(note["owner"])
        own = owner.rpartition("-")[0] == keys.this_process()
        return span_id if own or keys.is_gone(owner) else None
    except (ValueError, KeyError, TypeError):
        return None


def write_cursor(store: Store, session: OpenSession, exporter: str, span_id: str) -> None:
    """Remember the last event that an exporter received, so that the next process continues there."""
    note = {"span_id": span_id, "owner": keys.unique_id()}
    store.replace(_cursor_key(session.folder, exporter), session.scribe.note(note))


def _cursor_key(folder: str, exporter: str) -> str:
    return f"{folder}/.exports/{exporter}.json"


@dataclass(frozen=True, slots=True)
class News:
    """New lines in a session's log. `first` is the number of the first one, counted from 0."""

    folder: str
    session_id: str
    first: int
    lines: list[bytes]


@dataclass(slots=True)
class _LogState:
    session_id: str
    size: int = -1
    """-1 before the first look, so that even an empty log is news once."""
    lines: int = 0
    quiet: int = 0
    """Consecutive looks that found nothing new."""


class LogWatcher:
    """Polls the event logs of an archive and reports what is new. Use it from one thread."""

    def __init__(self, archive: Reader, folders: Iterable[str] | None = None) -> None:
        self._archive = archive
        self._only = None if folders is None else list(folders)
        self._known: dict[str, _LogState] = {}
        self._looks = 0

    def look(self) -> list[News]:
        """Return what is new since the last look, by folder. A log that cannot be read now is retried next time.

        Raises:
            ArchiveError: the archive cannot be listed.
        """
        folders = self._archive.folders() if self._only is None else self._only
        found = []
        self._looks += 1
        for place, folder in enumerate(folders):
            if len(folders) > MANY and self._may_wait(folder, place):
                continue
            with suppress(ArchiveError):
                found.append(self._news(folder))
        return [news for news in found if news is not None]

    def _may_wait(self, folder: str, place: int) -> bool:
        known = self._known.get(folder)
        return known is not None and known.quiet > QUIET_LOOKS and (self._looks + place) % SELDOM != 0

    def _news(self, folder: str) -> News | None:
        known = self._known.get(folder)
        if known is None:
            session_id = self._archive.session_in(folder)
            if session_id is None:
                return None
            known = self._known[folder] = _LogState(session_id)
        size = self._archive.log_size(folder)
        if size == known.size:
            known.quiet += 1
            return None
        known.quiet = 0
        lines = self._archive.event_lines(folder)
        # Fewer lines than before: the folder was removed and made anew, so it is another log.
        first = known.lines if len(lines) >= known.lines else 0
        is_first_look = known.size < 0
        known.size, known.lines = size, len(lines)
        # The first look reports a session even if it has no event yet.
        return (
            News(folder, known.session_id, first, lines[first:]) if is_first_look or lines[first:] else None
        )
