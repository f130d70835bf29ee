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
"""A thread that waited so long for its turn goes on without: being late is worse than being in the way."""
_LONGEST_TURN_S = 1.0
"""Whoever has had the turn for so long does not work but waits, in code that does not say so: nobody waits for it."""
_GLANCE_S = 0.05


class _Turn:
    """The one turn of the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.since = 0.0
        """When it was last taken."""
        self.mine = threading.local()

    def taken(self) -> bool:
        """Waits for the turn; whether it came."""
        give_up = time.monotonic() + _PATIENCE_S
        while not self.lock.acquire(timeout=_GLANCE_S):
            now = time.monotonic()
            if now > give_up or now - self.since > _LONGEST_TURN_S:
                return False
        self.since = time.monotonic()
        return True


_turn = _Turn()


def join() -> None:
    """This thread takes turns from now on, until `leave`. A thread that does not call it never waits here."""
    _turn.mine.joined, _turn.mine.has_turn = True, False
    take()


def take() -> None:
    """Waits until it is this thread's turn. Does nothing in a thread that has not joined, or has its turn."""
    mine = _turn.mine
    if getattr(mine, "joined", False) and not mine.has_turn:
        mine.has_turn = _turn.taken()


def rest() -> None:
    """Gives up the turn: what follows is waiting, not work."""
    if getattr(_turn.mine, "has_turn", False):
        _turn.mine.has_turn = False
        _turn.lock.release()


def leave() -> None:
    """This thread takes no turns any more."""
    rest()
    _turn.mine.joined = False


# Whoever had the turn does not exist in a forked child.
os.register_at_fork(after_in_child=_turn.__init__)  # type: ignore[misc]
