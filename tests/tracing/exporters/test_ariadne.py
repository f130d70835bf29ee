"""Ariadne takes every event, is never waited for, and loses none while it is away."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.ariadne import Ariadne, refusal
from support.engine import events, turns
from support.exporters import busy_session, event_maker
from support.viewer import serving
from support.waiting import WAIT_S, until

from compact import CompactConfig, CompactManager
from compact.events import Failure, Started, SummaryCreated
from compact.tracing import export_worker, journal
from compact.tracing.exporters import Sent, Unavailable, open_exporter
from compact.tracing.exporters.ariadne import AriadneExporter

make = event_maker(lambda: datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def ariadne() -> Iterator[Ariadne]:
    server = Ariadne()
    yield server
    server.stop()


def connected(ariadne: Ariadne, **settings: Any) -> CompactManager:
    settings.setdefault("archive", {"adapter": "memory"})
    tracing = {"exporters": ["jsonl", "ariadne"], "ariadne_url": ariadne.url}
    config = CompactConfig(model="gpt-4o", tracing=tracing, **settings)
    return CompactManager(config)


def told(count: int, text: str = "r") -> list[dict[str, Any]]:
    return [make(Started(reason="manual", note=text)).to_json() for _ in range(count)]


SPAN = {"type": "span", "trace_id": "t", "span_id": "s"}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({**SPAN, "parent_id": None}, "parent_id must be a text, or absent"),
        ({**SPAN, "started_at": "2026-01-01T00:00:00+00:00"}, "started_at must be UTC and end in Z"),
        (
            {**SPAN, "started_at": "2026-01-02T00:00:00Z", "ended_at": "2026-01-01T00:00:00Z"},
            "ended_at must be",
        ),
        ({**SPAN, "status": "fine"}, "status must be ok or error"),
        ({**SPAN, "data": []}, "data must be an object"),
        ({**SPAN, "span_id": ""}, "span_id must be a text"),
        ({"type": "trace", "trace_id": "t", "metadata": {"n": 1}}, "metadata must be an object of texts"),
        ([SPAN], "not a trace or a span"),
        (SPAN, None),
        ({"type": "trace", "trace_id": "t", "metadata": {"n": "1"}}, None),
    ],
)
def test_the_stand_in_is_as_strict_as_ariadne(event: Any, why: str | None) -> None:
    found = refusal(event)
    assert found is None if why is None else found is not None and found.startswith(why)


def test_a_whole_run_is_taken_and_nests(ariadne: Ariadne) -> None:
    with connected(ariadne, max_context_tokens=16_000, offload={"large_result_tokens": 2000}) as made:
        made.preflight("s", busy_session())
        made.preflight("s", turns(2))
    written = events(made)
    assert set(ariadne.statuses) == {200}
    assert [span["span_id"] for span in ariadne.spans] == [event["span_id"] for event in written]
    assert [span["name"] for span in ariadne.spans] == [event["name"] for event in written]
    ids = {span["span_id"] for span in ariadne.spans}
    assert all(span["parent_id"] in ids for span in ariadne.spans if "parent_id" in span)
    assert {span["kind"] for span in ariadne.spans} == {"compact"}
    first, last = ariadne.traces
    assert "ended_at" not in first
    assert first["group_id"] == "s"
    assert last["ended_at"] == max(span["ended_at"] for span in ariadne.spans)
    assert ariadne.events[0] is first, "a trace comes before its spans"


def test_the_inspector_finds_the_summary_the_policy_and_the_counts(ariadne: Ariadne) -> None:
    with connected(ariadne, max_context_tokens=16_000, offload={"large_result_tokens": 2000}) as made:
        out = made.preflight("s", busy_session())
    by_name = {span["name"]: span["data"] for span in ariadne.spans}
    summary = by_name["compact.summary_created"]
    assert summary["output_text"] in [message["content"] for message in out]
    assert summary["summary_tokens"] > 0
    decision = by_name["compact.trigger_decision"]
    assert decision["policy"] == {"trigger_pct": 0.85, "hard_cap_buffer": 1500, "strategy": "task_state"}
    assert decision["planned"]["kept"]["pinned"] == 1
    assert by_name["compact.pruned_messages"]["tokens_after"] > 0
    assert summary["session_id"] == "s"


def test_every_event_is_visible_while_the_session_goes_on(
    ariadne: Ariadne, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event wakes those who bring it out. Nothing waits for a timer, a full batch, a flush or the end.

    The idle threads of this test sleep for longer than `until` waits, so only the event itself can wake them. The one pause on
    the way, in which events gather, is far below 200 ms. `python -m bench tracing` measures the whole way.
    """
    monkeypatch.setattr(journal, "LINGER_S", 10 * WAIT_S)
    monkeypatch.setattr(export_worker, "LINGER_S", 10 * WAIT_S)
    assert journal.PAUSE_S <= 0.02
    made = connected(ariadne)
    for n in range(1, 6):
        made.preflight("s", turns(n))
        wanted = ["compact.token_estimate", "compact.trigger_decision"] * n
        until(lambda wanted=wanted: [span["name"] for span in ariadne.spans] == wanted)  # type: ignore[misc]
    made.close()


