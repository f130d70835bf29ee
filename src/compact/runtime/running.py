"""Which session the running call belongs to, as far as the running code itself tells it.

A task or the main thread keeps the session of its newest call. Tasks and threads that copy its context inherit that, which
serves frameworks that run their own tools. For everybody else a session is certain only where its call was made, and only
while no other session had a call there: the next tool call in a server's main thread may be anybody's.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_ENTERED: ContextVar[Mapping[object, _Entered]] = ContextVar("compact_running_session")
_MOST_CALLS = 64
"""Managers, and tenants of managers, whose running call one context remembers."""
_MOST_OTHERS = 8
"""Sessions of one place that are remembered. A request is hardly tried more often."""
_THREADS_INHERIT = bool(getattr(sys.flags, "thread_inherit_context", 0))
"""Whether every new thread begins with a copy of the context, so that a copy says nothing about its work."""


@dataclass(frozen=True, slots=True)
class Right:
    """The right to read what left a conversation. It ends with that conversation's next list."""

    name: str
    taken: int


@dataclass(frozen=True, slots=True)
class _Entered:
    right: Right | None
    """None: the newest call had no session by which it could be told apart."""
    place: Callable[[], Any]
    """The task or thread that made the call."""
    others: frozenset[str] | None
    """The other sessions that had calls there; None: too many, or one that could not be told apart."""


class RunningCall:
    """The running call of one manager."""

    def __init__(self) -> None:
        self._key = object()

    def enter(self, right: Right | None) -> None:
        """Make a session that of the running call. In a worker thread none is: its next job may be somebody else's."""
        known = dict(list(_ENTERED.get({}).items())[-_MOST_CALLS:])
        before, place = known.pop(self._key, None), _place()
        if place is not None:
            here = before if before is not None and before.place() is place else None
            known[self._key] = _Entered(right, weakref.ref(place), _others(right, here))
        _ENTERED.set(known)

    @property
    def newest(self) -> Right | None:
        """The session of the newest call in this task or main thread, or in that whose context was copied."""
        found = self._found
        return None if found is None else found.right

    @property
    def certain(self) -> Right | None:
        """The only session that had calls in this task or main thread, or in that which waits for this thread."""
        right, others = self.here
        return None if others else right

    @property
    def here(self) -> tuple[Right | None, frozenset[str]]:
        """The session of the newest call in such a place, and the others that had calls there. None: it is not certain."""
        found = self._found
        if found is None or found.others is None:
            return None, frozenset()
        place = _place()
        is_here = found.place() is place if place is not None else not _THREADS_INHERIT
        return (found.right, found.others) if is_here else (None, frozenset())

    @property
    def names(self) -> frozenset[str]:
        """All sessions that had calls in such a place, if these are known."""
        right, others = self.here
        return others if right is None else others | {right.name}

    @property
    def is_known_here(self) -> bool:
        """Whether a call was made in this task or main thread."""
        found = self._found
        return found is not None and found.place() is _place()

    @property
    def _found(self) -> _Entered | None:
        return _ENTERED.get({}).get(self._key)


def _others(right: Right | None, before: _Entered | None) -> frozenset[str] | None:
    if right is None or (before is not None and (before.right is None or before.others is None)):
        return None
    if before is None or before.right is None or before.others is None:
        return frozenset()
    others = (before.others | {before.right.name}) - {right.name}
    return others if len(others) <= _MOST_OTHERS else None


def is_program() -> bool:
    """Return whether this is the main thread, outside of every task: the program itself, and no server's work."""
    return _place() is threading.main_thread()


def _place() -> Any:
    """The task, or the main thread; None in any other thread, whose work may be anybody's."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        task = None
    if task is not None:
        return task
    here = threading.current_thread()
    return here if here is threading.main_thread() else None
