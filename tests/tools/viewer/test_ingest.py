"""Ariadne's `/ingest` contract, rule by rule, and what the page makes of what arrives."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.engine import turns
from support.viewer import manager_on, opened, span

from compact.archive import LogWatcher
from compact.tools.viewer.ingest import BodyRefused, accept, as_event
from compact.tools.viewer.sessions import Sessions, trace_key

TRACE = {"type": "trace", "trace_id": "t1", "name": "a session", "metadata": {"model": "gpt-4o"}}


def sent(value: Any) -> list[dict[str, Any]]:
    return accept(json.dumps(value).encode())


@pytest.mark.parametrize("body", [span(1), TRACE, {"batch": [span(1), TRACE]}, {"batch": []}])
def test_one_event_or_a_batch_is_taken(body: dict[str, Any]) -> None:
    assert sent(body) == body.get("batch", [body])


def test_keys_that_the_contract_does_not_know_are_dropped() -> None:
    assert sent({**span(1), "colour": "red"}) == [span(1)]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([span(1)], []),
        ("text", []),
        ({"batch": {}}, ["batch"]),
        ({"batch": [span(1), 7]}, ["batch", 1]),
        ({"type": "log", "trace_id": "t"}, ["type"]),
        ({"type": "trace"}, ["trace_id"]),
        (span(1, trace_id=""), ["trace_id"]),
        ({"type": "span", "trace_id": "t"}, ["span_id"]),
        (span(1, parent_id=None), ["parent_id"]),
        (span(1, name=5), ["name"]),
        (span(1, data=[1]), ["data"]),
        (span(1, status="fine"), ["status"]),
        (span(1, started_at="2026-01-01T00:00:00+00:00"), ["started_at"]),
        (span(1, started_at="2026-13-01T00:00:00Z"), ["started_at"]),
        (span(1, started_at="2026-01-01 00:00:00Z"), ["started_at"]),
        (span(1, ended_at="2025-12-31T23:59:59Z"), ["ended_at"]),
        ({**TRACE, "metadata": {"turns": 3}}, ["metadata", "turns"]),
        ({**TRACE, "metadata": None}, ["metadata"]),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_place(body: Any, path: list[Any]) -> None:
    with pytest.raises(BodyRefused) as caught:
        sent(body)
    assert caught.value.faults[0].path == path


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_json_does_not_have_are_refused(number: str) -> None:
    with pytest.raises(BodyRefused, match="not JSON"):
        accept(json.dumps(span(1, data={"n": 0})).replace('"n": 0', f'"n": {number}').encode())


def test_half_characters_are_replaced_in_texts_and_keys_and_whole_ones_stay() -> None:
    given = span(1, name="a \ud800 b", data={"key \udfff": ["\ud83d", "\U0001f600 é", 1.5, {"\ud800": None}]})
    [taken] = sent(given)
    assert taken["name"] == "a \ufffd b"
    assert taken["data"] == {"key \ufffd": ["\ufffd", "\U0001f600 é", 1.5, {"\ufffd": None}]}


def test_one_bad_event_refuses_the_whole_batch() -> None:
    with pytest.raises(BodyRefused):
        sent({"batch": [span(1), span(2, parent_id=None)]})


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(BodyRefused, match="not JSON"):
        accept(body)


def test_a_span_of_the_exporter_is_shown_as_the_event_that_it_was() -> None:
    shown = as_event(
        span(1, name="compact.summary_created", parent_id="p", status="ok")
        | {
            "data": {
                "session_id": "s",
                "step": 2,
                "strategy": "brief",
                "output_text": "words",
                "payload": {"x": 1},
            }
        }
    )
    assert (shown["session_id"], shown["step"], shown["parent_id"]) == ("s", 2, "p")
    assert shown["properties"] == {"strategy": "brief"}
    assert shown["payload"] == {"x": 1, "summary": "words"}


def test_the_oldest_events_go_when_there_are_too_many_and_numbers_stay() -> None:
    sessions = Sessions(None, max_events=10)
    sessions.add_ingested([span(n) for n in range(25)])
    page = sessions.events(trace_key("t1"), 0, 100)
    assert page is not None
    assert (page.first, page.total, sessions.dropped, sessions.ingested) == (15, 25, 15, 10)
    assert [event["span_id"] for event in page.events] == [f"t1-{n}" for n in range(15, 25)]


def test_bytes_are_bounded_too() -> None:
    sessions = Sessions(None, max_bytes=5_000)
    sessions.add_ingested([span(n, data={"text": "x" * 1_000}) for n in range(20)])
    assert 2 <= sessions.ingested <= 4
    assert sessions.dropped == 20 - sessions.ingested


def test_traces_that_only_send_their_name_do_not_pile_up() -> None:
    sessions = Sessions(None, max_events=5)
    sessions.add_ingested([span(1, "kept")])
    sessions.add_ingested([{**TRACE, "trace_id": f"t{n}"} for n in range(50)])
    rows = sessions.rows()
    assert len(rows) == 5
    assert "live-kept" in {row["id"] for row in rows}


def test_a_trace_names_its_session() -> None:
    sessions = Sessions(None)
    sessions.add_ingested([{**TRACE, "group_id": "my-session"}, span(1, data={"kind": "tool"})])
    (row,) = sessions.rows()
    assert (row["id"], row["source"], row["events"]) == ("my-session", "ingest", 1)


def test_a_span_that_is_sent_twice_counts_once() -> None:
    sessions = Sessions(None)
    sessions.add_ingested([span(1), span(1), span(1, ended_at="2026-01-01T00:00:09.000000Z")])
    (row,) = sessions.rows()
    assert row["events"] == sessions.ingested == 2


def test_events_of_an_earlier_version_are_shown_in_todays_words(tmp_path: Path) -> None:
    """Both those of an archive's log and those that arrive."""
    with manager_on(tmp_path, 9_000) as manager:
        manager.preflight("s", turns(60))
    log = tmp_path / "s" / "events.jsonl"
    today = [json.loads(line) for line in log.read_bytes().splitlines()]
    lines = copy.deepcopy(today)
    for line in lines:
        properties = line["properties"]
        if "reason" in properties:
            properties["reason"] = {"below": "below_threshold", "trigger": "trigger_pct"}.get(
                properties["reason"], properties["reason"]
            )
        properties.update(properties.pop("planned", {}))
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert lines != today
    sessions = Sessions(opened(tmp_path))
    (news,) = LogWatcher(opened(tmp_path)).look()
    sessions.add_news(news)
    found = sessions.events("s", 0, 1_000)
    assert found is not None
    assert found.events == today
    kept = {"name", "trace_id", "span_id", "started_at", "ended_at", "status"}
    sessions.add_ingested(
        {
            "type": "span",
            **{k: v for k, v in line.items() if k in kept},
            "data": {"properties": line["properties"]},
        }
        for line in lines
    )
    arrived = sessions.events(trace_key(lines[0]["trace_id"]), 0, 1_000)
    assert arrived is not None
    assert [event["properties"] for event in arrived.events] == [event["properties"] for event in today]
