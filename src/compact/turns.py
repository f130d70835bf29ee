"""Threads that work hard beside an event loop take turns.

Python runs one thread at a time and passes on every few milliseconds: beside thirty busy threads a loop waits thirty times
as long as beside one. So the threads that work for callers on event loops work one after the other. A thread gives up its
turn before it waits for a disk, a network or a model, and takes one again when it goes on.
"""

from __future__ import annotations

import os
import threading
import time

_PATIENCE_S = 5.0
"""A thread that waited so long for its turn goes on without, to its end: being late is worse than being in the way."""
_LONGEST_TURN_S = 1.0
"""Whoever has had the turn for so long loses it to the next: it may hang, in code that does not say that it waits."""


class Taker:
    """A thread that takes turns."""

    def __init__(self) -> None:
        self._patient = True

    def take(self) -> None:
        """Waits until it is its turn, or its patience is at an end."""
        if self._patient and _turn.holder is not self:
            self._patient = _turn.given_to(self)

    def rest(self) -> None:
        """Gives up the turn, if it has it. Any thread may call it."""
        if _turn.holder is self:
            _turn.take_from(self)


class _Turn:
    """The one turn of the process."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._since = 0.0
        """When it was last taken."""
        self.holder: Taker | None = None
        self.mine = threading.local()

    def given_to(self, taker: Taker) -> bool:
        """Waits for the turn; whether it came."""
        give_up = time.monotonic() + _PATIENCE_S
        with self._changed:
            while self.holder is not None:
                now, lost_at = time.monotonic(), self._since + _LONGEST_TURN_S
                if now >= lost_at:
                    break
                if now >= give_up:
                    return False
                self._changed.wait(min(give_up, lost_at) - now)
            self.holder, self._since = taker, time.monotonic()
        return True

    def take_from(self, taker: Taker) -> None:
        """Makes it free, unless somebody else has it by now."""
        with self._changed:
            if self.holder is taker:
                self.holder = None
                self._changed.notify()


_turn = _Turn()


def join() -> Taker:
    """This thread takes turns from now on, until `leave`. A thread that does not call it never waits here."""
    _turn.mine.taker = taker = Taker()
    taker.take()
    return taker


def take() -> None:
    """Waits until it is this thread's turn. Does nothing in a thread that has not joined, or has its turn."""
    taker: Taker | None = getattr(_turn.mine, "taker", None)
    if taker is not None:
        taker.take()


def rest() -> None:
    """Gives up the turn: what follows is waiting, not work."""
    taker: Taker | None = getattr(_turn.mine, "taker", None)
    if taker is not None:
        taker.rest()


def leave() -> None:
    """This thread takes no turns any more."""
    rest()
    _turn.mine.taker = None


# Whoever had the turn does not exist in a forked child.
os.register_at_fork(after_in_child=_turn.__init__)  # type: ignore[misc]
