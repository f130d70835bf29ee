"""Work in the background: in daemon threads that are used again, told to stop before the process ends."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_IDLE_S = 10.0
"""How long a thread without work waits for some before it ends."""
_IDLE = "compact-idle"
_EXIT_S = 2.0
"""How long a process that ends waits for work that was told to stop."""


class _Crew:
    """Threads, as many as there is work at a time, and one to spare.

    Starting a thread holds up its starter until the new one has run, which beside busy threads takes a while. So whoever
    takes the last idle thread's place starts the next one, and a caller on an event loop only starts the very first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def close(self) -> None:
        """Takes no work any more."""
        self._closed = True

    def run(self, work: Callable[[], None]) -> None:
        """Has some thread do the work.

        Raises:
            RuntimeError: no thread can be started any more.
        """
        if self._closed:
            raise RuntimeError("the process is ending: no new work is begun")
        self._work.put(work)
        with self._lock:
            is_first = not self._threads
            self._threads += is_first
            self._idle += is_first
        if is_first:
            self._start()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._serve, name=_IDLE, daemon=True).start()
        except BaseException:  # no more threads, or the process is ending
            with self._lock:
                self._threads -= 1
                self._idle -= 1
            raise

    def _serve(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    # The spare one stays while others work: they may be needed no more, but it may.
                    if self._work.empty() and (self._idle > 1 or self._idle == self._threads):
                        self._threads -= 1
                        self._idle -= 1
                        return
                continue
            with self._lock:
                self._idle -= 1
                is_last = not self._idle
                self._threads += is_last
                self._idle += is_last
            if is_last:
                with suppress(RuntimeError):  # the others will have to do
                    self._start()
            work()
            del work  # what it worked on must not live as long as the thread
            with self._lock:
                self._idle += 1


_crew = _Crew()
_stoppable: dict[Future[Any], Callable[[], Any]] = {}


def in_thread(
    work: Callable[[], T],
    name: str,
    result: Future[T] | None = None,
    stop: Callable[[], Any] | None = None,
) -> Future[T]:
    """The result of work in another thread, in the caller's context.

    The thread is a daemon: work that never comes back must not keep the process from ending. What it leaves undone then
    is what a killed process leaves undone, and that is safe at every point. Work that can be told to `stop` is told so
    first, and has a moment to end.
    """
    answer: Future[T] = result or Future()
    context = copy_context()

    def run() -> None:
        threading.current_thread().name = name
        try:
            found = context.run(work)
        except BaseException as problem:
            with suppress(InvalidStateError):  # cancelled meanwhile: nobody wants to know
                answer.set_exception(problem)
        else:
            with suppress(InvalidStateError):
                answer.set_result(found)
        finally:
            _stoppable.pop(answer, None)
            threading.current_thread().name = _IDLE

    if stop is not None:
        _stop_at_exit()
        _stoppable[answer] = stop
    try:
        _crew.run(run)
    except BaseException:  # no more threads, or the process is ending
        _stoppable.pop(answer, None)
        raise
    return answer


@cache
def _stop_at_exit() -> None:
    atexit.register(_stop_all)


def _stop_all() -> None:
    """A daemon that is killed inside a C++ extension takes the process down with an error: let it come out of it."""
    _crew.close()
    under_way = list(_stoppable.items())
    for _, stop in under_way:
        stop()
    wait([answer for answer, _ in under_way], _EXIT_S)


def _begin_anew() -> None:
    global _crew  # noqa: PLW0603  # the threads do not exist in a forked child
    _crew = _Crew()
    _stoppable.clear()


os.register_at_fork(after_in_child=_begin_anew)
