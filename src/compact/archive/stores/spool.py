"""A local spool for an object store that does not answer.

Outputs and events must not make an agent wait and must not be lost. If the store does not take one in time, it is written
durably under a local root, with the same keys, and a background thread sends it later. Until then it is read from the
spool. After a failure the store is not asked again for `retry_s`, so an outage costs one wait and not one for each record.
A step never goes through the spool: the store confirms it, or it did not happen.

Events are sent at least once: if a process dies after sending one and before deleting it, another sends it again.
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
from compact.archive.records import Record, trust_stored
from compact.archive.seals import Seals
from compact.archive.stores.chain import LogCheck, LogHead
from compact.archive.stores.files import FsStore
from compact.archive.stores.port import Appended, Blob, Chained, Created, Store
from compact.errors import ArchiveError

_SPOOLED = re.compile(
    rf"{keys.OUTPUTS}/[^/]+|{keys.HISTORY}/removed_[^/]+|{re.escape(keys.SESSION)}|"
    rf"{re.escape(keys.TENANT.rpartition('/')[2])}"
)
_SEGMENT = re.compile(r"(?P<log>.+/(?:events|outputs|learned|placeholders|pins))/[^/]+\.jsonl")


class SpooledStore:
    """A store whose outputs and events wait on the local disk while it does not answer."""

    def __init__(
        self, store: Store, root: str | os.PathLike[str], *, retry_s: float = 30.0, close_s: float = 2.0
    ) -> None:
        self.adapter = store.adapter
        self.settle_s = store.settle_s
        self.remote = store
        self._retry_s = retry_s
        self._close_s = close_s
        # Archives that share a spool root must not send each other's records.
        place = hashlib.sha256(store.address("").encode()).hexdigest()[:16]
        self.local = FsStore(Path(root) / place)
        self._resting_until = 0.0
        self._stopping = threading.Event()
        self._drainer: threading.Thread | None = None
        if self.waiting():
            self._start_draining()

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`. An output may be "spooled"."""
        if not _is_spooled(key):
            return self.remote.create(key, record)
        if not self._is_resting():
            try:
                return self.remote.create(key, record)
            except ArchiveError:
                self.rest()
        return self._spool(key, record)

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`. Events may be "spooled"."""
        key = f"{log.removesuffix('.jsonl')}/new-{keys.unique_id()}.jsonl"
        if not self._is_resting():
            try:
                return self.remote.append(log, record)
            except ArchiveError as problem:
                self.rest()
                # If only the answer was lost, the segment exists, and sending it to the same key again finds it.
                tried = str(problem.details.get("key"))
                key = tried if _SEGMENT.fullmatch(tried) else key
        self._spool(key, record)
        return "spooled"

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        self.remote.stage(key, record)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        self.remote.publish(moves)

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self.remote.replace(key, record)

    def sync(self, log: str) -> None:
        """See `Store.sync`. Spooled lines are durable already."""
        self.remote.sync(log)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`. Whose a folder is, which every call asks, is not asked again for a while after a failure."""
        waiting = self.local.read(key) if _is_spooled(key) else None
        if waiting is not None:
            return waiting
        is_asked_often = key.endswith((f"/{keys.SESSION}", f"/{keys.TENANT}"))
        if is_asked_often and self._is_resting():
            raise self._resting(f"read {key}", key)
        try:
            return self.remote.read(key)
        except ArchiveError as problem:
            if is_asked_often and problem.reason == "timeout":
                self.rest()
            raise

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`. Spooled lines come last."""
        folder, name = keys.split_key(log)
        waiting = self.local_blobs(folder, f"{name.removesuffix('.jsonl')}/")
        lines = [self.local.read(blob.key) or b"" for blob in waiting]
        return self.remote.read_log(log) + b"".join(lines)

    def seal_with(self, seals: Seals) -> None:
        """See `Chained.seal_with`."""
        if isinstance(self.remote, Chained):
            self.remote.seal_with(seals)

    def head(self, log: str) -> LogHead | None:
        """See `Chained.head`."""
        return self.remote.head(log) if isinstance(self.remote, Chained) else None

    def check_log(self, log: str) -> LogCheck:
        """See `Chained.check_log`. Lines that wait here get their seals when they are sent."""
        return self.remote.check_log(log) if isinstance(self.remote, Chained) else LogCheck(is_chained=False)

    def strangers(self, folder: str) -> list[tuple[str, str]]:
        """See `Chained.strangers`."""
        return self.remote.strangers(folder) if isinstance(self.remote, Chained) else []

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`. Listings of what an agent reads are refused until the store is asked again."""
        for_agent = prefix.startswith((keys.OUTPUTS, keys.HISTORY))
        if for_agent and self._is_resting():
            raise self._resting(f"list {folder}/{prefix}", folder)
        found = {blob.key: blob for blob in self.local_blobs(folder, prefix)}
        try:
            found.update((blob.key, blob) for blob in self.remote.blobs(folder, prefix))
        except ArchiveError as problem:
            if for_agent and problem.details.get("reason") == "timeout":
                self.rest()
            raise
        return [found[key] for key in sorted(found)]

    def local_blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Spooling.local_blobs`."""
        return [blob for blob in self.local.blobs(folder, prefix) if not blob.hidden]

    def folders(self, root: str = "") -> list[str]:
        """See `Store.folders`."""
        return sorted({*self.local.folders(root), *self.remote.folders(root)})

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        paths = list(paths)
        self.local.delete(path for path in paths if _is_spooled(path))
        self.remote.delete(paths)

    def address(self, key: str) -> str:
        """Return the key of a record once it has been sent."""
        return self.remote.address(key)

    def close(self) -> None:
        """Try for a short time to send what waits. The rest stays for another process."""
        self._stopping.set()
        if self._drainer is not None:
            self._drainer.join(self._close_s)
        if not self._is_resting() and self.waiting():
            self.drain(self._close_s)
        self.remote.close()

    def waiting(self) -> list[str]:
        """List the keys of spooled records."""
        return [blob.key for folder in self._local_folders() for blob in self.local_blobs(folder)]

    def drain(self, limit_s: float = float("inf")) -> bool:
        """Send what waits until all is sent, the store fails, or the time is up. Returns True if nothing is left.

        Of several processes that share the spool, only one sends at a time.
        """
        give_up = time.monotonic() + limit_s
        with self.drain_lock() as is_ours:
            if not is_ours:
                return False
            self._sweep()
            for key in self.waiting():
                if time.monotonic() > give_up:
                    return False
                try:
                    self._send(key)
                except ArchiveError:
                    self.rest()
                    return False
        self._resting_until = 0.0
        return not self.waiting()

    def _send(self, key: str) -> None:
        data = self.local.read(key)
        if data is None:
            return
        record = trust_stored(data)
        segment = _SEGMENT.fullmatch(key)
        if segment:
            # If only the answer was lost, it is there already.
            if "/new-" in key or self.remote.read(key) != data:
                self.remote.append(f"{segment['log']}.jsonl", record)
        elif self.remote.create(key, record) == "taken":
            return  # other bytes have its name; it stays readable here
        self.local.delete([key])

    def _spool(self, key: str, record: Record) -> Created:
        if self.local.create(key, record) == "taken":
            return "taken"
        self._start_draining()
        return "spooled"

    def _is_resting(self) -> bool:
        return time.monotonic() < self._resting_until

    def _resting(self, action: str, key: str) -> ArchiveError:
        return ArchiveError(
            f"could not {action}: the object store has just failed",
            hint=f"It is tried again within {self._retry_s:g} s",
            key=key,
            reason="resting",
        )

    def rest(self) -> None:
        """Let what can wait go to the spool for a while: the store has just failed."""
        self._resting_until = time.monotonic() + self._retry_s

    def _start_draining(self) -> None:
        # After a fork the parent's thread counts as dead here, and the child starts its own.
        if self._drainer is None or not self._drainer.is_alive():
            self._drainer = threading.Thread(target=self._keep_draining, name="compact-spool", daemon=True)
            self._drainer.start()

    def _keep_draining(self) -> None:
        while not self._stopping.wait(max(0.0, self._resting_until - time.monotonic())):
            try:
                if self.drain():
                    return
            except ArchiveError:
                pass  # the local disk failed; what waits there goes on waiting
            self._stopping.wait(self._retry_s)

    def _sweep(self) -> None:
        for folder in self._local_folders():
            left = [blob.key for blob in self.local.blobs(folder) if blob.hidden]
            self.local.delete(key for key in left if (by := keys.attempt_in(key)) and keys.is_gone(by))

    def _local_folders(self) -> list[str]:
        """The folders of sessions that have something here, of every tenant."""
        tenants = self.local.folders(f"{keys.TENANTS}/")
        roots = ["", *(f"{keys.TENANTS}/{tenant}/" for tenant in tenants)]
        return [root + folder for root in roots for folder in self.local.folders(root)]

    @contextmanager
    def drain_lock(self) -> Iterator[bool]:
        """Hold the lock that lets only one process drain. Yields whether this one has it."""
        try:
            lock = os.open(self.local.root / ".drain", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
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


def _is_spooled(key: str) -> bool:
    """Return whether a record may wait here."""
    return _SPOOLED.fullmatch(keys.split_key(key)[1]) is not None
