"""Events on their way into an archive that is slow, hangs, or comes back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pytest
from support.engine import events, manager
from support.exporters import event_maker
from support.waiting import WAIT_S, until

from compact.events import Event, Started
from compact.tracing.journal import LIMIT, Journal

make = event_maker(lambda: datetime(2026, 1, 1, tzinfo=UTC))


class Hanging:
    """An archive's log that hangs until it is let go."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.let_go = threading.Event()
        self.written: list[str] = []

    def append(self, session_id: str, batch: Sequence[Event]) -> None:
        self.hangs.set()
        assert self.let_go.wait(WAIT_S)
        self.written += [event.to_json()["properties"]["note"] for event in batch]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Few events may wait, and an archive hangs soon."""
    monkeypatch.setattr("compact.tracing.journal.LIMIT", 200)
    monkeypatch.setattr("compact.tracing.journal.HANGS_S", 0.2)
    return 200


def told(number: int) -> Event:
    return make(Started(reason="manual", note=str(number)))


def test_nobody_waits_for_an_archive_that_hangs_and_the_oldest_events_give_way(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    log, reports = Hanging(), list[tuple[str, int]]()
    journal = Journal(log.append, (), lambda session_id, count: reports.append((session_id, count)))
    journal.emit(told(0))
    assert log.hangs.wait(WAIT_S)
    with caplog.at_level(logging.WARNING, "compact"):
        for n in range(1, limit + 50):
            journal.emit(told(n))  # on this thread: it would wait for what comes after it
        until(journal._hangs)
        journal.emit(told(limit + 50))
    assert log.written == []
    assert [record.getMessage() for record in caplog.records] == [
        "the archive does not take events: of more than 200 the oldest are dropped"
    ]
    log.let_go.set()
    journal.flush()
    assert log.written == ["0", *map(str, range(51, limit + 51))]
    assert reports == [(told(0).session_id, 50)]


def test_a_burst_is_written_whole_by_an_archive_that_is_only_slow() -> None:
    written: list[str] = []

    def slow(_: str, batch: Sequence[Event]) -> None:
        time.sleep(0.05)
        written.extend(event.to_json()["properties"]["note"] for event in batch)

    journal = Journal(slow, (), lambda *_: None)
    for n in range(2 * LIMIT):
        journal.emit(told(n))
    journal.flush()
    assert written == [str(n) for n in range(2 * LIMIT)]


def test_even_a_burst_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.tracing.journal.LIMIT", 10)
    monkeypatch.setattr("compact.tracing.journal.MOST", 50)
    monkeypatch.setattr("compact.tracing.journal.HANGS_S", WAIT_S)
    log, reports = Hanging(), list[tuple[str, int]]()
    journal = Journal(log.append, (), lambda session_id, count: reports.append((session_id, count)))
    journal.emit(told(0))
    assert log.hangs.wait(WAIT_S)
    for n in range(1, 52):
        journal.emit(told(n))
    assert len(journal._waiting) == 10
    log.let_go.set()
    journal.flush()
    assert reports == [("s", 41)]


def test_drops_are_in_the_log_of_each_session_when_the_archive_takes_events_again(limit: int) -> None:
    made = manager()
    log, append = Hanging(), made.archive.append_events

    def hanging(session_id: str, batch: Iterable[Event]) -> None:
        log.append(session_id, ())
        append(session_id, batch)

    made.archive.append_events = hanging  # type: ignore[method-assign,assignment]
    sessions = [made.sessions.get(name) for name in ("s", "t")]
    made.services.emit(sessions[0], Started(reason="manual", note="0"))
    assert log.hangs.wait(WAIT_S)
    for n in range(limit + 29):
        made.services.emit(sessions[n < 30 and n % 3 == 0], Started(reason="manual", note=str(n)))
    until(made.services.journal._hangs)
    made.services.emit(sessions[0], Started(reason="manual", note="last"))
    log.let_go.set()
    until(lambda: not made.services.journal._waiting)
    for name, count in (("s", 20), ("t", 10)):
        (warning,) = events(made, name, "warning")
        assert warning["properties"]["code"] == "events_dropped"
        assert f"{count} of this session were dropped" in warning["properties"]["message"]