def test_batches_stay_under_the_limit(ariadne: Ariadne) -> None:
    exporter = AriadneExporter(ariadne.url)
    left = told(300, "x" * 3000)
    while left:
        left = left[exporter.export(left).taken :]
    assert len(ariadne.spans) == 300
    assert max(ariadne.sizes) < 200_000
    assert len(ariadne.sizes) < 12, "not one by one"


def test_one_bad_event_does_not_lose_the_others(ariadne: Ariadne, capsys: pytest.CaptureFixture[str]) -> None:
    ariadne.poison = "POISON"
    batch = told(40)
    batch[17]["properties"]["note"] = "POISON"
    assert AriadneExporter(ariadne.url).export(batch) == Sent(40, refused=1)
    assert [span["span_id"] for span in ariadne.spans] == [
        event["span_id"] for event in batch if event is not batch[17]
    ]
    complaint = capsys.readouterr().err
    assert complaint.startswith("[Ariadne] refused an event with status 400: ")


def test_an_event_that_is_too_large_loses_the_end_of_its_texts_only(ariadne: Ariadne) -> None:
    summary = SummaryCreated(strategy="brief", input_messages=3, summary_tokens=20, compression_ratio=0.2)
    huge = make(summary, payload={"summary": "\u00e9" * 400_000, "more": ["y" * 1000] * 500}).to_json()
    assert AriadneExporter(ariadne.url).export([huge, *told(1)]).taken >= 1
    (span,) = [span for span in ariadne.spans if span["name"] == "compact.summary_created"]
    assert span["data"]["summary_tokens"] == 20
    assert span["data"]["output_text"].endswith("[cut; the whole is in events.jsonl]")
    assert max(ariadne.sizes) < 200_000


