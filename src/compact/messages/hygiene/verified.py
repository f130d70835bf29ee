"""Checks only what is new: a session that was legal a moment ago is checked from its last reply on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.legality import violations_in


class Verified:
    """Remembers a list that was found legal. One instance belongs to one session; it is not thread-safe."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._dialect: Dialect | None = None
        self._calls: set[str] = set()
        self._resume = 0

    def seen(self, items: Sequence[Any]) -> tuple[int, Dialect | None]:
        """Return how many leading messages were found legal before, and in which dialect."""
        known = len(self._items)
        if known and len(items) >= known and _first(items, known) == self._items:
            return known, self._dialect
        return 0, None

    def is_legal(self, items: Sequence[Any], dialect: Dialect, known: int) -> bool:
        """Whether `violations` would find nothing. The first `known` messages (see `seen`) are not checked again.

        Raises:
            MessageError: an entry is not a message.
        """
        if not known or dialect is not self._dialect:
            self._items, self._calls, self._resume, known = [], set(), 0, 0
        start = self._resume
        _, fresh = dialects.read(items[start:], dialect)
        found = violations_in(fresh, dialect)
        # The message before the reply is legal in its place, but may not look legal at the beginning of a list.
        if any(violation.index or not start for violation in found):
            self._items = []
            return False
        new_calls = [call.id for message in fresh[known - start :] for call in message.calls if call.id]
        if not self._calls.isdisjoint(new_calls):
            self._items = []
            return False
        self._calls.update(new_calls)
        self._items[known:] = items[known:]
        self._dialect = dialect
        self._resume = start + _last_reply(fresh)
        return True


def _first(items: Sequence[Any], count: int) -> Sequence[Any]:
    return items[:count] if isinstance(items, list) else list(items[:count])


def _last_reply(messages: Sequence[Any]) -> int:
    """The index of the message before the newest reply."""
    index = len(messages)
    while index and messages[index - 1].role != "assistant":
        index -= 1
    while index and messages[index - 1].role == "assistant":
        index -= 1
    return max(0, index - 1)
