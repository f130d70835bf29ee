"""Events on their way into an archive that is slow, hangs, or comes back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence

import pytest
from support.engine import Clock, events, manager
from support.waiting import WAIT_S

from compact.engine.effects import Emit
from compact.events import Event, Ids, Recorder, Started, Warned
from compact.events.session_key import SessionKey
from compact.tracing.journal import LIMIT, Append, Journal
from compact.tracing.log_lines import log_event

HANGS_S = 0.2


class Hanging:
    """An archive's log that hangs until it is let go."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.let_go = threading.Event()
        self.written: list[str] = []

    def append(self, session: SessionKey, batch: Sequence[Event]) -> None:
        self.hangs.set()
        assert self.let_go.wait(WAIT_S)
        self.written += [event.to_json()["properties"]["note"] for event in batch]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Few events may wait, and an archive hangs soon."""
    monkeypatch.setattr("compact.tracing.journal.LIMIT", 200)
    monkeypatch.setattr("compact.tracing.journal.HANGS_S", HANGS_S)
    return 200


def journal_on(append: Append) -> tuple[Journal, list[tuple[str, int]]]:
    """A journal, and what it reports as dropped."""
    reports: list[tuple[str, int]] = []
    journal = Journal(
        Recorder(Clock(), Ids("test")),
        append,
        (),
        report=lambda session, count: reports.append((session.session_id, count)),
        redact=lambda _, text: text,
    )
    return journal, reports


def emit(journal: Journal, number: int) -> None:
    journal.emit(SessionKey("s"), 1, Emit(Started(reason="manual", note=str(number))))


def test_nobody_waits_for_an_archive_that_hangs_and_the_oldest_events_give_way(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = Hanging()
    journal, reports = journal_on(log.append)
    emit(journal, 0)
    assert log.hangs.wait(WAIT_S)
    with caplog.at_level(logging.WARNING, "compact"):
        for n in range(1, limit + 50):
            emit(journal, n)  # on this thread: it would wait for what comes after it
        time.sleep(2 * HANGS_S)
        emit(journal, limit + 50)
    assert log.written == []
    assert [record.getMessage() for record in caplog.records] == [
        "the archive does not take events: of more than 200 the oldest are dropped"
    ]
    log.let_go.set()
    journal.flush()
    assert log.written == ["0", *map(str, range(51, limit + 51))]
    assert reports == [("s", 50)]


def test_a_burst_is_written_whole_by_an_archive_that_is_only_slow() -> None:
    written: list[str] = []

    def slow(_: SessionKey, batch: Sequence[Event]) -> None:
        time.sleep(0.05)
        written.extend(event.to_json()["properties"]["note"] for event in batch)

    journal, _ = journal_on(slow)
    for n in range(2 * LIMIT):
        emit(journal, n)
    journal.flush()
    assert written == [str(n) for n in range(2 * LIMIT)]


def test_even_a_burst_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.tracing.journal.LIMIT", 10)
    monkeypatch.setattr("compact.tracing.journal.MOST", 50)
    monkeypatch.setattr("compact.tracing.journal.HANGS_S", WAIT_S)
    log = Hanging()
    journal, reports = journal_on(log.append)
    emit(journal, 0)
    assert log.hangs.wait(WAIT_S)
    for n in range(1, 52):
        emit(journal, n)
    log.let_go.set()
    journal.flush()
    assert log.written == ["0", *map(str, range(42, 52))]
    assert reports == [("s", 41)]


def test_drops_are_in_the_log_of_each_session_when_the_archive_takes_events_again(limit: int) -> None:
    made = manager()
    log, append = Hanging(), made.archive.append_events

    def hanging(session_id: str, batch: Iterable[Event]) -> None:
        log.append(SessionKey(session_id), ())
        append(session_id, batch)

    made.archive.append_events = hanging  # type: ignore[method-assign,assignment]
    sessions = [made.sessions.get(name) for name in ("s", "t")]
    made.services.emit(sessions[0], Started(reason="manual", note="0"))
    assert log.hangs.wait(WAIT_S)
    for n in range(limit + 29):
        made.services.emit(sessions[n < 30 and n % 3 == 0], Started(reason="manual", note=str(n)))
    time.sleep(2 * HANGS_S)
    made.services.emit(sessions[0], Started(reason="manual", note="last"))
    log.let_go.set()
    for name, count in (("s", 20), ("t", 10)):
        (warning,) = events(made, name, "warning")
        assert warning["properties"]["code"] == "events_dropped"
        assert f"{count} of this session were dropped" in warning["properties"]["message"]


@pytest.mark.parametrize(
    "session_id", ["a\nINFO forged", "\x1b[2J", "half \ud800", "x" * 100_000, "\u202etxt"]
)
def test_a_log_line_is_one_printable_line(session_id: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "compact"):
        log_event(
            session_id,
            Warned(code="spooled", severity="high", message="says \x07\r\nmore"),
            lambda text: text,
        )
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.isprintable()
    assert len(line.encode()) < 400
    assert line.endswith(r"spooled: says \x07\r\nmore")
