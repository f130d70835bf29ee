"""Which session a host's call belongs to."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import chain, count
from typing import Any
from weakref import WeakKeyDictionary

from compact.runtime.manager import CompactManager

SessionId = str | Callable[[Any], str] | None
"""A session's id, a function that finds it in what the host passes, or None to let the integration find one."""

_REMEMBERED = 256
"""Unnamed conversations that are told apart at the same time."""

current_session: ContextVar[str | None] = ContextVar("compact_session", default=None)
"""The session of the newest call in this task, for hooks that are told nothing."""


class Conversations:
    """Tells conversations apart by their contents: a list that continues a known one belongs to it.

    Hosts run several conversations through one hook, including sub-agents and parallel runs, and do not always say
    which is which. Thread-safe.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[list[Any], list[Any]]] = OrderedDict()
        """By name: the host's newest list, and what it was told to send for it."""
        self._lock = threading.Lock()

    def name(self, items: Sequence[Any], default: Callable[[], str]) -> str:
        """Return the name of the conversation that `items` continues. A new one is called `default()`, `default().2`, ..."""
        with self._lock:
            for name, (given, kept) in reversed(self._known.items()):
                if continues(items, given) or continues(items, kept):
                    return name
            wanted = default()
            names = chain([wanted], (f"{wanted}.{number}" for number in count(2)))
            name = next(name for name in names if name not in self._known)
            self._known[name] = list(items), list(items)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return name

    def note(self, name: str, given: Sequence[Any], kept: Sequence[Any]) -> None:
        """Remember a conversation's newest list and what was sent for it."""
        with self._lock:
            known, known_kept = self._known.pop(name, ([], []))
            # A list that continues only what was sent is already shortened: it is passing through a second hook.
            if continues(given, known) or not continues(given, known_kept):
                known = list(given)
            self._known[name] = known, list(kept)


def continues(items: Sequence[Any], before: Sequence[Any]) -> bool:
    """Return whether `items` starts with all of `before`. Nothing continues an empty list."""
    return 0 < len(before) <= len(items) and list(items[: len(before)]) == list(before)


_conversations: WeakKeyDictionary[CompactManager, Conversations] = WeakKeyDictionary()
_creation = threading.Lock()


def conversations_of(manager: CompactManager) -> Conversations:
    """Return the conversations of a manager, which all its hooks share."""
    with _creation:
        return _conversations.setdefault(manager, Conversations())


def name_session(
    manager: CompactManager,
    session_id: SessionId,
    call: Any,
    items: Sequence[Any],
    default: Callable[[], str],
    told: str | None = None,
) -> str:
    """Return the session of a host's call: `session_id`, else what the host `told`, else by the contents of `items`."""
    if callable(session_id):
        return session_id(call)
    return session_id or told or conversations_of(manager).name(items, default)
