"""The session's event log, as the archive writes it: audit records for every save, warnings about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from compact.archive import keys
from compact.archive.protocol import Store
from compact.archive.records import Session
from compact.events import Archival, Event, Recorder, Severity, Trace, Warned, WarningCode

Listener: TypeAlias = Callable[[str, bytes], None]
"""Gets the lines that were just written to the log of a session, redacted. Must not raise or wait."""

Period: TypeAlias = tuple[datetime, datetime]


class EventLog:
    """Appends events. They are on disk after `sync`, which every step does; until then they survive a killed process."""

    def __init__(self, store: Store, recorder: Recorder, listener: Listener | None) -> None:
        self._store = store
        self._recorder = recorder
        self._listeners = [] if listener is None else [listener]
        self._spooling: set[str] = set()

    def listen(self, listener: Listener) -> None:
        """Lets another one hear what is written from now on."""
        self._listeners.append(listener)

    def append(self, session: Session, events: Iterable[Event]) -> None:
        """Adds events to the session's log, in order, in one piece.

        Raises:
            ArchiveError: the log cannot be written; none of the events is in it.
        """
        batch = list(events)
        if not batch:
            return
        record = session.scribe.events(batch)
        outcome = self._store.append(f"{session.folder}/{keys.EVENTS}", record)
        for listener in self._listeners:
            listener(session.id, record.data)
        if outcome == "mended":
            self.warn(
                session,
                "torn_events",
                "low",
                "a half-written last line was cut from the event log: its writer was killed or the disk was full",
            )
        elif outcome == "spooled":
            self.spooled(session)
        else:
            self._spooling.discard(session.folder)

    def archived(
        self, session: Session, step: int, saved: Mapping[str, Period | None], trace: Trace | None
    ) -> None:
        """Records that files were saved, and how long each took where that is known."""
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
                    trace=trace,
                    started_at=(period or (now, now))[0],
                    ended_at=(period or (now, now))[1],
                )
                for name, period in saved.items()
            ],
        )

    def spooled(self, session: Session) -> None:
        """Warns, once for each outage, that records wait in the local spool."""
        if session.folder not in self._spooling:
            self._spooling.add(session.folder)
            self.warn(
                session,
                "spooled",
                "medium",
                "the object store did not take a record in time; it is safe in the local spool and goes out later",
            )

    def warn(
        self, session: Session, code: WarningCode, severity: Severity, message: str, step: int = 0
    ) -> None:
        """Records a warning."""
        warning = Warned(code=code, severity=severity, message=message)
        self.append(session, [self._recorder.event(warning, session_id=session.id, step=step)])

    def sync(self, session: Session) -> None:
        """Makes the session's log durable."""
        self._store.sync(f"{session.folder}/{keys.EVENTS}")
