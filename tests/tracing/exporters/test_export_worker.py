"""One worker for each exporter: nobody waits for it, nothing is lost in silence."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from support.exporters import Gate, ListLog, event_maker, line_of
from support.waiting import WAIT_S, until

from compact.errors import ArchiveError, ConfigError
from compact.events.session_key import SessionKey
from compact.tracing.export_worker import ExportWorker
from compact.tracing.exporters import EventDict, Exporter, Sent, Unavailable, as_exporter

Report = tuple[str, str, int, int]


def lines(count: int, session_id: str = "s") -> list[bytes]:
    make = event_maker(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return [line_of(make(session_id=session_id)) for _ in range(count)]


def following(exporter: Exporter, limit: int = 10_000) -> tuple[ExportWorker, ListLog, list[Report]]:
    source, reports = ListLog(), list[Report]()
    worker = ExportWorker(
        exporter, limit, source, lambda key, *report: reports.append((key.session_id, *report))
    )
    return worker, source, reports


def ids_of(written: Sequence[bytes]) -> list[str]:
    return [line.decode().partition('"span_id":"')[2][:16] for line in written]


def test_events_arrive_in_order_and_are_counted() -> None:
    gate = Gate()
    gate.open.set()
    worker, source, _ = following(gate)
    written = lines(1200)
    source.write(worker, "s", written)
    assert worker.flush(5)
    assert [event["span_id"] for event in gate.got] == ids_of(written)
    assert worker.stats() == {"delivered": 1200, "refused": 0, "dropped": 0, "waiting": 0}


def test_drops_of_an_exporter_that_cannot_keep_up_are_counted_exactly_and_reported() -> None:
    gate = Gate(batch=1)
    worker, source, reports = following(gate, limit=100)
    for line in lines(1000):
        source.write(worker, "s", [line])
    assert worker.stats()["waiting"] == 100
    gate.open.set()
    worker.close(5)
    stats = worker.stats()
    assert stats == {"delivered": 100, "refused": 0, "dropped": 900, "waiting": 0}
    assert len(gate.got) == 100
    worker.report(SessionKey("s"))
    assert sum(count for _, _, count, _ in reports) == 900
    assert reports[-1] == ("s", "gate", reports[-1][2], 900)


def test_what_a_closed_exporter_did_not_get_is_dropped_and_what_it_holds_is_not() -> None:
    gate = Gate(batch=1)
    worker, source, reports = following(gate)
    source.write(worker, "s", lines(10))
    assert gate.asked.wait(WAIT_S)
    worker.close(0.05)
    assert worker.stats()["dropped"] == 9
    assert reports == [("s", "gate", 9, 9)]
    gate.open.set()
    until(lambda: worker.stats()["delivered"] == 1)
    assert len(gate.got) == 1


def test_an_exporter_that_resumes_reads_from_the_log_what_found_no_room() -> None:
    gate = Gate(resumes=True)
    worker, source, reports = following(gate, limit=100)
    written, other = lines(20_000), lines(50, "t")
    for start in range(0, len(written), 500):
        source.write(worker, "s", written[start : start + 500])
    source.write(worker, "t", other)
    assert worker.stats()["waiting"] >= 20_050, "events that are being read may be heard of, too"
    gate.open.set()
    assert worker.flush(30)
    assert [e["span_id"] for e in gate.got if e["session_id"] == "s"] == ids_of(written)
    assert [e["span_id"] for e in gate.got if e["session_id"] == "t"] == ids_of(other)
    assert worker.stats() == {"delivered": 20_050, "refused": 0, "dropped": 0, "waiting": 0}
    assert reports == []


def test_the_next_process_sends_what_a_crash_left() -> None:
    gate = Gate(resumes=True)
    gate.open.set()
    first, source, _ = following(gate)
    written = lines(30)
    source.write(first, "s", written[:10])
    assert first.flush(5)
    assert source.cursors == {("s", "gate"): ids_of(written)[9]}
    source.written["s"] += [
        line.rstrip(b"\n") for line in written[10:20]
    ]  # written, and then the process died
    later = Gate(resumes=True)
    later.open.set()
    second = ExportWorker(later, 10_000, source, lambda *report: None)
    source.write(second, "s", written[20:])
    assert second.flush(5)
    assert [event["span_id"] for event in later.got] == ids_of(written)[10:]


def test_the_first_use_of_an_exporter_does_not_send_what_was_before() -> None:
    gate = Gate(resumes=True)
    gate.open.set()
    worker, source, _ = following(gate)
    written = lines(20)
    source.written["s"] = [line.rstrip(b"\n") for line in written[:10]]
    source.write(worker, "s", written[10:])
    assert worker.flush(5)
    assert [event["span_id"] for event in gate.got] == ids_of(written)[10:]


def test_an_exporter_that_was_away_from_the_first_event_on_gets_all_from_the_next_process() -> None:
    away = Away()
    away.resumes = True
    first, source, _ = following(away)
    written = lines(30)
    source.written["s"] = [line.rstrip(b"\n") for line in written[:5]]  # from before there was an exporter
    source.write(first, "s", written[5:20])
    first.close(5)
    assert away.got == []
    back = Away()
    back.is_away, back.resumes = False, True
    second = ExportWorker(back, 10_000, source, lambda *report: None)
    source.write(second, "s", written[20:])
    assert second.flush(5)
    assert [event["span_id"] for event in back.got] == ids_of(written)[5:]


def test_what_waited_when_there_was_no_more_room_is_not_sent_twice() -> None:
    away = Away()
    away.resumes = True
    worker, source, _ = following(away, limit=20)
    written = lines(50)
    source.write(worker, "s", written[:15])
    until(lambda: away.tries >= 1)
    source.write(worker, "s", written[15:])
    away.is_away = False
    assert worker.flush(10)
    assert [event["span_id"] for event in away.got] == ids_of(written)
    assert worker.stats() == {"delivered": 50, "refused": 0, "dropped": 0, "waiting": 0}


def test_how_far_it_came_is_written_down_in_a_quiet_moment() -> None:
    gate = Gate(resumes=True)
    gate.open.set()
    worker, source, _ = following(gate)
    written = lines(3)
    source.write(worker, "s", written)
    until(lambda: source.cursors == {("s", "gate"): ids_of(written)[-1]})
    until(lambda: "compact-gate" not in {thread.name for thread in threading.enumerate()})
    more = lines(1)
    source.write(worker, "s", more)
    assert worker.flush(5), "a worker that ended begins again"
    assert len(gate.got) == 4


class Away(Exporter):
    name = "away"

    def __init__(self) -> None:
        self.is_away = True
        self.tries = 0
        self.got: list[EventDict] = []

    def export(self, events: Sequence[EventDict]) -> Sent:
        self.tries += 1
        if self.is_away:
            raise Unavailable("away")
        self.got += events[:3]
        return Sent(min(3, len(events)))


def test_events_wait_for_an_exporter_that_is_away_and_arrive_once() -> None:
    away = Away()
    worker, source, _ = following(away)
    written = lines(10)
    source.write(worker, "s", written)
    until(lambda: away.tries >= 3)
    away.is_away = False
    until(lambda: worker.stats()["waiting"] == 0)
    assert [event["span_id"] for event in away.got] == ids_of(written)


def test_closing_does_not_wait_for_an_exporter_that_is_away() -> None:
    away = Away()
    worker, source, _ = following(away)
    source.write(worker, "s", lines(10))
    until(lambda: away.tries >= 4)  # the pause between two tries has grown
    tries = away.tries
    worker.close(30)
    assert tries < away.tries <= tries + 2
    assert worker.stats()["dropped"] == 10


def test_one_event_that_an_exporter_chokes_on_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    got: list[EventDict] = []

    def picky(event: EventDict) -> None:
        if len(got) == 1 and not caplog.records:
            raise ValueError("not this one")
        got.append(event)

    worker, source, _ = following(as_exporter(picky))
    with caplog.at_level(logging.ERROR, "compact"):
        source.write(worker, "s", lines(3))
        assert worker.flush(5)
    assert len(got) == 2
    assert worker.stats() == {"delivered": 2, "refused": 1, "dropped": 0, "waiting": 0}
    assert "the exporter picky failed on compact.started" in caplog.text


def test_an_exporter_that_always_fails_says_where_once_and_then_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(event: EventDict) -> None:
        raise ValueError("never")

    worker, source, _ = following(as_exporter(broken))
    with caplog.at_level(logging.ERROR, "compact"):
        source.write(worker, "s", lines(500))
        worker.close(20)
        worker.close(20)
    assert worker.stats()["refused"] == 500
    first, *more = caplog.records
    assert first.exc_info
    assert not any(record.exc_info for record in more)
    assert sum(int(str(record.args[1])) for record in more if isinstance(record.args, tuple)) == 499
    assert len(more) < 20


def test_an_exporter_that_would_end_the_process_ends_not_even_its_worker() -> None:
    got: list[EventDict] = []

    def leaving(event: EventDict) -> None:
        got.append(event)
        if len(got) == 1:
            raise SystemExit(3)

    worker, source, _ = following(as_exporter(leaving))
    source.write(worker, "s", lines(3))
    assert worker.flush(5)
    assert len(got) == 3
    assert worker.stats() == {"delivered": 2, "refused": 1, "dropped": 0, "waiting": 0}


async def _coroutine(event: EventDict) -> None: ...


class _AsyncCallable:
    async def __call__(self, event: EventDict) -> None: ...


class _AsyncExporter(Exporter):
    async def export(self, events: Sequence[EventDict]) -> Sent:  # type: ignore[override]
        return Sent(len(events))


@pytest.mark.parametrize(
    "given", [_coroutine, partial(_coroutine), _AsyncCallable(), _AsyncCallable().__call__, _AsyncExporter()]
)
def test_a_coroutine_function_is_no_exporter(given: Any) -> None:
    with pytest.raises(ConfigError, match="is a coroutine function"):
        as_exporter(given)


def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    class Flaky(ListLog):
        failures = 2

        def lines(self, session: SessionKey) -> list[bytes]:
            if self.failures:
                self.failures -= 1
                raise ArchiveError("the bucket does not answer")
            return super().lines(session)

    gate = Gate(resumes=True)
    gate.open.set()
    source = Flaky()
    worker = ExportWorker(gate, 5, source, lambda *report: None)
    source.write(worker, "s", lines(10))
    until(lambda: len(gate.got) == 10)


def test_what_is_no_exporter_is_refused_with_what_to_do() -> None:
    given: Any = "console"
    with pytest.raises(Exception, match="exporters must be callables or exporters, got str"):
        as_exporter(given)


def test_a_backlog_in_the_log_is_not_read_again_while_nobody_takes_it() -> None:
    class Counted(ListLog):
        reads = 0

        def lines(self, session: SessionKey) -> list[bytes]:
            self.reads += 1
            return super().lines(session)

    away = Away()
    away.resumes = True
    source = Counted()
    worker = ExportWorker(away, 20, source, lambda *report: None)
    written = lines(50)
    source.write(worker, "s", written)
    until(lambda: away.tries >= 4)
    assert source.reads == 2, "where this process begins, and the backlog"
    assert worker.stats()["waiting"] == 50
    away.is_away = False
    assert worker.flush(10)
    assert [event["span_id"] for event in away.got] == ids_of(written), "once, and in order"
    assert worker.stats() == {"delivered": 50, "refused": 0, "dropped": 0, "waiting": 0}


def test_a_flush_is_over_when_it_is_written_down_how_far_it_came() -> None:
    class SlowLog(ListLog):
        def set_cursor(self, session: SessionKey, exporter: str, span_id: str) -> None:
            time.sleep(0.1)
            super().set_cursor(session, exporter, span_id)

    gate = Gate(resumes=True)
    gate.open.set()
    source = SlowLog()
    worker = ExportWorker(gate, 100, source, lambda *report: None)
    written = lines(3)
    source.write(worker, "s", written)
    assert worker.flush(5)
    assert source.cursors == {("s", "gate"): ids_of(written)[-1]}


def test_a_session_that_is_forgotten_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server sees many sessions; how far each came is in the archive."""
    monkeypatch.setattr("compact.tracing.export_worker.MOST_SESSIONS", 3)
    gate = Gate(resumes=True)
    gate.open.set()
    worker, source, _ = following(gate)
    written = {f"s{n}": lines(6, f"s{n}") for n in range(10)}
    for begin in (0, 2, 4):
        for name, all_lines in written.items():
            source.write(worker, name, all_lines[begin : begin + 2])
        assert worker.flush(5)
    for name, all_lines in written.items():
        assert [e["span_id"] for e in gate.got if e["session_id"] == name] == ids_of(all_lines)
    assert worker.stats()["delivered"] == 60
