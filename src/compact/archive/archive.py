"""`Archive`: keeps everything that was taken out of a context, redacted and restorable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from compact.archive import keys
from compact.archive.factors import verify_models
from compact.archive.log import EventLog, Listener, OpenSession, read_cursor, write_cursor
from compact.archive.masks import add_note, read_notes, save_learned, warn_of_lost_notes
from compact.archive.notes import tenant_note
from compact.archive.noting import add_pin, forget_newest
from compact.archive.outputs import OutputFiles, StoredOutput
from compact.archive.reading import Reader
from compact.archive.recent import Recent
from compact.archive.records import (
    ArchiveRedactor,
    Scribe,
    session_id_in,
    tenant_in,
    trust_stored,
)
from compact.archive.seals import KeySource, open_seals
from compact.archive.steps import Attempt, Attempts
from compact.archive.stores.port import Chained, Copying, Operation, Store
from compact.archive.stores.tenants import tenant_store
from compact.archive.upkeep import Pruned, Pruner
from compact.archive.verifying import Defect, verify, verify_tenant
from compact.errors import ArchiveError, ConfigError
from compact.events import Event, Recorder, Trace
from compact.events.session_key import SessionKey
from compact.redaction import as_redactor

DAY_S = 86_400.0
_LISTING_SHARE = 0.5
"""The share of an output's time limit that listing may use; the rest is for storing it."""


