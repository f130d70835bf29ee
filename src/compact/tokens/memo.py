"""A cache that is bounded by bytes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """A dict that drops its oldest entries when they exceed `limit` bytes in total.

    Reading takes no lock, because `get` is the dict's own. When the limit is exceeded, the oldest entries are dropped
    until half of it is free, so that this happens rarely.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self._bytes = 0
        self._lock = Lock()
        self.get: Callable[[K], V | None] = self._entries.get

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value whose entry takes `size` bytes. An entry larger than the limit is not stored."""
        if size > self._limit:
            return
        with self._lock:
            if key in self._sizes:  # it becomes the newest entry
                self._bytes -= self._sizes.pop(key)
                del self._entries[key]
            self._entries[key] = value
            self._sizes[key] = size
            self._bytes += size
            if self._bytes > self._limit:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        for key, size in list(self._sizes.items()):
            if self._bytes <= self._limit // 2:
                return
            del self._entries[key], self._sizes[key]
            self._bytes -= size

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """The total size of the entries."""
        return self._bytes
