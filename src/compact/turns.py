"""Threads that work hard beside an event loop take turns.

Python runs one thread at a time and passes on every few milliseconds: beside thirty busy threads a loop waits thirty times
as long as beside one. So the threads that work for callers on event loops work one after the other. A thread gives up its
turn before it waits for a disk, a network or a model, and takes one again when it goes on.
"""

from __future__ import annotations

import os
import threading

_PATIENCE_S = 5.0
"""A thread that waited so long for its turn goes on without: being late is worse than being in the way."""

_turn = threading.Lock()
_mine = threading.local()


def join() -> None:
    """This thread takes turns from now on, until `leave`. Every thread that does not call it never waits here."""
    _mine.joined, _mine.has_turn = True, False
    take()


def take() -> None:
    """Waits until it is this thread's turn. Does nothing in a thread that has not joined, or has its turn."""
    if getattr(_mine, "joined", False) and not _mine.has_turn:
        _mine.has_turn = _turn.acquire(timeout=_PATIENCE_S)


def rest() -> None:
    """Gives up the turn: what follows is waiting, not work."""
    if getattr(_mine, "has_turn", False):
        _mine.has_turn = False
        _turn.release()


def leave() -> None:
    """This thread takes no turns any more."""
    rest()
    _mine.joined = False


def _begin_anew() -> None:
    global _turn, _mine  # whoever had the turn does not exist in a forked child
    _turn, _mine = threading.Lock(), threading.local()


os.register_at_fork(after_in_child=_begin_anew)
