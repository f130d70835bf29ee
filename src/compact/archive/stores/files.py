"""The archive on a local disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from compact.archive.protocol import Appended, Created, Entry
from compact.archive.records import Record, digest
from compact.archive.stores.tree import Tree


class FsStore:
    """Files under one root; see `compact.archive.stores.durable` for what survives what."""

    adapter = "fs"
    settle_s = 0.0

    def __init__(self, root: str | os.PathLike[str], *, lock_timeout_s: float = 5.0) -> None:
        self._root = os.fspath(root)
        self._tree = Tree(root, lock_timeout_s=lock_timeout_s)

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        self._tree.stage(key, record.data)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        self._tree.publish(moves)

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`."""
        if self._tree.create(key, record.data):
            return "created"
        present = self._tree.read(key)
        return "same" if present is not None and digest(present) == record.sha256 else "taken"

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self._tree.replace(key, record.data)

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`."""
        return "mended" if self._tree.append(log, record.data) else "appended"

    def sync(self, log: str) -> None:
        """See `Store.sync`."""
        self._tree.sync(log)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        return self._tree.read(key)

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`."""
        return self._tree.read(log) or b""

    def entries(self, folder: str, prefix: str = "") -> list[Entry]:
        """See `Store.entries`."""
        return self._tree.entries(folder, prefix)

    def folders(self) -> list[str]:
        """See `Store.folders`."""
        return self._tree.folders()

    def delete(self, keys: Iterable[str]) -> None:
        """See `Store.delete`."""
        self._tree.delete(keys)

    def address(self, key: str) -> str:
        """The path of a record, under the root as it was given."""
        return os.path.join(self._root, *key.split("/"))  # noqa: PTH118  # "./x" must not become "x"

    def close(self) -> None:
        """Nothing is open between two calls."""
