"""One exporter and the worker that feeds it, so that a slow one delays nobody.

What waits is bounded. An exporter that resumes loses nothing by that: events that found no room are read again from the
session's log when it gets there, and so are those that a process left behind that crashed. From any other they are dropped,
counted one by one, and reported.
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
from compact.tracing.exporters.protocol import Exporter, Sent, Told, Unavailable

log = logging.getLogger("compact")

_LINGER_S = 1.0
"""So long a worker without work waits for more. A follower that nobody uses any more has no thread."""
_REPORT_S = 1.0
"""Drops, and failures of an exporter, are reported at most this often."""
_CURSOR_S = 5.0
"""How often it is written down how far an exporter came. After a crash, this much is sent twice."""
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 2.0
_AT_EXIT_S = 2.0


class Log(Protocol):
    """The events of all sessions, as they lie in the archive. Raises CompactError when it does not answer."""

    def lines(self, session_id: str) -> list[bytes]:
        """All lines of a session, in order."""
        ...

    def cursor(self, session_id: str, exporter: str) -> str | None:
        """The last event that an exporter got, by its span, empty before the first; None when that is not known."""
        ...

    def set_cursor(self, session_id: str, exporter: str, span_id: str) -> None:
        """Remembers the last event that an exporter got."""
        ...


Report: TypeAlias = Callable[[str, str, int, int], None]
"""Told of drops: the session, the exporter, how many since the last report, how many in all."""


class Follower:
    """Feeds one exporter. `hear` costs its caller an append to a queue; everything else happens on the worker."""

    def __init__(self, exporter: Exporter, limit: int, source: Log, report: Report) -> None:
        self.exporter = exporter
        self.name = exporter.name
        self._limit = limit
        self._log = source
        self._report = report
        self._changed = threading.Condition()
        self._queue: deque[tuple[str, bytes]] = deque()
        self._behind: dict[str, int] = {}
        """Sessions whose events are read from the log, and how many were heard since that began."""
        self._kept: dict[str, list[bytes]] = {}
        """Lines that were read from the log, and found nobody to take them."""
        self._last: dict[str, str] = {}
        """The last event that was dealt with, of each session."""
        self._entered: set[str] = set()
        self._first: dict[str, bytes] = {}
        """The first line that was heard, of each session that was not entered yet."""
        self._unsaved: set[str] = set()
        self._saved_at = time.monotonic()
        self._in_flight = self._reading = 0
        self._delivered = self._refused = self._dropped = 0
        self._unreported = 0
        self._reported_at = float("-inf")
        self._failures = self._failed_in_a_row = 0
        self._complaints, self._told_complaints, self._complained_at = 0, 1, 0.0
        self._retry_at = 0.0
        self._saving = False
        self._thread: threading.Thread | None = None
        _followers.add(self)

    def hear(self, session_id: str, data: bytes) -> None:
        """Takes the lines that were just written to the log of a session."""
        lines = data.splitlines()
        with self._changed:
            if lines and self.exporter.resumes and session_id not in self._entered:
                self._first.setdefault(session_id, lines[0])
            if session_id in self._behind:
                self._behind[session_id] += len(lines)
            elif len(lines) <= (room := self._limit - len(self._queue)):
                self._queue.extend((session_id, line) for line in lines)
            elif self.exporter.resumes:
                self._behind[session_id] = len(lines)
            else:
                self._queue.extend((session_id, line) for line in lines[:room])
                self._dropped += len(lines) - room
                self._unreported += len(lines) - room
            self._start()
            self._changed.notify()
        if self._unreported:
            self.report(session_id, _REPORT_S)

    def report(self, session_id: str, at_most_every_s: float = 0.0) -> None:
        """Reports drops that were not reported yet."""
        now = time.monotonic()
        with self._changed:
            count = self._unreported
            if not count or now - self._reported_at < at_most_every_s:
                return
            self._unreported, self._reported_at = 0, now
            total = self._dropped
        self._report(session_id, self.name, count, total)

    def flush(self, timeout_s: float) -> bool:
        """Waits until everything is delivered; False when that took too long, or it was tried again and failed."""
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
        """Flushes. What an exporter that does not resume did not get in time is dropped."""
        is_empty = self.flush(timeout_s)
        self._sum_up_complaints()
        if is_empty:
            try:
                self.exporter.close()
            except Exception as problem:
                log.debug("the exporter %s did not close: %s", self.name, problem)
            return
        session_id = ""
        with self._changed:
            left = len(self._queue) - self._in_flight
            if left > 0 and not self.exporter.resumes:
                session_id = self._queue[-1][0]
                self._queue = deque(islice(self._queue, self._in_flight))
                self._dropped += left
                self._unreported += left
        self.report(session_id)

    def stats(self) -> dict[str, int]:
        """Events that were delivered, refused by the exporter, dropped for lack of room or time, and that still wait.

        What waits is at most the figure given, while it is read from the log.
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
        if self._thread is None or not self._thread.is_alive():  # it is not, after a fork
            thread = threading.Thread(target=self._work, name=f"compact-{self.name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down; the log keeps what is left
                return
            self._thread = thread

    def _work(self) -> None:
        while self._wait_for_work():
            try:
                self._turn()
            except Unavailable:
                self._failed()
            except CompactError as problem:
                log.debug("the log cannot be read for %s: %s", self.name, problem)
                self._failed()

    def _wait_for_work(self) -> bool:
        """Whether there is more to do; False ends the worker."""
        with self._changed:
            while True:
                pause = self._retry_at - time.monotonic()
                if pause > 0:
                    self._changed.wait(pause)
                elif self._has_work():
                    return True
                elif not self._changed.wait(_LINGER_S) and not self._has_work():
                    if not self._unsaved:
                        self._thread = None
                        return False
                    self._saving = True  # a quiet moment: it is written down how far it came

    def _has_work(self) -> bool:
        return bool(self._queue or self._behind or (self._saving and self._unsaved))

    def _turn(self) -> None:
        """One piece of work: a session's backlog, the front of the queue, or notes of how far it came."""
        if self._behind:
            self._catch_up(next(iter(self._behind)))
        elif self._queue:
            self._next_batch()
        is_quiet = self._saving and not self._queue and not self._behind
        if self._unsaved and (is_quiet or time.monotonic() - self._saved_at > _CURSOR_S):
            self._save()

    def _next_batch(self) -> None:
        with self._changed:
            session_id = self._queue[0][0]
            front = islice(self._queue, self._batch())
            lines = [line for _, line in takewhile(lambda entry: entry[0] == session_id, front)]
        if self.exporter.resumes and session_id not in self._entered:
            self._enter(session_id)
            return
        sent = self._export(session_id, lines)
        with self._changed:
            for _ in range(min(sent.taken, len(self._queue))):
                self._queue.popleft()
            self._in_flight = 0
            self._changed.notify_all()

    def _enter(self, session_id: str) -> None:
        """A session that another process may have left in the middle: what follows its last event is in the log.

        Where nobody left anything, it is written down at once where this process begins: should the exporter be away all
        the time, the next process knows what it missed.
        """
        last = self._log.cursor(session_id, self.name)
        is_new = last is None
        if last is None:
            last = _span_before(self._log.lines(session_id), self._first.get(session_id))
        with self._changed:
            self._entered.add(session_id)
            self._first.pop(session_id, None)
            self._last[session_id] = last
            if not is_new:
                self._behind.setdefault(session_id, 0)
        if is_new:
            self._note(session_id)

    def _catch_up(self, session_id: str) -> None:
        """Delivers what the log holds behind the last event that was dealt with."""
        if session_id not in self._entered:
            self._enter(session_id)
        with self._changed:
            others = deque(entry for entry in self._queue if entry[0] != session_id)
            self._reading = self._behind[session_id] + len(self._queue) - len(others)
            self._queue, self._behind[session_id] = others, 0  # what waits is in the log, too
        kept = self._kept.pop(session_id, None)
        try:
            if kept is None:
                lines = self._log.lines(session_id)
                lines = lines[_place_after(lines, self._last.get(session_id)) :]
                self._reading = len(lines)
            self._offer(session_id, lines if kept is None else kept)
        finally:
            with self._changed:
                self._behind[session_id] += self._reading
                self._reading = self._in_flight = 0
        with self._changed:
            if kept is None and not self._behind[session_id]:  # all was read, and nothing was heard meanwhile
                del self._behind[session_id]
                self._changed.notify_all()

    def _offer(self, session_id: str, lines: list[bytes]) -> None:
        begin = 0
        try:
            while begin < len(lines):
                taken = self._export(session_id, lines[begin : begin + self._batch()]).taken
                begin += taken
                self._reading = max(0, self._reading - taken)
        except Unavailable:
            self._kept[session_id] = lines[begin : begin + self._limit]
            raise

    def _batch(self) -> int:
        """How many events to offer. Who was away a moment ago is asked with one: reading many for nothing costs time."""
        return 1 if self._failed_in_a_row else self.exporter.batch

    def _export(self, session_id: str, lines: list[bytes]) -> Sent:
        events: list[Told] = [json.loads(line) for line in lines]
        with self._changed:
            self._in_flight = len(events)
        try:
            sent = self.exporter.export(events)
        except Unavailable:
            raise
        except BaseException as problem:  # an exit, too, is only this exporter's: the worker goes on
            self._complain(problem, events[0])
            sent = Sent(len(events), refused=len(events))
        with self._changed:
            self._refused += sent.refused
            self._delivered += sent.taken - sent.refused
            self._failed_in_a_row = 0
            if sent.taken:
                self._last[session_id] = str(events[sent.taken - 1].get("span_id"))
                if self.exporter.resumes:
                    self._unsaved.add(session_id)
        return sent

    def _complain(self, problem: BaseException, event: Told) -> None:
        """Where it failed, the first time; then how often, now and then: one that always fails must not fill a disk."""
        self._complaints += 1
        if self._complaints == 1:
            log.error("the exporter %s failed on %s", self.name, event.get("name"), exc_info=problem)
            self._complained_at = time.monotonic()
        elif time.monotonic() - self._complained_at >= _REPORT_S:
            self._sum_up_complaints()

    def _sum_up_complaints(self) -> None:
        count = self._complaints - self._told_complaints
        if count > 0:
            log.error("the exporter %s failed %s times more", self.name, f"{count:,}")
            self._told_complaints = self._complaints
            self._complained_at = time.monotonic()

    def _failed(self) -> None:
        with self._changed:
            pause = min(_FIRST_RETRY_S * 2 ** min(self._failed_in_a_row, 10), _LAST_RETRY_S)
            self._in_flight = 0
            self._failures += 1
            self._failed_in_a_row += 1
            self._retry_at = time.monotonic() + pause
            self._changed.notify_all()

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        for session_id in sorted(self._unsaved):  # only this thread adds to it
            self._note(session_id)
        with self._changed:
            self._unsaved.clear()
            self._saving = False
            self._changed.notify_all()

    def _note(self, session_id: str) -> None:
        try:
            self._log.set_cursor(session_id, self.name, self._last[session_id])
        except CompactError as problem:
            log.debug("it is not recorded how far %s came: %s", self.name, problem)


def _span_before(lines: list[bytes], first: bytes | None) -> str:
    """The span of the event that a log holds before a line; empty when there is none."""
    place = lines.index(first) if first in lines else 0
    return str(json.loads(lines[place - 1]).get("span_id")) if place else ""


def _place_after(lines: list[bytes], span_id: str | None) -> int:
    """The number of the line behind the event with that span; 0 when there is none."""
    if not span_id:
        return 0
    wanted = f'"span_id":"{span_id}"'.encode()
    for number in range(len(lines) - 1, -1, -1):
        if wanted in lines[number] and json.loads(lines[number]).get("span_id") == span_id:
            return number + 1
    return 0


_followers: WeakSet[Follower] = WeakSet()


@atexit.register
def _flush_all() -> None:
    """A process that ends without closing its manager gives exporters a moment."""
    give_up = time.monotonic() + _AT_EXIT_S
    for follower in list(_followers):
        if follower.stats()["waiting"]:
            follower.flush(max(0.0, give_up - time.monotonic()))