class Archive(Reader):
    """One archive on one store. Safe to share between threads; other processes may use the same store.

    Everything written first passes through the session's own redactor, which `session_redactor` returns (default: a fresh
    `redactor.session()`). `listener` receives each batch of event lines after it was written. With `mac_key`, states, lists
    and logs carry MACs, and a state without the right one counts as damaged.

    It holds the sessions that belong to no tenant. `for_tenant` returns the archive of one.
    """

    def __init__(
        self,
        store: Store,
        redactor: ArchiveRedactor,
        recorder: Recorder,
        *,
        session_redactor: Callable[[SessionKey], ArchiveRedactor] | None = None,
        listener: Listener | None = None,
        attempt_ids: Callable[[], str] = keys.unique_id,
        attempt_ttl_s: float = DAY_S,
        mac_key: KeySource | None = None,
    ) -> None:
        shared = as_redactor(redactor)
        # A session's folder must not depend on what its redactor has learnt, so the shared redactor judges ids.
        super().__init__(
            store, shared.redact_id, lambda name: shared.redact(name, "compact"), open_seals(mac_key)
        )
        self._redactor = shared
        self._session_redactor = session_redactor or (lambda _: shared.session())
        self._recorder = recorder
        self._log = EventLog(store, recorder, listener)
        self._attempts = Attempts(
            store=store,
            reader=self,
            log=self._log,
            clock=recorder.clock,
            attempt_ids=attempt_ids,
            attempt_ttl_s=attempt_ttl_s,
            keep_learned=self._keep_learned,
        )
        self._outputs = OutputFiles(store, self._log, recorder.clock, self.path_of)
        self._entered: Recent[SessionKey, OpenSession] = Recent()
        self._tenants: Recent[str, Archive] = Recent()

    def for_tenant(self, tenant: str) -> Archive:
        """Return the archive of a tenant. It has the same methods, on the sessions of this tenant alone.

        Its root is `_tenants/{tenant}/` in this archive's, or `_tenants/h-{hash}/` if the name is not a safe file name.
        Closing it closes nothing.

        Raises:
            ConfigError: the name is not a non-empty string, or this is a tenant's archive already.
        """
        found = self._tenants.get(tenant) if type(tenant) is str else None
        if found is None:
            name = keys.check_tenant(tenant)
            found = self._open_tenant(name, self._places.tenant_folder(name))
            self._tenants[tenant] = found
        return found

    def tenants(self) -> list[str]:
        """List the names of the tenants that have something here, sorted, with secrets masked."""
        folders = self.store.folders(f"{keys.TENANTS}/")
        records = (self.store.read(f"{keys.TENANTS}/{folder}/{keys.TENANT}") for folder in folders)
        return sorted(name for record in records if (name := tenant_in(record)) is not None)

    def tenant_parts(self) -> list[Archive]:
        """Return the archive of every tenant's folder, whatever its record says, to read and to verify it."""
        found = []
        for folder in filter(keys.is_folder, self.store.folders(f"{keys.TENANTS}/")):
            label = None
            with suppress(ArchiveError):  # `verify` reports it
                label = tenant_in(self.store.read(f"{keys.TENANTS}/{folder}/{keys.TENANT}"))
            is_its = keys.is_label_of(label or "", folder)
            found.append(self._open_tenant(label if label and is_its else folder, folder))
        return found

    def _open_tenant(self, tenant: str, folder: str) -> Archive:
        if self.tenant is not None:
            raise ConfigError(
                f"the archive of tenant {self._label(self.tenant)!r:.80} has no tenants of its own",
                hint="Open the tenant on the archive of all",
                path="tenant",
            )
        root = f"{keys.TENANTS}/{folder}/"
        found = Archive(
            tenant_store(self.store, root),
            self._redactor,
            self._recorder,
            session_redactor=self._session_redactor,
            listener=self._log.tell,
            attempt_ids=self._attempts.attempt_ids,
            attempt_ttl_s=self._attempts.attempt_ttl_s,
        )
        found.tenant, found.root, found.seals = tenant, root, self.seals
        found._entered = self._entered  # known by id and tenant, so one bound holds for all
        return found

    @property
    def adapter(self) -> str:
        """The store's name: "fs", "s3", "memory"."""
        return self.store.adapter

    def begin(
        self,
        session_id: str,
        messages: Sequence[Any],
        *,
        dialect: str,
        after: int,
        given: Sequence[Any] | None = None,
        own: Collection[str] = (),
    ) -> Attempt:
        """Claim the step that follows step `after` (0: none yet), with the whole transcript already durable.

        `after` is the step whose state the pass works from. If another worker commits first, `Attempt.commit` says so.
        `given` is the host's list, if it was repaired on the way to `messages`. The transcript holds that list, and
        the page for people shows `messages`. `own` are the hashes of the summaries in them that compact wrote.

        Raises:
            ArchiveError: the transcript cannot be stored. Nothing may be taken out of the context.
        """
        operation = Operation("step")
        with operation.enter():
            session = self._enter(session_id)
            return self._attempts.begin(session, messages, given, dialect, after, operation, own)

    def forget_state(self, session_id: str) -> int:
        """Let nothing of the newest step, and no pin, stand in the next context, in any process. Returns the step's number.

        Every record stays. 0: the session has no step.

        Raises:
            ArchiveError: that cannot be written.
        """
        with Operation("quick").enter():
            session = self._enter(session_id)
            return forget_newest(self, session, partial(self._outputs.list_durably, session))

    def append_events(self, session_id: str, events: Iterable[Event]) -> None:
        """Add events to the session's log, in order and in one write.

        Raises:
            ArchiveError: the log cannot be written. None of the events is in it.
        """
        with Operation("quick").enter():
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
        during: Attempt | None = None,
    ) -> StoredOutput:
        """Store a tool's output, durable on return. Within a session, the same text is stored only once.

        An output that leaves the context `during` an attempt is a copy of what the attempt's transcript holds, and is durable
        with it.

        Raises:
            ArchiveError: it cannot be stored. It must stay in the context.
        """
        operation = Operation("quick")
        with operation.enter():
            session = self._enter(session_id)
            record = session.scribe.text(text)
            if during is None:
                self._keep_learned(session)  # otherwise the commit does it, once
            tool, call = session.scribe.label(tool_name), session.scribe.label(tool_call_id)
            with operation.sharing(_LISTING_SHARE):
                known = session.outputs_in(self.store)

            def name(digits: int) -> str:
                found = known.get(record.sha256[:digits])
                return found or keys.output_name(tool, call, record.sha256, digits)

            is_copy = during is not None and during.holds(record.sha256)
            stored = self._outputs.put(session, record, name, step, trace, is_copy=is_copy)
        found = f"{keys.OUTPUTS}/{stored.path.rpartition('/')[2]}"
        known[keys.content_hash(found) or ""] = found
        return stored

    def holds_output(self, session_id: str, text: str) -> bool:
        """Whether this text is stored as a tool's output of the session, by this process or another one."""
        with Operation("quick").enter():
            session = self._enter(session_id)
            record = session.scribe.text(text)
            self._keep_learned(session)
            session.outputs = None  # another process may have stored it since the last look
            return any(record.sha256.startswith(digest) for digest in session.outputs_in(self.store))

    def copy_output(self, session_id: str, path: str, to: str) -> None:
        """Store a tool's output of one session for another one too, under the same path.

        Raises:
            ArchiveError: it is not there, or cannot be stored.
        """
        data = self.read_text(session_id, path).encode()
        with Operation("quick").enter():
            session = self._enter(to)
            name = f"{keys.OUTPUTS}/{path.rpartition('/')[2]}"
            self._outputs.put(session, trust_stored(data), lambda _: name, 0, None)
            session.outputs_in(self.store)[keys.content_hash(name) or ""] = name

    def put_removed(
        self, session_id: str, messages: Sequence[Any], *, step: int = 0, trace: Trace | None = None
    ) -> StoredOutput:
        """Store messages that leave the context outside of a step, one JSON line each. The same messages are stored once.

        Raises:
            ArchiveError: they cannot be stored. They must stay in the context.
        """
        with Operation("quick").enter():
            session = self._enter(session_id)
            record = session.scribe.transcript(session.scribe.messages(messages))
            self._keep_learned(session)
            return self._outputs.put(
                session, record, lambda digits: keys.removed_name(record.sha256, digits), step, trace
            )

    def verify(self, session_id: str | None = None) -> list[Defect]:
        """Read everything of one session, or of all, and list what is not as it was written. Changes nothing.

        A session that cannot be read is reported, and the others are checked.
        """
        try:
            folders = self._folders_of(session_id)
        except ArchiveError as problem:
            if session_id is None or problem.reason != "io":
                raise
            return [Defect(self._label(session_id), str(problem.key), "unreadable", problem.message)]
        found = [] if session_id is not None else [*self._root_strangers(), *verify_tenant(self)]
        return [*found, *(defect for folder in folders for defect in verify(self.store, self, folder))]

    def call(self, folder: str, name: str) -> None:
        """Let a name stand for the session in a folder, in this object. Of a masked id, the folder is all that is known."""
        self._places.keep(name, folder)

    def repair(self, session_id: str | None = None) -> list[Defect]:
        """Write damaged and missing copies anew that the transcripts hold. Returns one defect for each file.

        Only outputs and pages are copies. Transcripts, states and events are not replaced by anything.
        """
        repaired = []
        by_key = {defect.key: defect for defect in self.verify(session_id)}
        for defect in by_key.values():
            folder, _, name = defect.key.partition("/")
            if defect.code not in {"orphan", "gap"} and f"/{name.partition('/')[0]}" in keys.VIRTUAL_FOLDERS:
                copy = self.copies.rebuild(folder, name)
                if copy is not None:
                    with suppress(ArchiveError):  # something that cannot be replaced stands in its place
                        self.store.replace(defect.key, copy)
                        repaired.append(defect)
        return repaired

    def _root_strangers(self) -> list[Defect]:
        """List what stands in the root where a session's folder should be, and what is wrong beside the sessions."""
        found = self.store.strangers("") if isinstance(self.store, Chained) else []
        defects = [Defect(key, key, "unreadable", why) for key, why in found if keys.is_folder(key)]
        return [*defects, *verify_models(self)]

    def prune(
        self,
        older_than: timedelta,
        *,
        now: datetime | None = None,
        dry_run: bool = False,
        session_id: str | None = None,
    ) -> list[Pruned]:
        """Remove the records of old steps, and outputs that no remaining record refers to. Keeps the newest step.

        A pruned step keeps its number and its hashes. With `dry_run` nothing is removed, and the list is the same.
        """
        now = now or self._recorder.clock()
        pruner = Pruner(self.store, self, self._redactor, now=now, before=now - older_than, dry_run=dry_run)
        return [pruned for folder in self._folders_of(session_id) for pruned in pruner.prune(folder)]

    def listen(self, listener: Listener) -> None:
        """Call another listener for everything written to the event logs from now on."""
        self._log.listen(listener)

    def lines(self, session_id: str) -> list[bytes]:
        """Return the complete lines of a session's event log, redacted."""
        return self.event_lines(self.folder(session_id))

    def cursor(self, session_id: str, exporter: str) -> str | None:
        """Return the span of the last event that an exporter received from this log.

        None if it is not known, or if another process that still runs takes care of it.
        """
        return read_cursor(self.store, self.folder(session_id), exporter)

    def set_cursor(self, session_id: str, exporter: str, span_id: str) -> None:
        """Remember the last event that an exporter received."""
        with Operation("quick").enter():
            write_cursor(self.store, self._enter(session_id), exporter, span_id)

    def placeholders(self, session_id: str) -> list[dict[str, str]]:
        """Return the notes about placeholders of live masking, oldest first. Unreadable lines are left out."""
        with Operation("quick").enter():
            return read_notes(self, f"{self.folder(session_id)}/{keys.PLACEHOLDERS}")

    def add_placeholders(self, session_id: str, note: Mapping[str, str]) -> None:
        """Add a note about placeholders, durable on return. It must hold hashes of values, never the values.

        Raises:
            ArchiveError: it cannot be written.
        """
        with Operation("quick").enter():
            session = self._enter(session_id)
            add_note(self, session, keys.PLACEHOLDERS, session.scribe.note(note))

    def add_pin(self, session_id: str, change: Mapping[str, Any]) -> None:
        """Add a change to what the host pinned, durable on return. See `pins`. Texts in it are redacted.

        Raises ArchiveError if it cannot be written.
        """
        with Operation("quick").enter():
            add_pin(self, self._enter(session_id), change)

    def release(self, session_id: str) -> None:
        """Keep nothing of a session in memory. Its next write opens it again."""
        self._entered.pop(SessionKey(session_id, self.tenant), None)

    _is_ours = False
    """Whether the tenant's own record is known to be there."""

    def close(self) -> None:
        """Stop background work. Records that wait in a spool stay there and are sent another time."""
        self.store.close()

    def _enter(self, session_id: str) -> OpenSession:
        """Open a session for writing: make its folder, and check that no other session owns it."""
        keys.check_session_id(session_id)
        known = self._entered.get(SessionKey(session_id, self.tenant))
        if known is not None:
            return known
        name, folder = SessionKey(session_id, self.tenant), self.folder(session_id)
        label = keys.label_for(session_id, self._label(session_id))
        scribe = Scribe(self._session_redactor(name), label, self.place_of(folder), self.seals)
        session = OpenSession(name, folder, scribe)
        self._enter_tenant()
        key = f"{session.folder}/{keys.SESSION}"
        # Not waited for: what a loss of power takes of it is written again here.
        create = self.store.write_copy if isinstance(self.store, Copying) else self.store.create
        outcome = create(key, scribe.session())
        if outcome == "taken" and not (self.store.read(key) or b"").strip(b"\0"):
            self.store.replace(key, scribe.session())
            outcome = "same"
        if outcome == "taken" and session.folder == session_id:
            # Two ids that differ in case, on a filesystem that ignores case. (A hashed folder belongs to its hash.)
            found = session_id_in(self.store.read(key))
            if found is not None and keys.is_label_of(found, session.folder):
                outcome = "same"  # an earlier version or other rules wrote it, or it has another key
        if outcome == "taken" and session.folder == session_id:
            owner = "its session.json cannot be read" if found is None else repr(found)[:80]
            raise ArchiveError(
                f"the folder {session.folder} belongs to another session: {owner}",
                hint="Ids that differ only in case cannot share this archive: rename one of the sessions",
                key=key,
                reason="taken",
            )
        if outcome == "spooled":
            self._log.warn_spooled(session)
        self._places.keep(session_id, folder)
        if outcome in ("taken", "same"):
            # The session was here before. What was masked in its records is masked in those that follow.
            scribe.adopt(read_notes(self, f"{session.folder}/{keys.LEARNED}"))
            warn_of_lost_notes(self, self._log, session)
        if not scribe.redacts:
            self._log.warn(
                session,
                "redaction_disabled",
                "high",
                "redaction is switched off: the archive and the events hold whatever the agent saw, secrets included",
            )
        self._entered[session.key] = session
        return session

    def _enter_tenant(self) -> None:
        """Write down whose root this is, and check that it is no other tenant's."""
        if self.tenant is None or self._is_ours:
            return
        label = self._label(self.tenant)
        note = Scribe(self._redactor, label, self.root, self.seals).sealed(tenant_note(label))
        taken = self.store.create(keys.TENANT, note) == "taken"
        found = tenant_in(self.store.read(keys.TENANT)) if taken else label
        if found is None or not keys.is_label_of(found, self.root.split("/")[1]):
            is_case = found is not None and found.casefold() == self.tenant.casefold()
            raise ArchiveError(
                f"the folder {self.root[:-1]} belongs to another tenant: {found!r:.80}",
                hint="Names that differ only in case cannot share this archive: rename one of the tenants"
                if is_case
                else "The record was damaged or exchanged: restore it from a backup; `verify` lists what else is",
                key=keys.TENANT,
                reason="taken" if is_case else "damaged",
            )
        self._is_ours = True

    def _keep_learned(self, session: OpenSession) -> None:
        learned = session.scribe.seal()
        if learned:
            session.unsaved.append(learned)
        if session.unsaved:
            save_learned(self, session)

    def _folders_of(self, session_id: str | None) -> list[str]:
        if session_id is not None:
            return [self.folder(session_id)]
        return [folder for folder in self.store.folders() if folder not in keys.OWN_FOLDERS]
