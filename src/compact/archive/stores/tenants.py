"""One tenant's part of a store. It has the keys of a store of its own, and none of them leads out of the tenant's root.

The store below is shared: its connection, its threads and its spool serve every tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compact.archive.records import Record
from compact.archive.seals import Seals
from compact.archive.stores.chain import LogCheck, LogHead
from compact.archive.stores.port import (
    Appended,
    Blob,
    Chained,
    Copying,
    Created,
    SharedPages,
    Spooling,
    Store,
)
from compact.errors import ArchiveError


def tenant_store(store: Store, root: str) -> Store:
    """Return the part of a store below a tenant's root."""
    if isinstance(store, Spooling):
        return _SpooledTenantStore(store, root)
    if isinstance(store, SharedPages):
        return _TenantPages(store, root)
    if isinstance(store, Copying):
        return _TenantFiles(store, root)
    return _ChainedTenantStore(store, root) if isinstance(store, Chained) else TenantStore(store, root)


class TenantStore:
    """A store whose keys all lie below one root of another store. Closing it closes nothing."""

    def __init__(self, store: Store, root: str) -> None:
        self.adapter = store.adapter
        self.settle_s = store.settle_s
        self._store = store
        self._root = root

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        self._store.stage(self._inner(key), record)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        self._store.publish([(self._inner(source), self._inner(target)) for source, target in moves])

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`."""
        return self._store.create(self._inner(key), record)

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self._store.replace(self._inner(key), record)

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`."""
        return self._store.append(self._inner(log), record)

    def sync(self, log: str) -> None:
        """See `Store.sync`."""
        self._store.sync(self._inner(log))

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        return self._store.read(self._inner(key))

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`."""
        return self._store.read_log(self._inner(log))

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`."""
        return self._outer(self._store.blobs(self._inner(folder), prefix))

    def folders(self, root: str = "") -> list[str]:
        """See `Store.folders`. A tenant has no tenants."""
        return [] if root else self._store.folders(self._root)

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        self._store.delete([self._inner(path) for path in paths])

    def address(self, key: str) -> str:
        """See `Store.address`."""
        return self._store.address(self._root + key)

    def close(self) -> None:
        """Do nothing: the store belongs to every tenant."""

    def _inner(self, key: str) -> str:
        """The key, or the folder, in the store below."""
        if any(part in {"", ".", ".."} for part in key.split("/")):
            raise ArchiveError(f"not a key of the archive: {key!r:.200}", key=key, reason="outside")
        return self._root + key

    def _outer(self, blobs: Iterable[Blob]) -> list[Blob]:
        return [replace(blob, key=blob.key.removeprefix(self._root)) for blob in blobs]


class _ChainedTenantStore(TenantStore):
    """A tenant's part of a store that seals its logs."""

    @property
    def _chained(self) -> Chained:
        assert isinstance(self._store, Chained)
        return self._store

    def seal_with(self, seals: Seals) -> None:
        """Do nothing: the store seals the logs of all tenants, each under its own key."""

    def head(self, log: str) -> LogHead | None:
        """See `Chained.head`."""
        return self._chained.head(self._inner(log))

    def check_log(self, log: str) -> LogCheck:
        """See `Chained.check_log`."""
        return self._chained.check_log(self._inner(log))

    def strangers(self, folder: str) -> list[tuple[str, str]]:
        """See `Chained.strangers`."""
        found = self._chained.strangers(self._root + folder if folder else self._root[:-1])
        return [(key.removeprefix(self._root), why) for key, why in found]


class _TenantFiles(_ChainedTenantStore):
    """A tenant's part of a folder tree."""

    def write_copy(self, key: str, record: Record) -> Created:
        """See `Copying.write_copy`."""
        assert isinstance(self._store, Copying)
        return self._store.write_copy(self._inner(key), record)


class _SpooledTenantStore(_ChainedTenantStore):
    """A tenant's part of a store that keeps records on this machine while they cannot be sent."""

    _store: Spooling

    def local_blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Spooling.local_blobs`."""
        return self._outer(self._store.local_blobs(self._inner(folder), prefix))


class _TenantPages(TenantStore):
    """A tenant's part of a host's filesystem."""

    _store: SharedPages

    @property
    def forgets(self) -> bool:
        """See `SharedPages.forgets`."""
        return self._store.forgets

    def page_path(self, folder: str, step: int, transcript_sha256: str) -> str:
        """See `SharedPages.page_path`."""
        return self._store.page_path(self._inner(folder), step, transcript_sha256)
