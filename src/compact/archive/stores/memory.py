"""The archive in memory: for tests, and for agents that must leave nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from compact.archive import keys
from compact.archive.records import Record, digest
from compact.archive.stores.port import Appended, Blob, Created
from compact.errors import ArchiveError
from compact.events import Clock


class MemoryStore:
    """Records in a dict. Nothing survives the process."""

    adapter = "memory"
    settle_s = 0.0

    def __init__(self, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._held: dict[str, tuple[bytes | bytearray, datetime]] = {}
        self._lock = threading.Lock()

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        self.replace(key, record)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        with self._lock:
            for source, target in moves:
                if target not in self._held:
                    if source not in self._held:
                        raise ArchiveError(f"nothing is staged as {source}", key=source, reason="missing")
                    self._held[target] = self._held[source]
                self._held.pop(source, None)

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`."""
        with self._lock:
            if key in self._held:
                return "same" if digest(bytes(self._held[key][0])) == record.sha256 else "taken"
            self._held[key] = (record.data, self._clock())
            return "created"

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        with self._lock:
            self._held[key] = (record.data, self._clock())

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`."""
        with self._lock:
            lines = self._held[log][0] if log in self._held else bytearray()
            lines += record.data
            self._held[log] = (lines, self._clock())
        return "appended"

    def sync(self, log: str) -> None:
        """Do nothing: memory is never durable."""

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        with self._lock:
            found = self._held.get(key)
            return None if found is None else bytes(found[0])

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`."""
        return self.read(log) or b""

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`."""
        with self._lock:
            held = sorted(self._held.items())
        wanted = f"{folder}/{prefix}"
        return [Blob(key, len(data), modified) for key, (data, modified) in held if key.startswith(wanted)]

    def folders(self, root: str = "") -> list[str]:
        """See `Store.folders`."""
        with self._lock:
            found = {key[len(root) :].partition("/")[0] for key in self._held if key.startswith(root)}
        return sorted(found if root else found - {keys.TENANTS})

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        with self._lock:
            for key in paths:
                self._held.pop(key, None)

    def address(self, key: str) -> str:
        """Return a name for people; nothing can be opened by it."""
        return f"memory://{key}"

    def close(self) -> None:
        """Do nothing: no background work."""