def test_a_refused_size_is_split(ariadne: Ariadne, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.ariadne.MAX_BYTES", 5_000)
    assert AriadneExporter(ariadne.url).export(told(60)) == Sent(60)
    assert len(ariadne.spans) == 60
    assert 413 in ariadne.statuses


def test_a_redirect_is_not_followed(ariadne: Ariadne) -> None:
    ariadne.mood = "redirecting"
    with pytest.raises(Unavailable, match="status 302"):
        AriadneExporter(ariadne.url).export(told(1))
    assert ariadne.paths == ["/ingest"]


def test_a_missing_token_is_told() -> None:
    with serving(None, token="the-viewers-own-token") as viewer:
        with pytest.raises(Unavailable, match=r"status 401: set tracing\.ariadne_token"):
            AriadneExporter(viewer.url).export(told(1))
        with pytest.raises(Unavailable, match=r"status 401: it refuses tracing\.ariadne_token"):
            AriadneExporter(viewer.url, token=SecretStr("another")).export(told(1))


def test_no_proxy_is_used(ariadne: Ariadne, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert AriadneExporter(ariadne.url).export(told(1)) == Sent(1)


def test_a_server_that_never_answers_is_given_up_after_the_timeout(ariadne: Ariadne) -> None:
    """With the default timeout, as configured and as made by hand: an answer after three seconds comes too late."""
    ariadne.mood, ariadne.delay_s = "slow", 3.0
    configured = open_exporter("ariadne", CompactConfig(tracing={"ariadne_url": ariadne.url}).tracing)
    assert configured is not None
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(each.export, told(1)) for each in (AriadneExporter(ariadne.url), configured)]
        problems = [each.exception() for each in tries]
    assert [type(problem) for problem in problems] == [Unavailable, Unavailable]
    assert all("timed out" in str(problem) for problem in problems)


def test_a_timeout_of_ones_own_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        exporter = AriadneExporter(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(Unavailable, match="timed out"):
            exporter.export(told(1))


def test_without_a_timeout_of_ones_own_it_is_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def silent(host: str, port: int, timeout: float) -> Any:
        asked.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr("http.client.HTTPConnection", silent)
    for exporter in (AriadneExporter(), open_exporter("ariadne", CompactConfig().tracing)):
        assert exporter is not None
        with pytest.raises(Unavailable, match="timed out"):
            exporter.export(told(1))
    assert asked == [2.0, 2.0]


def test_the_path_of_the_address_is_kept(ariadne: Ariadne) -> None:
    with pytest.raises(Unavailable, match="404"):
        AriadneExporter(f"{ariadne.url}/behind/").export(told(1))
    assert ariadne.paths == ["/behind/ingest"]


def test_an_outage_is_told_once_on_stderr_and_never_raised(
    ariadne: Ariadne, capsys: pytest.CaptureFixture[str]
) -> None:
    ariadne.stop()
    made = connected(ariadne)
    for n in range(4):
        made.preflight("s", turns(1 + n))
    made.close()
    ariadne.start()
    made.preflight("s", turns(9))
    made.close()
    complaints = capsys.readouterr().err.splitlines()
    assert [line[:10] for line in complaints] == ["[Ariadne] "] * 2
    assert "does not take events (ConnectionRefusedError" in complaints[0]
    assert "takes events again" in complaints[1]


@pytest.mark.parametrize("trouble", ["down", "slow", "erroring"])
def test_every_event_is_delivered_after_it_is_back(
    ariadne: Ariadne, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compact.tracing.exporters.ariadne.TIMEOUT_S", 0.3)
    if trouble == "down":
        ariadne.stop()
    else:
        ariadne.mood, ariadne.delay_s = ("slow", 10.0) if trouble == "slow" else ("erroring", 0.0)
    made = connected(ariadne)
    for n in range(20):
        made.preflight("s", turns(1 + n))
    made.flush()
    waiting = made.get_compaction_stats()["exporters"]["ariadne"]
    assert waiting == {"delivered": 0, "refused": 0, "dropped": 0, "waiting": 40}
    assert ariadne.spans == []
    if trouble == "down":
        ariadne.start()
    ariadne.mood = "up"
    until(lambda: len(ariadne.spans) >= 40)
    made.close()
    assert {span["span_id"] for span in ariadne.spans} == {event["span_id"] for event in events(made)}


def test_the_next_process_sends_what_waited(ariadne: Ariadne, tmp_path: Path) -> None:
    """Also what was never in this process's own memory: the archive's log is the source."""
    archive = {"adapter": "fs", "root": str(tmp_path)}
    with connected(ariadne, archive=archive) as made:
        made.preflight("s", turns(2))
    ariadne.stop()
    with connected(ariadne, archive=archive) as made:
        made.preflight("s", turns(3))
    assert made.get_compaction_stats()["exporters"]["ariadne"]["waiting"] == 2
    ariadne.start()
    with connected(ariadne, archive=archive) as made:
        made.preflight("s", turns(4))
    found = [span["span_id"] for span in ariadne.spans]
    assert found == [event["span_id"] for event in events(made)]
    assert len(found) == 6
    assert made.archive.verify() == []


def test_what_is_sent_is_redacted(ariadne: Ariadne) -> None:
    with connected(ariadne) as made:
        made.manual_compact("s", turns(20), note="api_key=sk-abc123def456ghi789jkl012")
    sent = json.dumps(ariadne.events)
    assert "sk-abc123" not in sent
    assert "api_key=<REDACTED>" in sent


def test_an_error_has_its_status(ariadne: Ariadne) -> None:
    failure = make(Failure(error_type="E", message="m", fallback="none")).to_json()
    AriadneExporter(ariadne.url).export([failure])
    assert ariadne.spans[0]["status"] == "error"
    assert ariadne.spans[0]["data"]["fallback"] == "none"


def test_nothing_goes_to_stdout(ariadne: Ariadne, capsys: pytest.CaptureFixture[str]) -> None:
    ariadne.mood = "erroring"
    with connected(ariadne) as made:
        made.preflight("s", turns(1))
    assert capsys.readouterr().out == ""
    assert sys.stderr is not None


def test_what_a_process_could_not_send_at_all_is_sent_by_the_next(ariadne: Ariadne, tmp_path: Path) -> None:
    archive = {"root": str(tmp_path)}
    ariadne.stop()
    with connected(ariadne, archive=archive) as first:
        first.preflight("s", turns(2))
    assert ariadne.spans == []
    ariadne.start()
    with connected(ariadne, archive=archive) as second:
        second.preflight("s", turns(3))
    written = events(second)
    assert [event["name"] for event in written].count("compact.token_estimate") == 2
    assert [span["span_id"] for span in ariadne.spans] == [event["span_id"] for event in written]
