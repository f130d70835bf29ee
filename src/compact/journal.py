"""Events on their way out: into the archive first, then to whoever listens. Never on the caller's thread."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias
from weakref import WeakSet

from compact.errors import CompactError
from compact.events import Event
from compact.exporters.protocol import Exporter
from compact.follower import Follower
from compact.threads import in_thread

log = logging.getLogger("compact")

Append: TypeAlias = Callable[[str, Sequence[Event]], None]
"""Writes events of one session into the archive."""

_PAUSE_S = 0.005
"""Events that come close together are written together."""
_LINGER_S = 1.0
"""So long a writer without work waits for more: starting a thread is what costs an agent most."""
_LAST_S = 0.5
"""What exporters tell when they are closed has at least so long to be written."""
_LIMIT = 10_000
"""Events that may wait. Beyond it the oldest are written by the caller itself, so that none is lost."""


class Journal:
    """Writes events in their order, in batches, from a thread of its own that lives while there is something to do.

    A process that ends writes its last events before it does.
    """

    def __init__(self, append: Append, followers: Sequence[Follower] = ()) -> None:
        self._append = append
        self._followers = tuple(followers)
        self._noticing = [
            follower.exporter.noticed
            for follower in followers
            if type(follower.exporter).noticed is not Exporter.noticed
        ]
        self._waiting: deque[Event] = deque()
        self._starting = threading.Lock()
        self._writing = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False
        _journals.add(self)

    def emit(self, event: Event) -> None:
        """Takes an event. Costs an append to a list."""
        for noticed in self._noticing:
            noticed(event)
        self._waiting.append(event)
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None or not self._thread.is_alive():  # it is not, after a fork
            try:
                self._start()
            except RuntimeError:  # the interpreter is shutting down and starts no threads any more
                self.flush()
        if len(self._waiting) >= _LIMIT:
            self.flush()

    def heard(self, session_id: str, lines: bytes) -> None:
        """Takes event lines that the archive has just written, for the exporters."""
        for follower in self._followers:
            follower.hear(session_id, lines)

    def flush(self) -> None:
        """Writes everything that waits. Events that the archive does not take are reported once and given up."""
        with self._writing:
            while self._waiting:
                self._write(self._take())

    def close(self, timeout_s: float) -> None:
        """Flushes, and closes the exporters, within so long. May be called twice, and events may still follow.

        What an archive that hangs has not taken by then is written when it goes on.
        """
        give_up = time.monotonic() + timeout_s
        self._flush_within(timeout_s)
        for follower in self._followers:
            follower.close(max(0.0, give_up - time.monotonic()))
        self._flush_within(max(_LAST_S, give_up - time.monotonic()))

    def _flush_within(self, timeout_s: float) -> None:
        if not self._waiting and self._writing.acquire(blocking=False):
            self._writing.release()
            return
        try:
            flushed = in_thread(self.flush, "compact-flush")
        except RuntimeError:  # the process is ending and starts no threads any more
            self.flush()
            return
        try:
            flushed.result(timeout_s)
        except TimeoutError:
            log.warning("the archive did not take the last events within %g s", timeout_s)

    def stats(self) -> dict[str, dict[str, int]]:
        """What became of the events, by exporter."""
        return {follower.name: follower.stats() for follower in self._followers}

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, name="compact-journal", daemon=True)
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        """Writes until nothing more comes. A journal that nobody uses any more has no thread that would keep it."""
        while self._wake.wait(_LINGER_S):
            time.sleep(_PAUSE_S)
            self._wake.clear()
            self.flush()
        self._thread = None
        self.flush()  # what came after the wait was over, and before anybody could see that

    def _take(self) -> list[Event]:
        """The next events of one session: a log is written in one piece."""
        batch = [self._waiting.popleft()]
        while self._waiting and self._waiting[0].session_id == batch[0].session_id:
            batch.append(self._waiting.popleft())
        return batch

    def _write(self, batch: list[Event]) -> None:
        try:
            self._append(batch[0].session_id, batch)
            self._complained = False
        except CompactError as problem:
            if not self._complained:
                log.warning("events are not recorded: %s", problem)
                self._complained = True


_journals: WeakSet[Journal] = WeakSet()


@atexit.register
def _flush_all() -> None:
    for journal in list(_journals):
        journal.flush()
