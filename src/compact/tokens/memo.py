"""What was counted once is not counted again."""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MAX_DEPTH = 16
_ATOMS = frozenset({str, int, float, bool, type(None)})
_SMALL_BYTES = 32
_CONTAINER_BYTES = 400
"""A small dict with its keys; what matters is the text, and that is weighed."""


class Memo(Generic[K, V]):
    """A dict that forgets its oldest entries when they weigh more than `limit` bytes.

    Reading takes no lock: `get` is the dict's own. When the limit is passed, the oldest entries go until half of it is
    free, so that making room is rare.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self._bytes = 0
        self._lock = Lock()
        self.get: Callable[[K], V | None] = self._entries.get

    def put(self, key: K, value: V, size: int) -> None:
        """Remember a value that weighs `size` bytes with its key. What is larger than the limit is not kept."""
        if size > self._limit:
            return
        with self._lock:
            if key in self._sizes:  # put again, it is the youngest
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
        """What the entries weigh together."""
        return self._bytes


def snapshot(value: Any) -> tuple[Any, int]:
    """A copy of plain data that shares nothing that can change, and its bytes; (None, 0) for anything else.

    Equality with a snapshot is how a message that was changed in place is noticed. Objects that are no plain data
    could change without being unequal, and very deep data is dear to compare: neither is remembered.
    """
    try:
        copied = _copy(value, _MAX_DEPTH)
    except _NotPlain:
        return None, 0
    return copied, _weight(copied)


class _NotPlain(Exception):
    """No error: the way out of the recursion."""


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth == 0:
        raise _NotPlain
    if kind is dict:
        copied = value.copy()
        for key, entry in value.items():
            if type(entry) not in _ATOMS:  # most entries are, and the copy has them already
                copied[key] = _copy(entry, depth - 1)
        return copied
    if kind is list or kind is tuple:
        return kind([_copy(entry, depth - 1) for entry in value])
    raise _NotPlain


def _weight(value: Any) -> int:
    if type(value) is str:
        return getsizeof(value)
    if type(value) not in (dict, list, tuple):
        return _SMALL_BYTES
    size = _CONTAINER_BYTES
    for entry in value.values() if type(value) is dict else value:
        size += getsizeof(entry) if type(entry) is str else _weight(entry)
    return size
