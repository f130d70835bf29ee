"""An event loop in a thread of its own, for stores that wait for a network from plain code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from compact.errors import ArchiveError

T = TypeVar("T")

_first_process: int | None = None


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
