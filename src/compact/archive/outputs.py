"""Writes the files that `outputs.jsonl` lists: outputs of tools, and messages that were removed outside of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compact.archive import keys
from compact.archive.log import EventLog, OpenSession
from compact.archive.records import Record
from compact.archive.stores.port import Copying, Store
from compact.errors import ArchiveError
from compact.events import Clock, Trace


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """A tool output in the archive. `path` is what an agent's recall tools call it."""

    path: str
    address: str
    sha256: str
    bytes: int
    new: bool
    """False if the same text was already there."""


class OutputFiles:
    """Stores outputs, each once in its session, and lists them.

    A copy of what a transcript holds can be made again, so nobody waits until it is durable.
    """

    def __init__(self, store: Store, log: EventLog, clock: Clock, path_of: Callable[[str], str]) -> None:
        self._store = store
        self._copy = store.write_copy if isinstance(store, Copying) else store.create
        self._log = log
        self._clock = clock
        self._path_of = path_of

    def put(
        self,
        session: OpenSession,
        record: Record,
        name: Callable[[int], str],
        step: int,
        trace: Trace | None,
        *,
        is_copy: bool = False,
    ) -> StoredOutput:
        """Store a record under a name with 12 digits of its hash, or with all of them if other bytes have that name.

        Raises:
            ArchiveError: it cannot be stored.
        """
        create = self._copy if is_copy else self._store.create
        for digits in (12, 64):
            key = f"{session.folder}/{name(digits)}"
            if name(digits) not in session.listed:
                self._list(session, name(digits), record)
            if not is_copy:
                self._sync_list(session)
            began = self._clock()
            outcome = create(key, record)
            period = (began, self._clock())
            if outcome == "spooled":
                self._log.warn_spooled(session)
            if outcome == "taken":
                continue
            if outcome != "same":
                self._log.record_saved(session, step, {name(digits): period}, trace)
            elif not is_copy:  # whoever listed it may have written a copy, and did not wait
                session.is_list_durable = False
                self._sync_list(session)
            return StoredOutput(
                path=self._path_of(key),
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

    def list_durably(self, session: OpenSession, name: str, record: Record) -> None:
        """Put a file into the session's list of outputs.

        Raises:
            ArchiveError: that cannot be written.
        """
        self._list(session, name, record)
        self._sync_list(session)

    def _list(self, session: OpenSession, name: str, record: Record) -> None:
        """Put a file into the list. It comes first, so that no output is ever unlisted."""
        log = f"{session.folder}/{keys.LISTED}"
        entry = session.scribe.listing(name, record.sha256, len(record.data))
        if self._store.append(log, entry) == "spooled":
            self._log.warn_spooled(session)
        session.is_list_durable = False
        session.listed.add(name)

    def _sync_list(self, session: OpenSession) -> None:
        if not session.is_list_durable:
            self._store.sync(f"{session.folder}/{keys.LISTED}")
            session.is_list_durable = True
