"""A local waiting room for an object store that does not answer.

Outputs and events must not make an agent wait, and must not be lost. When the store does not take one in time, it is
written durably under a local root, in a tree like the store's own, and sent later from a background thread. Until then it
is read from here. After a failure the store is left alone for `retry_s`, so an outage costs one wait and not one for each
record. A step never goes through the spool: it is confirmed by the store, or it did not happen.

Events are sent at least once: a process that dies between sending and forgetting sends them again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compact.archive import keys
from compact.archive.protocol import Appended, Created, Entry, Store
from compact.archive.records import Record, already_stored, digest
from compact.archive.stores import owners
from compact.archive.stores.tree import Tree
from compact.errors import ArchiveError

_SPOOLED = re.compile(
    rf"[^/]+/(?:{keys.OUTPUTS}/[^/]+|{keys.HISTORY}/removed_[^/]+|{re.escape(keys.SESSION)})"
)
_SEGMENT = re.compile(r"[^/]+/events/[^/]+\.jsonl")


class SpooledStore:
    """A store whose outputs and events wait on the local disk while it is away."""

    def __init__(
        self, store: Store, root: str | os.PathLike[str], *, retry_s: float = 30.0, close_s: float = 2.0
    ) -> None:
        self.adapter = store.adapter
        self.settle_s = store.settle_s
        self._store = store
        self._retry_s = retry_s
        self._close_s = close_s
        # Archives that share a spool root must not send each other's records.
        place = hashlib.sha256(store.address("").encode()).hexdigest()[:16]
        self._tree = Tree(Path(root) / place)
        self._resting_until = 0.0
        self._stopping = threading.Event()
        self._drainer: threading.Thread | None = None
        if self.waiting():
            self._start_draining()

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`; an output may end "spooled"."""
        if not _SPOOLED.fullmatch(key):
            return self._store.create(key, record)
        if not self._resting():
            try:
                return self._store.create(key, record)
            except ArchiveError:
                self._rest()
        return self._spool(key, record)

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`; events may end "spooled"."""
        key = f"{log.removesuffix('.jsonl')}/new-{owners.unique_id()}.jsonl"
        if not self._resting():
            try:
                return self._store.append(log, record)
            except ArchiveError as problem:
                self._rest()
                # If only the answer was lost, the segment is there: sending it to the same key again finds it.
                tried = str(problem.details.get("key"))
                key = tried if _SEGMENT.fullmatch(tried) else key
        self._spool(key, record)
        return "spooled"

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        self._store.stage(key, record)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        self._store.publish(moves)

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self._store.replace(key, record)

    def sync(self, log: str) -> None:
        """See `Store.sync`; what is spooled is durable already."""
        self._store.sync(log)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        waiting = self._tree.read(key) if _SPOOLED.fullmatch(key) else None
        return waiting if waiting is not None else self._store.read(key)

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`; what is spooled comes last."""
        waiting = self._tree.entries(log.partition("/")[0], "events/")
        lines = [self._tree.read(entry.key) or b"" for entry in waiting if not keys.is_hidden(entry.key)]
        return self._store.read_log(log) + b"".join(lines)

    def entries(self, folder: str, prefix: str = "") -> list[Entry]:
        """See `Store.entries`. A listing of what an agent reads is not tried while the store is left alone."""
        for_agent = prefix.startswith((keys.OUTPUTS, keys.HISTORY))
        if for_agent and self._resting():
            raise ArchiveError(
                f"could not list {folder}/{prefix}: the object store failed a moment ago",
                hint=f"It is tried again within {self._retry_s:g} s",
                key=folder,
                reason="resting",
            )
        found = {entry.key: entry for entry in self.entries_here(folder, prefix)}
        try:
            found.update((entry.key, entry) for entry in self._store.entries(folder, prefix))
        except ArchiveError as problem:
            if for_agent and problem.details.get("reason") == "timeout":
                self._rest()
            raise
        return [found[key] for key in sorted(found)]

    def entries_here(self, folder: str, prefix: str = "") -> list[Entry]:
        """See `Spooling.entries_here`."""
        return [entry for entry in self._tree.entries(folder, prefix) if not keys.is_hidden(entry.key)]

    def folders(self) -> list[str]:
        """See `Store.folders`."""
        return sorted({*self._tree.folders(), *self._store.folders()})

    def delete(self, keys: Iterable[str]) -> None:
        """See `Store.delete`."""
        paths = list(keys)
        self._tree.delete(path for path in paths if _SPOOLED.fullmatch(path))
        self._store.delete(paths)

    def address(self, key: str) -> str:
        """Where a record lies once it has been sent."""
        return self._store.address(key)

    def close(self) -> None:
        """Tries for a short time to send what waits; the rest stays for another process."""
        self._stopping.set()
        if self._drainer is not None:
            self._drainer.join(self._close_s)
        if not self._resting() and self.waiting():
            self.drain(self._close_s)
        self._store.close()

    def waiting(self) -> list[str]:
        """The keys of what waits here."""
        return [
            entry.key
            for folder in self._tree.folders()
            for entry in self._tree.entries(folder)
            if not keys.is_hidden(entry.key)
        ]

    def drain(self, limit_s: float = float("inf")) -> bool:
        """Sends what waits, until all is sent, the store fails, or the time is up; True when nothing is left.

        Of several processes that share the spool only one does this at a time.
        """
        give_up = time.monotonic() + limit_s
        with self._turn() as is_ours:
            if not is_ours:
                return False
            self._sweep()
            for key in self.waiting():
                if time.monotonic() > give_up:
                    return False
                try:
                    self._send(key)
                except ArchiveError:
                    self._rest()
                    return False
        self._resting_until = 0.0
        return not self.waiting()

    def _send(self, key: str) -> None:
        data = self._tree.read(key)
        if data is None:
            return
        record = already_stored(data)
        folder, _, name = key.partition("/")
        is_new = name.startswith("events/new-")
        if is_new or self._store.create(key, record) == "taken":
            if not name.startswith("events/"):
                return  # other bytes hold its name; it stays readable here
            self._store.append(f"{folder}/{keys.EVENTS}", record)
        self._tree.delete([key])

    def _spool(self, key: str, record: Record) -> Created:
        if not self._tree.create(key, record.data) and digest(self._tree.read(key) or b"") != record.sha256:
            return "taken"
        self._start_draining()
        return "spooled"

    def _resting(self) -> bool:
        return time.monotonic() < self._resting_until

    def _rest(self) -> None:
        self._resting_until = time.monotonic() + self._retry_s

    def _start_draining(self) -> None:
        # After a fork the thread of the parent counts as dead here, and the child starts its own.
        if self._drainer is None or not self._drainer.is_alive():
            self._drainer = threading.Thread(target=self._keep_draining, name="compact-spool", daemon=True)
            self._drainer.start()

    def _keep_draining(self) -> None:
        while not self._stopping.wait(max(0.0, self._resting_until - time.monotonic())):
            try:
                if self.drain():
                    return
            except ArchiveError:
                pass  # the local disk failed; what waits there still waits
            self._stopping.wait(self._retry_s)

    def _sweep(self) -> None:
        for folder in self._tree.folders():
            left = [e.key for e in self._tree.entries(folder) if keys.is_hidden(e.key)]
            self._tree.delete(key for key in left if (by := owners.attempt_in(key)) and owners.is_gone(by))

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        try:
            lock = os.open(self._tree.root / ".drain", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:  # no root: nothing was ever spooled
            yield False
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)
