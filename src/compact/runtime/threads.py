"""Work in the background: reusable daemon threads, and the turns that they take at the processor."""

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

from compact.engine.effects import Emit, Serve
from compact.summaries.request import SummaryRequest

T = TypeVar("T")

_IDLE_S = 10.0
"""How long an idle thread waits for work before it ends."""
_IDLE = "compact-idle"
_EXIT_S = 2.0
"""How long an ending process waits for work that was told to stop."""
_PATIENCE_S = 5.0
"""A thread that waits this long for its turn goes on without it: being late is worse than being in the way."""


class _Crew:
    """As many threads as there is work at a time, and one to spare.

    Starting a thread blocks its starter until the new one has run, which takes a while beside busy threads. So the thread
    that takes up the last idle place starts the next one, and a caller on an event loop only starts the very first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def close(self) -> None:
        """Accept no more work."""
        self._closed = True

    def run(self, work: Callable[[], None]) -> None:
        """Have some thread do the work.

        Raises:
            RuntimeError: the process is ending, or no thread can be started.
        """
        if self._closed:
            raise RuntimeError("the process is ending and accepts no new work")
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
        except BaseException:  # no thread can be started
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
                    # While others work, the spare one stays: it may be needed at any moment.
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
                with suppress(RuntimeError):  # the other threads have to do
                    self._start()
            work()
            del work  # its data must not live as long as the thread
            with self._lock:
                self._idle += 1


class ProcessorTurn:
    """One background thread's turns at heavy work.

    Python runs one thread at a time, so an event loop beside thirty busy threads waits thirty times as long as beside one.
    Threads that work for callers on event loops therefore work one after the other. A thread gives up its turn while it
    waits for a disk, a network or a model.
    """

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._held: list[threading.Lock] = []
        """The lock, while it is held. Taking it out of the list is atomic, so it is released once."""

    def take(self) -> None:
        """Wait for the turn. A thread that has lost its patience once never waits again."""
        if self._held or not self._patience_s:
            return
        lock = processor
        if lock.acquire(timeout=self._patience_s):
            self._held.append(lock)
        else:
            self._patience_s = 0.0

    def rest(self) -> None:
        """Give up the turn, from any thread. What follows is waiting, not work."""
        with suppress(IndexError):
            self._held.pop().release()

    def around(self, serve: Serve) -> Serve:
        """Wrap `serve`, so that the turn is given up while the archive works. Summaries may be heavy work themselves."""

        def serve_resting(effect: Any) -> Any:
            if isinstance(effect, Emit):
                return serve(effect)
            if not isinstance(effect, SummaryRequest):
                self.rest()
            try:
                return serve(effect)
            finally:
                self.take()

        return serve_resting


_crew = _Crew()
processor = threading.Lock()
"""Held by the thread that has the turn."""
_stoppable: dict[Future[Any], Callable[[], Any]] = {}


def in_thread(
    work: Callable[[], T],
    name: str,
    result: Future[T] | None = None,
    stop: Callable[[], Any] | None = None,
) -> Future[T]:
    """Run work in another thread, in the caller's context, and return its future result.

    The thread is a daemon, so work that never returns does not keep the process from ending. What it leaves undone is what
    a killed process leaves undone, which is safe at every point. When the process ends, `stop` is called first and the
    work has a moment to end.
    """
    answer: Future[T] = result or Future()
    context = copy_context()

    def run() -> None:
        threading.current_thread().name = name
        try:
            found = context.run(work)
        except BaseException as problem:
            with suppress(InvalidStateError):  # it was cancelled meanwhile
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
    except BaseException:  # no thread can be started
        _stoppable.pop(answer, None)
        raise
    return answer


@cache
def _stop_at_exit() -> None:
    atexit.register(_stop_all)


def _stop_all() -> None:
    """Let daemons leave C++ extensions. A thread that is killed inside one crashes the process."""
    _crew.close()
    under_way = list(_stoppable.items())
    for _, stop in under_way:
        stop()
    wait([answer for answer, _ in under_way], _EXIT_S)


def _start_over() -> None:
    global _crew, processor  # neither threads nor their locks survive a fork
    _crew, processor = _Crew(), threading.Lock()
    _stoppable.clear()


os.register_at_fork(after_in_child=_start_over)
