"""Counts that are remembered, so that nothing is counted twice.

A message is known again by comparing it with a copy, so that a change in place is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from compact.messages.dialects.wire import begins_with

K = TypeVar("K")
V = TypeVar("V")


_MAX_DEPTH = 16
_ATOMS = frozenset({str, int, float, bool, type(None)})
_SMALL_BYTES = 32


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


class Counted(NamedTuple):
    """A message or a tool that was counted."""

    copy: Any
    """What it was then; None if it cannot be compared."""
    raw: int
    share: int
    kind: str
    """What it was counted as: the dialect's name, or a tool."""
    size: int
    """The copy's bytes; 0 if there is none."""


class Prefix(NamedTuple):
    """The messages of a list that was counted, as one: comparing them at once is three times faster than singly."""

    copies: list[Any]
    shares: tuple[int, ...]
    kind: str
    size: int


class Known:
    """Remembers entries by the object and prefixes by a list's first object, all within `limit` bytes.

    A prefix is put again at each call, so the entries that it covers go before it does: of a session that is too large
    for both, the prefix is what stays.
    """

    def __init__(self, limit: int) -> None:
        self.memo: Memo[int, Counted | Prefix] = Memo(limit)
        """Entries by the object's id, prefixes by the negative of it."""

    def recall(self, item: Any, kind: str) -> Counted | None:
        """Return the entry of what was counted before and is still the same.

        An id may have been given to another object, and a message may have been changed in place: only one that
        equals its copy is known.
        """
        entry = self.memo.get(id(item))
        return entry if isinstance(entry, Counted) and entry.kind == kind and entry.copy == item else None

    def remember(self, item: Any, raw: int, share: int, kind: str, *, is_plain: bool = False) -> Counted:
        """Remember a count. A plain message is a dict of two strings, which is quick to copy."""
        if is_plain:
            copy = item.copy()
            size = getsizeof(copy) + getsizeof(copy["role"]) + getsizeof(copy["content"])
        else:
            copy, size = snapshot(item)
        entry = Counted(copy, raw, share, kind, size)
        if size:
            self.memo.put(id(item), entry, size)
        return entry

    def recall_prefix(self, items: Sequence[Any], kind: str) -> Prefix:
        """Return the longest beginning of a list that was counted as one; an empty one if there is none."""
        prefix = self.memo.get(-id(items[0])) if items else None
        if isinstance(prefix, Prefix) and prefix.kind == kind and begins_with(items, prefix.copies):
            return prefix
        return Prefix([], (0, 0, 0), kind, 0)

    def extend_prefix(
        self, prefix: Prefix, items: Sequence[Any], entries: list[Counted], shares: Sequence[int]
    ) -> None:
        """Remember a prefix of `items` and the entries that follow it as one prefix."""
        copies, size = prefix.copies.copy(), prefix.size
        for entry in entries:
            if not entry.size:
                return  # it cannot be compared, so it ends the prefix
            copies.append(entry.copy)
            size += entry.size
        self.memo.put(-id(items[0]), Prefix(copies, tuple(shares), prefix.kind, size), size)


def snapshot(value: Any) -> tuple[Any, int]:
    """A copy of plain data that shares nothing that can change, and its bytes; (None, 0) for anything else.

    Objects that are no plain data could change without being unequal, and very deep data is dear to compare: neither
    is remembered.
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
    size = getsizeof(value)
    for entry in value.values() if type(value) is dict else value:
        size += getsizeof(entry) if type(entry) is str else _weight(entry)
    return size
