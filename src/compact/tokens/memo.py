"""Caches of counts, bounded by bytes, so that nothing is counted twice.

A message is recognised by comparing it with a copy, so that a change in place is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from operator import attrgetter
from sys import getsizeof
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from compact.messages.dialects.wire import begins_with

K = TypeVar("K")
V = TypeVar("V")


_MAX_DEPTH = 16
_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
_SMALL_BYTES = 32


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


class Counted(NamedTuple):
    """A message or a tool that was counted."""

    copy: Any
    """Its value at that time; None if it cannot be compared."""
    raw: int
    share: int
    kind: str
    """What it was counted as: the name of the dialect, or a tool."""
    size: int
    """The size of the copy in bytes; 0 if there is none."""
    attached: tuple[int, int] | None = None
    """How many pictures, documents and other binary parts it holds, and their characters on the wire, at most. None: none."""


class Prefix(NamedTuple):
    """The beginning of a counted list. Comparing it as a whole is three times faster than message by message."""

    copies: list[Any]
    shares: tuple[int, ...]
    kind: str
    size: int
    attached: tuple[int, int] = (0, 0)
    """The sums of `Counted.attached`."""


_COPY, _SIZE = attrgetter("copy"), attrgetter("size")
ATTACHED = attrgetter("attached")
_NOTHING = Prefix([], (0, 0, 0), "", 0)


class Known:
    """Remembers items by their id and prefixes by the id of the list's first item, all within `limit` bytes.

    A prefix is stored anew in each call, so the items that it covers are dropped first: for a session that is too large
    for both, the prefix is kept.
    """

    def __init__(self, limit: int) -> None:
        self.memo: Memo[int, Counted | Prefix] = Memo(limit)
        """Items by their id, prefixes by the negative id."""

    def find(self, item: Any, kind: str) -> Counted | None:
        """Return what is remembered of an item, or None if it is unknown or has changed.

        The id may belong to another object by now, and a message may have been changed in place, so the item must equal
        its copy.
        """
        entry = self.memo.get(id(item))
        return entry if isinstance(entry, Counted) and entry.kind == kind and entry.copy == item else None

    def remember(
        self,
        item: Any,
        raw: int,
        share: int,
        kind: str,
        *,
        is_plain: bool = False,
        attached: tuple[int, int] | None = None,
    ) -> Counted:
        """Remember a count. A plain message is a dict of two strings, which is quick to copy."""
        if is_plain:
            copy = item.copy()
            size = getsizeof(copy) + getsizeof(copy["role"]) + getsizeof(copy["content"])
        else:
            copy, size = snapshot(item)
        entry = Counted(copy, raw, share, kind, size, attached)
        if size:
            self.memo.put(id(item), entry, size)
        return entry

    def find_prefix(self, items: Sequence[Any], kind: str) -> Prefix:
        """Return the longest known prefix of a list, or an empty one."""
        prefix = self.memo.get(-id(items[0])) if items else None
        if isinstance(prefix, Prefix) and prefix.kind == kind and begins_with(items, prefix.copies):
            return prefix
        return Prefix([], (0, 0, 0), kind, 0)

    def extend_prefix(
        self,
        prefix: Prefix,
        items: Sequence[Any],
        entries: list[Counted],
        shares: Sequence[int],
        attached: tuple[int, int] = (0, 0),
    ) -> None:
        """Store a prefix of `items`, extended by the entries that follow it."""
        copies, size = prefix.copies.copy(), prefix.size
        for entry in entries:
            if not entry.size:
                return  # it cannot be compared, so it ends the prefix
            copies.append(entry.copy)
            size += entry.size
        self.memo.put(-id(items[0]), Prefix(copies, tuple(shares), prefix.kind, size, attached), size)


class Running:
    """The counts of one session's list, however large it is, as long as the list grows. Freed with the session.

    The copies share their strings with the messages, so they take little beside them. Only one call may use it at a time.
    """

    def __init__(self) -> None:
        self._prefix = _NOTHING
        self._counter: object = None

    def find_prefix(self, counter: object, items: Sequence[Any], kind: str) -> Prefix:
        """Return what `counter` has counted of a list, or an empty prefix."""
        known = self._prefix
        if self._counter is counter and known.kind == kind and begins_with(items, known.copies):
            return known
        return Prefix([], (0, 0, 0), kind, 0)

    def extend_prefix(
        self,
        counter: object,
        prefix: Prefix,
        entries: list[Counted],
        shares: Sequence[int],
        attached: tuple[int, int] = (0, 0),
    ) -> None:
        """Add what follows a prefix that `find_prefix` returned, up to the first entry that cannot be compared."""
        kept = shares
        if not all(map(_SIZE, entries)):
            kept = list(prefix.shares)
            entries = list(takewhile(_SIZE, entries))
            for entry in entries:
                kept[entry.share] += entry.raw
            attached = add_attached(prefix.attached, entries)
        prefix.copies.extend(map(_COPY, entries))
        self._prefix, self._counter = prefix._replace(shares=tuple(kept), attached=attached), counter


def add_attached(known: tuple[int, int], entries: Iterable[Counted]) -> tuple[int, int]:
    """Add the attachments of messages to those of the list before them."""
    count, chars = known
    for entry in entries:
        if entry.attached is not None:
            count, chars = count + entry.attached[0], chars + entry.attached[1]
    return count, chars


def snapshot(value: Any) -> tuple[Any, int]:
    """Return a deep copy of plain data and its size in bytes; (None, 0) for anything else.

    Other objects could change without becoming unequal, and deeply nested data is slow to compare, so neither is
    remembered.
    """
    try:
        copied = _copy(value, _MAX_DEPTH)
    except _NotPlain:
        return None, 0
    return copied, _weight(copied)


class _NotPlain(Exception):
    """Ends the recursion; never leaves this module."""


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth == 0:
        raise _NotPlain
    if kind is dict:
        copied = value.copy()
        for key, entry in value.items():
            if type(entry) not in _ATOMS:  # most are atoms, which the copy already has
                copied[key] = _copy(entry, depth - 1)
        return copied
    if kind is list or kind is tuple:
        return kind([_copy(entry, depth - 1) for entry in value])
    raise _NotPlain


def _weight(value: Any) -> int:
    if type(value) is str or type(value) is bytes:
        return getsizeof(value)
    if type(value) not in (dict, list, tuple):
        return _SMALL_BYTES
    size = getsizeof(value)
    for entry in value.values() if type(value) is dict else value:
        size += getsizeof(entry) if type(entry) is str else _weight(entry)
    return size
