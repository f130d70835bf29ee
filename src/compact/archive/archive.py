"""`Archive`: where everything taken out of a context lies, redacted and restorable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from compact.archive import cursors, keys
from compact.archive.deadlines import Operation
from compact.archive.log import EventLog, Listener
from compact.archive.protocol import Problem, Redactor, Removed, Store, StoredOutput
from compact.archive.pruning import Pruner
from compact.archive.reading import Reader
from compact.archive.recent import Recent
from compact.archive.records import Record, Scribe, Session
from compact.archive.steps import Attempt, Steps
from compact.archive.stores import owners
from compact.archive.verifying import verify
from compact.errors import ArchiveError
from compact.events import Event, Recorder, Trace

DAY_S = 86_400.0
_LISTING_SHARE = 0.5
"""Of the time for an output; the rest is for storing it."""


class Archive(Reader):
    """One archive on one store. Safe to share between threads; other processes may use the same store.

    Everything written passes through a redactor first: each session's own, which `session_redactor` gives by id
    (by default a fresh `redactor.session()`). `listener` gets each batch of event lines after it was written.
    """

    def __init__(
        self,
        store: Store,
        redactor: Redactor,
        recorder: Recorder,
        *,
        session_redactor: Callable[[str], Redactor] | None = None,
        listener: Listener | None = None,
        attempt_ids: Callable[[], str] = owners.unique_id,
        attempt_ttl_s: float = DAY_S,
    ) -> None:
        # A session's folder must not depend on what its redactor has learnt, so ids are judged by the shared one.
        super().__init__(store, redactor.redact)
        self._redactor = redactor
        self._session_redactor = session_redactor or (lambda _: redactor.session())
        self._recorder = recorder
        self._log = EventLog(store, recorder, listener)
        self._steps = Steps(
            store,
            self,
            self._log,
            clock=recorder.clock,
            attempt_ids=attempt_ids,
            attempt_ttl_s=attempt_ttl_s,
        )
        self._entered: Recent[Session] = Recent()
        self._outputs: Recent[dict[str, str]] = Recent()

    @property
    def adapter(self) -> str:
        """The store's name: "fs", "s3", "memory"."""
        return self._store.adapter

    def begin(self, session_id: str, messages: Sequence[Any], *, dialect: str, after: int) -> Attempt:
        """A claim on the step that follows step `after` (0: none yet), with the whole transcript already durable.

        `after` is the step whose state the pass works from. If another worker commits first, `Attempt.commit` says so.

        Raises:
            ArchiveError: the transcript cannot be stored; nothing may be taken out of the context.
        """
        operation = Operation("step")
        with operation.entered():
            return self._steps.begin(self._enter(session_id), messages, dialect, after, operation)

    def append_events(self, session_id: str, events: Iterable[Event]) -> None:
        """Adds events to the session's log, in order, in one piece.

        Raises:
            ArchiveError: the log cannot be written; none of the events is in it.
        """
        with Operation("quick").entered():
            self._log.append(self._enter(session_id), events)

    def put_output(
        self,
        session_id: str,
        text: str,
        *,
        tool_name: str,
        tool_call_id: str,
        step: int = 0,
        trace: Trace | None = None,
    ) -> StoredOutput:
        """A tool's output, durable on return. The same text is stored once in a session, whichever call gave it.

        Raises:
            ArchiveError: it cannot be stored; it must stay in the context.
        """
        operation = Operation("quick")
        with operation.entered():
            session = self._enter(session_id)
            record = session.scribe.text(text)
            tool, call = session.scribe.label(tool_name), session.scribe.label(tool_call_id)
            with operation.sharing(_LISTING_SHARE):
                known = self._outputs_of(session.folder)

            def name(digits: int) -> str:
                found = known.get(record.sha256[:digits])
                return found or keys.output_name(tool, call, record.sha256, digits)

            stored = self._put_once(session, record, name, step, trace)
        known[keys.content_hash(stored.path[1:]) or ""] = stored.path[1:]
        return stored

    def put_removed(
        self, session_id: str, messages: Sequence[Any], *, step: int = 0, trace: Trace | None = None
    ) -> StoredOutput:
        """Messages that leave the context outside of a step, one JSON line each; the same messages are stored once.

        Raises:
            ArchiveError: they cannot be stored; they must stay in the context.
        """
        with Operation("quick").entered():
            session = self._enter(session_id)
            record = session.scribe.transcript(session.scribe.messages(messages))
            return self._put_once(
                session, record, lambda digits: keys.removed_name(record.sha256, digits), step, trace
            )

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """Reads everything (of one session, or of all) and lists what is not as it was written. Changes nothing."""
        folders = self._store.folders() if session_id is None else [self.folder(session_id)]
        return [problem for folder in folders for problem in verify(self._store, self, folder)]

    def prune(
        self,
        older_than: timedelta,
        *,
        now: datetime | None = None,
        dry_run: bool = False,
        session_id: str | None = None,
    ) -> list[Removed]:
        """Removes the records of old steps, and outputs that nothing left refers to; never a session's newest step.

        A pruned step keeps its number and its hashes. With `dry_run` nothing is removed; the list is the same.
        """
        now = now or self._recorder.clock()
        pruner = Pruner(self._store, self, self._redactor, now=now, before=now - older_than, dry_run=dry_run)
        folders = self._store.folders() if session_id is None else [self.folder(session_id)]
        return [removed for folder in folders for removed in pruner.prune(folder)]

    def listen(self, listener: Listener) -> None:
        """Lets another one hear what is written to the event logs from now on."""
        self._log.listen(listener)

    def lines(self, session_id: str) -> list[bytes]:
        """The whole lines of a session's event log, redacted."""
        return self.event_lines(self.folder(session_id))

    def cursor(self, session_id: str, exporter: str) -> str | None:
        """The last event that an exporter got from this log, by its span.

        None when it is not known, or when another process that still lives takes care of it.
        """
        return cursors.read(self._store, self.folder(session_id), exporter)

    def set_cursor(self, session_id: str, exporter: str, span_id: str) -> None:
        """Remembers the last event that an exporter got."""
        with Operation("quick").entered():
            cursors.write(self._store, self._enter(session_id), exporter, span_id)

    def close(self) -> None:
        """Ends what runs in the background. Records that wait in a spool stay there and go out another time."""
        self._store.close()

    def _enter(self, session_id: str) -> Session:
        """The session, with its folder made and known to be its own."""
        keys.check_session_id(session_id)
        known = self._entered.get(session_id)
        if known is not None:
            return known
        scribe = Scribe(self._session_redactor(session_id), self._redactor.redact(session_id))
        session = Session(session_id, self.folder(session_id), scribe)
        key = f"{session.folder}/{keys.SESSION}"
        outcome = self._store.create(key, scribe.session())
        if outcome == "taken" and session.folder == session_id:
            # Two ids that differ in case, on a filesystem that ignores it. (A hashed folder belongs to its hash.)
            raise ArchiveError(
                f"the folder {session.folder} belongs to another session: {self._owner_of(key)}",
                hint="Ids that differ only in case cannot share this archive: rename one of the sessions",
                key=key,
                reason="taken",
            )
        if outcome == "spooled":
            self._log.spooled(session)
        if not scribe.redacts:
            self._log.warn(
                session,
                "redaction_disabled",
                "high",
                "redaction is switched off: the archive and the events hold whatever the agent saw, secrets included",
            )
        self._entered[session_id] = session
        return session

    def _owner_of(self, key: str) -> str:
        try:
            return repr(json.loads(self._store.read(key) or b"")["session_id"])[:80]
        except (ValueError, KeyError, TypeError):
            return "its session.json cannot be read"

    def _put_once(
        self, session: Session, record: Record, name: Callable[[int], str], step: int, trace: Trace | None
    ) -> StoredOutput:
        """A record under a name made of its own hash: 12 digits of it, or all, should other bytes hold that name."""
        for digits in (12, 64):
            key = f"{session.folder}/{name(digits)}"
            began = self._recorder.clock()
            outcome = self._store.create(key, record)
            period = (began, self._recorder.clock())
            if outcome == "spooled":
                self._log.spooled(session)
            if outcome == "taken":
                continue
            if outcome != "same":
                self._log.archived(session, step, {name(digits): period}, trace)
            return StoredOutput(
                path=f"/{name(digits)}",
                address=self._store.address(key),
                sha256=record.sha256,
                bytes=len(record.data),
                new=outcome != "same",
            )
        raise ArchiveError(
            f"{key} holds other bytes than its name says",
            hint="The file was changed: restore it from a backup or remove it",
            key=key,
            reason="changed",
        )

    def _outputs_of(self, folder: str) -> dict[str, str]:
        """The session's outputs by the hash in their name."""
        known = self._outputs.get(folder)
        if known is not None:
            return known
        try:
            entries = self._store.entries(folder, f"{keys.OUTPUTS}/")
        except ArchiveError:
            return {}  # the same text may then be stored twice, which is better than not at all
        names = [entry.key.removeprefix(f"{folder}/") for entry in entries if not keys.is_hidden(entry.key)]
        known = self._outputs[folder] = {
            digest: name for name in names if (digest := keys.content_hash(name))
        }
        return known
