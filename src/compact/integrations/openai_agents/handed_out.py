"""What compact handed to the SDK in this run, and what it stands for.

The SDK builds its requests on what it was given: the shortened history of a `CompactSession`, or the result of the filter.
To the manager every request of a session is shown with its full history, so that all parts work on one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from compact.engine.state import continues

_REMEMBERED = 4
"""Lists of one run: the SDK reads a session more than once."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A list that compact handed to the SDK, and the history that it stands for."""

    session_id: str | None
    """The id of the stored session that it was read from."""
    items: Sequence[Any]
    full: Sequence[Any]


class HandedOut:
    """The newest lists that were handed out in this task and in those that copy its context."""

    def __init__(self, name: str) -> None:
        self._newest: ContextVar[tuple[Handed, ...]] = ContextVar(name, default=())

    def add(self, handed: Handed) -> None:
        """Remember a list."""
        self._newest.set((*self._newest.get(), handed)[-_REMEMBERED:])

    @property
    def session_id(self) -> str | None:
        """The stored session that was read last."""
        newest = self._newest.get()
        return newest[-1].session_id if newest else None

    def expand(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the full history behind a list that continues one of these; else the list itself."""
        known = [each for each in self._newest.get() if each.items and continues(items, each.items)]
        longest = max(known, key=lambda each: len(each.items), default=None)
        return items if longest is None else [*longest.full, *items[len(longest.items) :]]


from_session = HandedOut("compact_from_session")
"""What a `CompactSession` returned. The SDK's own list of a run begins with it."""
from_filter = HandedOut("compact_from_filter")
"""What the filter returned. The model gets it next."""
