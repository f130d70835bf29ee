"""What compact handed to the SDK in this run, and what it stands for.

The SDK builds its requests on what it was given: the shortened history of a `CompactSession`, or the result of the filter.
To the manager every request of a session is shown with its full history, so that all parts work on one state.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agents import get_current_trace

from compact.engine.state import continues

_REMEMBERED = 4
"""Lists of one run: the SDK reads a session more than once."""


@dataclass(slots=True, eq=False)
class Handed:
    """A list that compact handed to the SDK, and the history that it stands for."""

    items: Sequence[Any]
    full: Sequence[Any]
    session_id: str | None = None
    """The id of the stored session that it was read from, or the session that it was made for."""
    owner: object = None
    """Who handed it out: a `CompactSession`, or the filter's manager."""
    added: int = 0
    """How many items the run has stored since."""
    around: object = field(default_factory=get_current_trace)
    """The trace that it was handed out in. The SDK may read a session before it opens the trace of its run."""
    run: object = None
    """The trace of the run that it was handed to, once a list has shown it."""

    def is_of_run(self, items: Sequence[Any]) -> bool:
        """Whether a list is of the run that this was handed to.

        It goes on from what was handed out, with all that was stored since. Other lists, such as those of agents that
        serve as tools, are of the run if they are in its own trace; a trace that the host has opened around several runs
        says nothing.
        """
        trace = get_current_trace()
        if self.run is not None and self.run is not trace:
            return False
        if self._goes_on(items):
            self.run = trace
            return True
        return self.run is not None and self.run is not self.around

    def is_sent_as(self, items: Sequence[Any]) -> bool:
        """Whether a list is this one, item by item, in the same trace. Another run's may have the same words."""
        is_this = len(items) == len(self.items) and all(map(operator.is_, items, self.items))
        return is_this and self.around is get_current_trace()

    def _goes_on(self, items: Sequence[Any]) -> bool:
        known = (self.items, self.full)
        return any(len(items) >= len(each) + self.added and continues(items, each) for each in known)


class HandedOut:
    """The newest lists that were handed out in this task and in those that copy its context."""

    def __init__(self, name: str) -> None:
        self._newest: ContextVar[tuple[Handed, ...]] = ContextVar(name, default=())

    def add(self, handed: Handed) -> None:
        """Remember a list."""
        self._newest.set((*self._newest.get(), handed)[-_REMEMBERED:])

    @property
    def newest(self) -> Handed | None:
        """The list that was handed out last."""
        return next(reversed(self._newest.get()), None)

    def grow(self, owner: object, count: int) -> None:
        """Note that a run has stored items in the session that it was given."""
        newest = self.newest
        if newest is not None and newest.owner is owner:
            newest.added += count

    def expand(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the full history behind a list that continues one of these; else the list itself."""
        known = [each for each in self._newest.get() if each.items and continues(items, each.items)]
        longest = max(known, key=lambda each: len(each.items), default=None)
        return items if longest is None else [*longest.full, *items[len(longest.items) :]]


from_session = HandedOut("compact_from_session")
"""What a `CompactSession` returned. The SDK's own list of a run begins with it."""
from_filter = HandedOut("compact_from_filter")
"""What the filter returned. The model gets it next."""
