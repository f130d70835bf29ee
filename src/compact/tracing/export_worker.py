"""One exporter and the worker that feeds it, so that a slow exporter delays nobody.

The queue is bounded. An exporter that resumes loses nothing: events that found no room, and events that a crashed process
left behind, are read again from the session's log. For any other exporter they are dropped, counted and reported.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Protocol, TypeAlias
from weakref import WeakSet

from compact.errors import CompactError
from compact.events.session_key import SessionKey
from compact.tracing.exporters.exporter import EventDict, Exporter, Sent, Unavailable

log = logging.getLogger("compact")

LINGER_S = 1.0
"""How long an idle worker keeps its thread."""
_REPORT_S = 1.0
"""Shortest interval between two reports of drops, or of failures of an exporter."""
_CURSOR_S = 5.0
"""Interval at which the cursor of an exporter is saved. After a crash, the events of this time are sent twice."""
MOST_SESSIONS = 4096
"""Sessions whose place in the log is kept in memory."""
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 2.0
_AT_EXIT_S = 2.0


class Log(Protocol):
    """The events of all sessions in the archive. Every method raises CompactError if the archive does not answer."""

    def lines(self, session: SessionKey) -> list[bytes]:
        """Return all lines of a session, in order."""
        ...

    def cursor(self, session: SessionKey, exporter: str) -> str | None:
        """Return the span id of the last event that an exporter got: empty before the first, None if unknown."""
        ...

    def set_cursor(self, session: SessionKey, exporter: str, span_id: str) -> None:
        """Remember the last event that an exporter got."""
        ...


Report: TypeAlias = Callable[[SessionKey, str, int, int], None]
"""Called with the session, the exporter, the number of drops since the last report, and the number of all drops."""


class ExportWorker:
    """Feeds one exporter. `enqueue` costs its caller an append to a queue; everything else happens on the worker."""

    def __init__(self, exporter: Exporter, limit: int, source: Log, report: Report) -> None:
        self.exporter = exporter
        self.name = exporter.name
        self._limit = limit
        self._log = source
        self._report = report
        self._changed = threading.Condition()
        self._queue: deque[tuple[SessionKey, bytes]] = deque()
        self._behind: dict[SessionKey, int] = {}
        """Sessions whose events are read from the log, each with the number of events that arrived since that began."""
        self._kept: dict[SessionKey, list[bytes]] = {}
        """Lines that were read from the log while the exporter was unavailable."""
        self._last: dict[SessionKey, str] = {}
        """The span id of the last event of each session that the exporter has dealt with."""
        self._entered: set[SessionKey] = set()
        """Sessions whose cursor was looked up."""
        self._first: dict[SessionKey, bytes] = {}
        """The first line that arrived for each session that was not entered yet."""
        self._unsaved: set[SessionKey] = set()
        self._saved_at = time.monotonic()
        self._in_flight = self._reading = 0
        self._delivered = self._refused = self._dropped = 0
        self._unreported = 0
        self._reported_at = float("-inf")
        self._failures = self._failed_in_a_row = 0
        self._unlogged = 0
        self._logged_at: float | None = None
        self._retry_at = 0.0
        self._saving = False
        self._thread: threading.Thread | None = None
        _workers.add(self)

    def enqueue(self, session: SessionKey, data: bytes) -> None:
        """Take lines that were just written to the log of a session."""
        lines = data.splitlines()
        with self._changed:
            if lines and self.exporter.resumes and session not in self._entered:
                self._first.setdefault(session, lines[0])
            if session in self._behind:
                self._behind[session] += len(lines)
            elif len(lines) <= (room := self._limit - len(self._queue)):
                self._queue.extend((session, line) for line in lines)
            elif self.exporter.resumes:
                self._behind[session] = len(lines)
            else:
                self._queue.extend((session, line) for line in lines[:room])
                self._dropped += len(lines) - room
                self._unreported += len(lines) - room
            self._start()
            self._changed.notify()
        if self._unreported:
            self.report(session, _REPORT_S)

    def report(self, session: SessionKey, at_most_every_s: float = 0.0) -> None:
        """Report drops that were not reported yet."""
        now = time.monotonic()
        with self._changed:
            count = self._unreported
            if not count or now - self._reported_at < at_most_every_s:
                return
            self._unreported, self._reported_at = 0, now
            total = self._dropped
        self._report(session, self.name, count, total)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is delivered. Returns False if that takes too long, or if another attempt fails."""
        give_up = time.monotonic() + timeout_s
        with self._changed:
            seen, self._retry_at = self._failures, 0.0
            while self._has_work() or self._unsaved:
                left = give_up - time.monotonic()
                if left <= 0 or self._failures > seen:
                    break
                self._saving = True
                self._start()
                self._changed.notify()
                self._changed.wait(min(left, 0.1))
            return not self._has_work()

    def close(self, timeout_s: float) -> None:
        """Flush. If the exporter does not resume, events that it did not get in time are dropped."""
        is_empty = self.flush(timeout_s)
        self._log_more_failures()
        if is_empty:
            try:
                self.exporter.close()
            except Exception as problem:
                log.debug("the exporter %s could not be closed: %s", self.name, problem)
            return
        session = SessionKey("")
        with self._changed:
            left = len(self._queue) - self._in_flight
            if left > 0 and not self.exporter.resumes:
                session = self._queue[-1][0]
                self._queue = deque(islice(self._queue, self._in_flight))
                self._dropped += left
                self._unreported += left
        self.report(session)

    def stats(self) -> dict[str, int]:
        """Count the events that were delivered, refused by the exporter, dropped for lack of room or time, or still wait.

        While events are read from the log, `waiting` is an upper bound.
        """
        with self._changed:
            return {
                "delivered": self._delivered,
                "refused": self._refused,
                "dropped": self._dropped,
                "waiting": len(self._queue) + self._reading + sum(self._behind.values()),
            }

    # --- the worker

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # it is dead after a fork
            thread = threading.Thread(target=self._work, name=f"compact-{self.name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down; the log keeps what is left
                return
            self._thread = thread

    def _work(self) -> None:
        while self._wait_for_work():
            try:
                self._do_next()
            except Unavailable:
                self._schedule_retry()
            except CompactError as problem:
                log.debug("the log cannot be read for %s: %s", self.name, problem)
                self._schedule_retry()

    def _wait_for_work(self) -> bool:
        """Wait until there is something to do. False ends the worker."""
        with self._changed:
            while True:
                pause = self._retry_at - time.monotonic()
                if pause > 0:
                    self._changed.wait(pause)
                elif self._has_work():
                    return True
                elif not self._changed.wait(LINGER_S) and not self._has_work():
                    if not self._unsaved:
                        self._thread = None
                        return False
                    self._saving = True  # nothing else to do, so save the cursors

    def _has_work(self) -> bool:
        return bool(self._queue or self._behind or (self._saving and self._unsaved))

    def _do_next(self) -> None:
        """Do one piece of work: a session's backlog, the front of the queue, or saving the cursors."""
        if self._behind:
            self._catch_up(next(iter(self._behind)))
        elif self._queue:
            self._export_next()
        is_quiet = self._saving and not self._queue and not self._behind
        if self._unsaved and (is_quiet or time.monotonic() - self._saved_at > _CURSOR_S):
            self._save_cursors()

    def _export_next(self) -> None:
        with self._changed:
            session = self._queue[0][0]
            front = islice(self._queue, self._batch_size())
            lines = [line for _, line in takewhile(lambda entry: entry[0] == session, front)]
        if self.exporter.resumes and session not in self._entered:
            self._enter(session)
            return
        sent = self._export(session, lines)
        with self._changed:
            for _ in range(min(sent.taken, len(self._queue))):
                self._queue.popleft()
            self._in_flight = 0
            self._changed.notify_all()

    def _enter(self, session: SessionKey) -> None:
        """Look up where to begin with a session. Events that another process left undelivered are in the log.

        For a session without a cursor, the start of this process is saved at once. If the exporter stays unavailable,
        the next process then knows what it missed.
        """
        last = self._log.cursor(session, self.name)
        is_new = last is None
        if last is None:
            last = _span_before(self._log.lines(session), self._first.get(session))
        with self._changed:
            self._entered.add(session)
            self._first.pop(session, None)
            self._last[session] = last
            if not is_new:
                self._behind.setdefault(session, 0)
        if is_new:
            self._save_cursor(session)

    def _catch_up(self, session: SessionKey) -> None:
        """Deliver what the log holds after the last event that the exporter has dealt with."""
        if session not in self._entered:
            self._enter(session)
        with self._changed:
            others = deque(entry for entry in self._queue if entry[0] != session)
            self._reading = self._behind[session] + len(self._queue) - len(others)
            self._queue, self._behind[session] = others, 0  # the log has these events, too
        kept = self._kept.pop(session, None)
        try:
            if kept is None:
                lines = self._log.lines(session)
                lines = lines[_index_after(lines, self._last.get(session)) :]
                self._reading = len(lines)
            self._offer(session, lines if kept is None else kept)
        finally:
            with self._changed:
                self._behind[session] += self._reading
                self._reading = self._in_flight = 0
        with self._changed:
            if (
                kept is None and not self._behind[session]
            ):  # everything was read, and nothing arrived meanwhile
                del self._behind[session]
                self._changed.notify_all()

    def _offer(self, session: SessionKey, lines: list[bytes]) -> None:
        begin = 0
        try:
            while begin < len(lines):
                taken = self._export(session, lines[begin : begin + self._batch_size()]).taken
                begin += taken
                self._reading = max(0, self._reading - taken)
        except Unavailable:
            self._kept[session] = lines[begin : begin + self._limit]
            raise

    def _batch_size(self) -> int:
        """How many events to offer. After a failure only one, because preparing many for nothing costs time."""
        return 1 if self._failed_in_a_row else self.exporter.batch

    def _export(self, session: SessionKey, lines: list[bytes]) -> Sent:
        events: list[EventDict] = [json.loads(line) for line in lines]
        with self._changed:
            self._in_flight = len(events)
        try:
            sent = self.exporter.export(events)
        except Unavailable:
            raise
        except BaseException as problem:  # even SystemExit must not end the worker
            self._log_failure(problem, events[0])
            sent = Sent(len(events), refused=len(events))
        with self._changed:
            self._refused += sent.refused
            self._delivered += sent.taken - sent.refused
            self._failed_in_a_row = 0
            if sent.taken and self.exporter.resumes:
                self._last[session] = str(events[sent.taken - 1].get("span_id"))
                self._unsaved.add(session)
        return sent

    def _log_failure(self, problem: BaseException, event: EventDict) -> None:
        """Log the first failure with its traceback and later ones as a count, so that the log file stays small."""
        if self._logged_at is None:
            log.error("the exporter %s failed on %s", self.name, event.get("name"), exc_info=problem)
            self._logged_at = time.monotonic()
            return
        self._unlogged += 1
        if time.monotonic() - self._logged_at >= _REPORT_S:
            self._log_more_failures()

    def _log_more_failures(self) -> None:
        if self._unlogged:
            log.error("the exporter %s failed %s times more", self.name, f"{self._unlogged:,}")
            self._unlogged, self._logged_at = 0, time.monotonic()

    def _schedule_retry(self) -> None:
        with self._changed:
            pause = min(_FIRST_RETRY_S * 2 ** min(self._failed_in_a_row, 10), _LAST_RETRY_S)
            self._in_flight = 0
            self._failures += 1
            self._failed_in_a_row += 1
            self._retry_at = time.monotonic() + pause
            self._changed.notify_all()

    def _save_cursors(self) -> None:
        self._saved_at = time.monotonic()
        for session in sorted(self._unsaved, key=repr):  # only this thread adds to it
            self._save_cursor(session)
        with self._changed:
            self._unsaved.clear()
            self._saving = False
            if len(self._entered) > MOST_SESSIONS:
                # Their cursors are saved, and are looked up again if these sessions go on.
                self._entered = {*self._behind, *(session for session, _ in self._queue)} & self._entered
                self._last = {session: self._last[session] for session in self._entered}
            self._changed.notify_all()

    def _save_cursor(self, session: SessionKey) -> None:
        try:
            self._log.set_cursor(session, self.name, self._last[session])
        except CompactError as problem:
            log.debug("the cursor of %s could not be saved: %s", self.name, problem)


def _span_before(lines: list[bytes], first: bytes | None) -> str:
    """Return the span id of the event before a line of the log, or an empty text if it is the first."""
    index = lines.index(first) if first in lines else 0
    return str(json.loads(lines[index - 1]).get("span_id")) if index else ""


def _index_after(lines: list[bytes], span_id: str | None) -> int:
    """Return the index of the line after the event with that span id, or 0 if the log does not have it."""
    wanted = f'"span_id":"{span_id}"'.encode()
    for index in reversed(range(len(lines)) if span_id else ()):
        if wanted in lines[index] and json.loads(lines[index]).get("span_id") == span_id:
            return index + 1
    return 0


_workers: WeakSet[ExportWorker] = WeakSet()


@atexit.register
def _flush_all() -> None:
    """Give exporters a moment if a process ends without closing its manager."""
    give_up = time.monotonic() + _AT_EXIT_S
    for worker in list(_workers):
        if worker.stats()["waiting"]:
            worker.flush(max(0.0, give_up - time.monotonic()))
