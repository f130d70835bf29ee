"""One session, one run at a time: whoever comes meanwhile waits for its end, and nobody waits forever.

A run holds its session's lane until its work has ended. A run that takes too long, or that nobody waits for any more, is
fenced: the lane is free at once, the run's number is out of date, and what it still does counts for nothing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from compact import turns
from compact.errors import CompactError

T = TypeVar("T")


class Fenced(BaseException):
    """Ends the work of a run whose lane was taken away. No error: nothing on the way may take it for one."""


class Run:
    """One piece of work on a session."""

    generation: int = 0
    """Its number in the lane, given when it enters."""
    fenced: bool = False
    out_of_time: bool = False
    """Why it was fenced: its time was up, or else nobody waited for it any more."""
    ended: Future[None] | None = None
    """Done when the lane is free again; there from the moment that somebody waits."""
    turn: turns.Taker | None = None
    """How its thread takes turns, if it does."""
    _watchers: int = 1
    _answer: Future[Any] | None = None

    def __init__(self, until: float) -> None:
        self.until = until
        """When it is out of time, by the monotonic clock."""

    def check(self) -> None:
        """Nothing, while the lane is this run's.

        Raises:
            Fenced: it is not.
        """
        if self.fenced:
            raise Fenced

    def wait_for(self, answer: Future[T], timeout_s: float | None) -> T:
        """What the answer turns out to be.

        Raises:
            Fenced: the run was fenced meanwhile; the answer is cancelled.
            TimeoutError: it took longer than `timeout_s`; the answer is cancelled.
            CompactError: somebody else cancelled it.
        """
        self._answer = answer
        turns.rest()
        try:
            self.check()
            return answer.result(timeout_s)
        except CancelledError:
            self.check()
            raise CompactError("it was cancelled before it gave an answer") from None
        except TimeoutError:
            if answer.done():
                raise  # its own
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        finally:
            self._answer = None
            answer.cancel()

    def lost(self) -> None:
        """The lane is being taken away, and the next run has not entered yet. Must be quick."""

    def interrupted(self) -> None:
        """The run was fenced: what it waits for is cancelled, and nobody waits for it."""
        if self.turn is not None:
            self.turn.rest()
        answer = self._answer
        if answer is not None:
            answer.cancel()


class Lane:
    """Who works on a session. Costs a lock and two attributes while nobody waits."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._run: Run | None = None
        self._generation = 0

    @property
    def is_free(self) -> bool:
        """Whether nobody works on the session just now."""
        return self._run is None

    def enter(self, run: Run) -> Run | None:
        """The run that is under way and is now watched by the caller; None: the lane was free and is now `run`'s."""
        with self._mutex:
            busy = self._run
            if busy is None:
                self._generation += 1
                run.generation = self._generation
                self._run = run
            else:
                busy._watchers += 1
                busy.ended = busy.ended or Future()
            return busy

    def watched(self, run: Run) -> Future[None]:
        """What is done when the run has ended or was fenced."""
        with self._mutex:
            if run.ended is None:
                run.ended = Future()
                if self._run is not run:
                    run.ended.set_result(None)
            return run.ended

    def leave(self, run: Run, settle: Callable[[], None] | None = None) -> bool:
        """Ends a run. `settle` is called first, unless the run was fenced; the answer is whether it was not."""
        with self._mutex:
            if self._run is not run:
                return False
            if settle is not None:
                settle()
            self._run = None
        _set(run.ended)
        return True

    def fence(self, run: Run, *, out_of_time: bool) -> bool:
        """Takes the lane away from a run; whether it still held it."""
        with self._mutex:
            if self._run is not run:
                return False
            run.fenced, run.out_of_time = True, out_of_time
            run.lost()
            self._run = None
        run.interrupted()
        _set(run.ended)
        return True

    def forsake(self, run: Run) -> None:
        """A caller no longer waits for a run. A run that nobody waits for is fenced."""
        with self._mutex:
            run._watchers -= 1
            alone = run._watchers <= 0
        if alone:
            self.fence(run, out_of_time=False)

    def when_free(self, settle: Callable[[], None]) -> None:
        """Calls `settle` if nobody works on the session."""
        with self._mutex:
            if self._run is None:
                settle()


# --- waiting, on a thread or on an event loop


@dataclass(frozen=True, slots=True)
class Wait:
    """Wanted: to wait for something until a moment of the monotonic clock. The answer is whether it came in time."""

    ended: Future[Any]
    until: float


Waiting: TypeAlias = Generator[Wait, bool, T]
"""Work that never blocks by itself: it yields what it waits for."""


def wait_here(waiting: Waiting[T]) -> T:
    """Runs it on the caller's thread."""
    try:
        wanted = next(waiting)
        while True:
            wanted = waiting.send(_came(wanted))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        waiting.close()


async def wait_on_loop(waiting: Waiting[T]) -> T:
    """Runs it on the caller's event loop."""
    try:
        wanted = next(waiting)
        while True:
            wanted = waiting.send(await _acame(wanted))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        waiting.close()


def _came(wanted: Wait) -> bool:
    try:
        wanted.ended.exception(_seconds_to(wanted.until))
    except TimeoutError:
        return False
    return True


async def _acame(wanted: Wait) -> bool:
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
    return None if until == float("inf") else max(0.0, until - time.monotonic())


def _set(ended: Future[None] | None) -> None:
    if ended is not None:
        with suppress(InvalidStateError):
            ended.set_result(None)
