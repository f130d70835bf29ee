"""Messages that were counted: known again by comparing them with a copy, so that a change in place is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof
from typing import Any, NamedTuple

from compact.tokens.memo import Memo

_MAX_DEPTH = 16
_ATOMS = frozenset({str, int, float, bool, type(None)})
_SMALL_BYTES = 32


class Entry(NamedTuple):
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
        self.memo: Memo[int, Entry | Prefix] = Memo(limit)
        """Entries by the object's id, prefixes by the negative of it."""

    def recall(self, item: Any, kind: str) -> Entry | None:
        """The entry of what was counted before and is still the same.

        An id may have been given to another object, and a message may have been changed in place: only one that
        equals its copy is known.
        """
        entry = self.memo.get(id(item))
        return entry if isinstance(entry, Entry) and entry.kind == kind and entry.copy == item else None

    def remember(self, item: Any, raw: int, share: int, kind: str) -> Entry:
        """The entry of what was counted just now."""
        copy, size = snapshot(item)
        entry = Entry(copy, raw, share, kind, size)
        if size:
            self.memo.put(id(item), entry, size)
        return entry

    def recall_prefix(self, items: Sequence[Any], kind: str) -> Prefix:
        """The longest beginning of a list that is known as one; an empty one if there is none."""
        prefix = self.memo.get(-id(items[0])) if items else None
        if (
            isinstance(prefix, Prefix)
            and prefix.kind == kind
            and items[: len(prefix.copies)] == prefix.copies
        ):
            return prefix
        return Prefix([], (0, 0, 0), kind, 0)

    def extend_prefix(
        self, prefix: Prefix, items: Sequence[Any], entries: list[Entry], shares: Sequence[int]
    ) -> None:
        """A prefix of `items` and the entries that follow it are known as one from now on."""
        if entries and all(entry.size for entry in entries):
            copies = prefix.copies + [entry.copy for entry in entries]
            size = prefix.size + sum(entry.size for entry in entries)
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
