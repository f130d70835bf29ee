"""Time limits for stores that wait for a network.

A store limits each request. All requests that one call of the archive makes share one more limit: an `Operation` adds up
how long they were waited for, and the store gives each request only what is left. Only waiting counts, so redacting a
large text uses up none of the store's time.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

from compact.errors import ArchiveError

T = TypeVar("T")

_first_process: int | None = None


class Operation:
    """Requests that share one limit: "quick" while an agent waits for it, "step" for everything that makes a step.

    May be entered more than once, because `begin` and `commit` of a step are one operation.
    """

    def __init__(self, kind: Literal["quick", "step"]) -> None:
        self.kind = kind
        self._waited_s = 0.0
        self._share = 1.0

    def left(self, limit_s: float) -> float:
        """Return what is left of a limit, in seconds; 0 or less once it is used up."""
        return limit_s * self._share - self._waited_s

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Make requests inside part of this operation, or of the outer one if an operation is already under way."""
        if _current.get() is not None:
            yield
            return
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time spent inside."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - began

    @contextmanager
    def sharing(self, part: float) -> Iterator[None]:
        """Let requests inside use only a part of the limit, so that the rest is left for what follows."""
        self._share = part
        try:
            yield
        finally:
            self._share = 1.0


_current: ContextVar[Operation | None] = ContextVar("compact_archive_operation", default=None)


def current() -> Operation | None:
    """Return the operation that this code runs in."""
    return _current.get()


class LoopThread:
    """An event loop in its own thread, started on first use. Lets plain code await with a time limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], limit_s: float) -> T:
        """Return the result of the work.

        Raises:
            TimeoutError: the work took longer than `limit_s` and was cancelled.
            ArchiveError: this process was forked after the network client had started, or `close` was called meanwhile.
        """
        _check_not_forked()

        async def limited() -> T:
            return await asyncio.wait_for(work(), limit_s)

        future = asyncio.run_coroutine_threadsafe(limited(), self._start())
        try:
            return future.result()
        except CancelledError:
            raise ArchiveError("the archive was closed during a call", reason="closed") from None

    def close(self) -> None:
        """Cancel running work and stop the thread. May be called twice."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or not thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="compact-archive", daemon=True
                )
                self._thread.start()
            return self._loop


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _check_not_forked() -> None:
    # The client's threads do not exist in a forked child, so a call there would wait forever.
    global _first_process  # noqa: PLW0603  # the client's runtime is one per process, so this must be too
    if _first_process is None:
        _first_process = os.getpid()
    if _first_process != os.getpid():
        raise ArchiveError(
            f"process {os.getpid()} was forked from process {_first_process} after that had used the object store",
            hint="Open the archive in the child only, or start workers with the 'spawn' or 'forkserver' method",
            reason="forked",
        )
