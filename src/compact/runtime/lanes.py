"""One session, one run at a time.

A run holds its session's lane until its work has ended, and other calls of the session wait for it. A run that takes too
long, or that nobody waits for any more, is fenced: the lane is free at once, and whatever the run still does is discarded.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

NEVER = float("inf")


class Fenced(BaseException):
    """Ends the work of a run that lost its lane. Not an error, so nothing on the way may handle it as one."""


class LaneHolder(Protocol):
    """What a lane needs of a run."""

    generation: int
    watchers: int
    ended: Future[None] | None
    is_fenced: bool
    is_out_of_time: bool

    def lose(self) -> None:
        """The lane is being taken away, and the next run has not entered yet. Must be quick."""

    def interrupt(self) -> None:
        """Stop what the run does and waits for."""


H = TypeVar("H", bound=LaneHolder)


class Lane(Generic[H]):
    """Who works on a session. Costs a lock and two attributes while nobody waits."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._generation = 0
        self.run: H | None = None
        """The run that holds the lane."""

    def enter(self, run: H) -> H | None:
        """Give a free lane to `run` and return None; otherwise return the run that holds it, now watched by the caller."""
        with self._mutex:
            busy = self.run
            if busy is None:
                self._generation += 1
                run.generation = self._generation
                self.run = run
            else:
                busy.watchers += 1
                busy.ended = busy.ended or Future()
            return busy

    def watch(self, run: H) -> Future[None]:
        """A future that is done when the run has ended or was fenced."""
        with self._mutex:
            if run.ended is None:
                run.ended = Future()
                if self.run is not run:
                    run.ended.set_result(None)
            return run.ended

    def leave(self, run: H, settle: Callable[[], None] | None = None) -> None:
        """End a run. `settle` is called first, unless the run was fenced."""
        with self._mutex:
            if self.run is not run:
                return
            if settle is not None:
                settle()
            self.run = None
        if run.ended is not None:
            _set(run.ended)

    def fence(self, run: H, *, out_of_time: bool) -> bool:
        """Take the lane away from a run. Returns False if it no longer held it."""
        with self._mutex:
            if self.run is not run:
                return False
            run.is_fenced, run.is_out_of_time = True, out_of_time
            run.lose()
            self.run = None
        run.interrupt()
        if run.ended is not None:
            _set(run.ended)
        return True

    def forsake(self, run: H) -> None:
        """A caller no longer waits for a run. A run that nobody waits for is fenced."""
        with self._mutex:
            run.watchers -= 1
            is_alone = run.watchers <= 0
        if is_alone:
            self.fence(run, out_of_time=False)

    def when_free(self, settle: Callable[[], None]) -> None:
        """Call `settle` if nobody works on the session."""
        with self._mutex:
            if self.run is None:
                settle()


# --- waiting, on a thread or on an event loop


@dataclass(frozen=True, slots=True)
class Wait:
    """An effect: wait for a future, until a moment of the monotonic clock. The answer is whether it came in time."""

    ended: Future[Any]
    until: float


def wait_here(wanted: Wait) -> bool:
    """Serve a `Wait` on the caller's thread."""
    try:
        wanted.ended.exception(_seconds_to(wanted.until))
    except TimeoutError:
        return False
    return True


async def wait_on_loop(wanted: Wait) -> bool:
    """Serve a `Wait` on the caller's event loop."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(_wake, woken)

    wanted.ended.add_done_callback(wake)
    try:
        async with asyncio.timeout(_seconds_to(wanted.until)):
            await woken
    except TimeoutError:
        return wanted.ended.done()
    return True


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _seconds_to(until: float) -> float | None:
    return None if until == NEVER else max(0.0, until - time.monotonic())


def _set(ended: Future[None]) -> None:
    with suppress(InvalidStateError):
        ended.set_result(None)
