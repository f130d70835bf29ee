"""Events on their way out: into the archive first, then to the exporters. Never on the caller's thread."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias
from weakref import WeakSet

from compact.engine.effects import Emit
from compact.errors import CompactError
from compact.events import Event, Recorder
from compact.events.session_key import SessionKey
from compact.tracing.export_worker import ExportWorker
from compact.tracing.exporters.exporter import Exporter
from compact.tracing.log_lines import LOGGED, log_event

log = logging.getLogger("compact")

Append: TypeAlias = Callable[[SessionKey, Sequence[Event]], None]
"""Writes events of one session into the archive."""
Report: TypeAlias = Callable[[SessionKey, int], None]
"""Called once the archive takes events again, with a session and how many of its events were dropped."""

PAUSE_S = 0.005
"""Events that arrive within this time are written together."""
LINGER_S = 1.0
"""How long an idle writer waits for more events. Starting a thread is what costs an agent most."""
_LAST_S = 0.5
"""The least time for writing what exporters record when they are closed."""
_AT_EXIT_S = 3.0
"""How long an ending process waits for an archive that does not take its last events."""
_POLL_S = 0.002
LIMIT = 10_000
"""Events that may wait for an archive that hangs. Beyond that the oldest are dropped, because no caller waits for tracing."""
MOST = 5 * LIMIT
"""Events that may wait at all. An archive that works writes a burst in a moment."""
_BATCH = 1_000
HANGS_S = 5.0
"""An archive that takes longer than this to write one batch counts as hanging."""


class _Pending(NamedTuple):
    """An event that was taken and is not written yet."""

    session: SessionKey
    step: int
    emit: Emit


class Journal:
    """Writes events in order, in batches, from its own thread, which lives while there is something to do.

    An ending process writes its last events first, if the archive takes them.
    """

    def __init__(
        self,
        recorder: Recorder,
        append: Append,
        workers: Sequence[ExportWorker],
        *,
        report: Report,
        redact: Callable[[SessionKey, str], str],
        label: Callable[[str], str] = str,
    ) -> None:
        self._recorder = recorder
        self._redact = redact
        self._label = label
        self._append = append
        self._report = report
        self._workers = tuple(workers)
        self._notice = [
            worker.exporter.notice
            for worker in workers
            if type(worker.exporter).notice is not Exporter.notice
        ]
        self._waiting: deque[_Pending] = deque()
        self._starting = threading.Lock()
        self._writing = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False
        self._began: float | None = None
        """When writing the current batch began."""
        self._dropping = threading.Lock()
        self._dropped: Counter[SessionKey] = Counter()
        """Events of each session that found no room and are not reported yet."""
        _journals.add(self)

    def emit(self, session: SessionKey, step: int, emit: Emit) -> None:
        """Take an event. Costs an append to a list, because the record is made when it is written.

        An event without a span takes place now, directly below its session.
        """
        if emit.span is None:
            emit = replace(emit, span=self._recorder.span_now(*session))
        if isinstance(emit.properties, LOGGED) and log.isEnabledFor(logging.INFO):
            log_event(self._label(session.session_id), emit.properties, partial(self._redact, session))
        pending = _Pending(session, step, emit)
        for notice in self._notice:
            notice(self._record(pending))
        self._waiting.append(pending)
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None or not self._thread.is_alive():  # it is dead after a fork
            try:
                self._start()
            except RuntimeError:  # the interpreter is shutting down and starts no threads
                self.flush()
        waiting = len(self._waiting)
        if waiting > LIMIT and (waiting > MOST or self._hangs()):
            self._drop_oldest()

    def pass_on(self, session: SessionKey, lines: bytes) -> None:
        """Pass on event lines that the archive has just written to the exporters."""
        for worker in self._workers:
            worker.enqueue(session, lines)

    def flush(self) -> None:
        """Write everything that waits. Events that the archive does not take are reported once and given up."""
        with self._writing:
            while self._waiting:
                self._write(*self._take())
                if self._dropped and not self._waiting and not self._complained:
                    self._report_dropped()  # at the end, when there is room for what it says

    def close(self, timeout_s: float) -> None:
        """Flush, and close the exporters, within `timeout_s`. May be called twice, and events may still follow.

        What a hanging archive has not taken by then is written when it goes on.
        """
        give_up = time.monotonic() + timeout_s
        self._flush_within(timeout_s)
        for worker in self._workers:
            worker.close(max(0.0, give_up - time.monotonic()))
        self._flush_within(max(_LAST_S, give_up - time.monotonic()))

    def _flush_within(self, timeout_s: float) -> None:
        if not self._is_written_within(timeout_s):
            log.warning("the archive did not take the last events within %g s", round(timeout_s, 2))

    def _is_written_within(self, timeout_s: float) -> bool:
        """Wait until the writer has written everything. Returns False if that takes longer."""
        give_up = time.monotonic() + timeout_s
        while self._writing.acquire(timeout=max(0.0, give_up - time.monotonic())):
            is_empty = not self._waiting
            self._writing.release()
            if is_empty:
                return True
            self._wake.set()
            try:
                self._start()
            except RuntimeError:  # an ending process starts no threads, but then none hangs either
                self.flush()
            time.sleep(_POLL_S)
        return False

    def stats(self) -> dict[str, dict[str, int]]:
        """What became of the events, by exporter."""
        return {worker.name: worker.stats() for worker in self._workers}

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, name="compact-journal", daemon=True)
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        """Write until nothing more comes. A journal that is no longer used has no thread that keeps it alive."""
        while self._wake.wait(LINGER_S):
            time.sleep(PAUSE_S)
            self._wake.clear()
            self.flush()
        self._thread = None
        self.flush()  # what came between the end of the wait and this line

    def _take(self) -> tuple[SessionKey, list[Event]]:
        """Take the next events of one session, because each write goes to one log."""
        first = self._waiting.popleft()
        batch = [self._record(first)]
        while len(batch) < _BATCH and self._waiting and self._waiting[0].session == first.session:
            batch.append(self._record(self._waiting.popleft()))
        return first.session, batch

    def _record(self, pending: _Pending) -> Event:
        emit = pending.emit
        return self._recorder.event(
            emit.properties,
            session_id=pending.session.session_id,
            step=pending.step,
            span=emit.span,
            payload=emit.payload or None,
        )

    def _write(self, session: SessionKey, batch: list[Event]) -> None:
        self._began = time.monotonic()
        try:
            self._append(session, batch)
        except CompactError as problem:
            self._complain(f"events are not recorded: {problem}")
            return
        finally:
            self._began = None
        self._complained = False

    def _hangs(self) -> bool:
        began = self._began
        return began is not None and time.monotonic() - began > HANGS_S

    def _report_dropped(self) -> None:
        with self._dropping:
            dropped, self._dropped = self._dropped, Counter()
        for session, count in dropped.items():
            self._report(session, count)

    def _drop_oldest(self) -> None:
        self._complain(f"the archive does not take events: of more than {LIMIT:,} the oldest are dropped")
        with self._dropping:
            while len(self._waiting) > LIMIT:
                try:
                    self._dropped[self._waiting.popleft().session] += 1
                except IndexError:  # the writer took it
                    return

    def _complain(self, text: str) -> None:
        """Log a problem once, until the archive takes events again."""
        if not self._complained:
            self._complained = True
            log.warning(text)


_journals: WeakSet[Journal] = WeakSet()


@atexit.register
def _flush_all() -> None:
    give_up = time.monotonic() + _AT_EXIT_S
    for journal in list(_journals):
        journal._flush_within(max(0.0, give_up - time.monotonic()))
