"""What is new is noticed: in an archive's logs, on the page's stream, on Ariadne's stream, in the terminal."""

from __future__ import annotations

import http.client
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.viewer import ask, manager_on, opened, serving, span
from support.waiting import until

from compact.archive import LogWatcher, log
from compact.tools.cli.app import run
from compact.tools.cli.demo import demo_session, relive
from compact.tools.cli.stats import stats_of
from compact.tools.viewer import live
from compact.tools.viewer.live import EventStream
from compact.tools.viewer.serving import ViewerServer

HELLO = [{"role": "user", "content": "Hello."}]


def test_each_look_tells_what_came_since_the_last(tmp_path: Path) -> None:
    logs = LogWatcher(opened(tmp_path))
    assert logs.look() == []
    with manager_on(tmp_path) as manager:
        manager.preflight("a", HELLO)
        manager.flush()
        (first,) = logs.look()
        assert (first.session_id, first.first, len(first.lines)) == ("a", 0, 2)
        assert logs.look() == []
        manager.preflight("a", HELLO)
        manager.preflight("b", HELLO)
        manager.flush()
        news = {each.session_id: (each.first, len(each.lines)) for each in logs.look()}
        assert news == {"a": (2, 2), "b": (0, 2)}


def test_a_half_written_line_is_told_once_it_is_whole(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        manager.preflight("a", HELLO)
    log = tmp_path / "a" / "events.jsonl"
    logs = LogWatcher(opened(tmp_path))
    logs.look()
    line = log.read_bytes().splitlines()[0]
    with log.open("ab") as stream:
        stream.write(line[:40])
        stream.flush()
        assert logs.look() == []
        stream.write(line[40:] + b"\n")
    (news,) = logs.look()
    assert (news.first, news.lines) == (2, [line])


def test_a_log_that_was_made_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        manager.preflight("a", HELLO)
        manager.preflight("a", HELLO)
    log = tmp_path / "a" / "events.jsonl"
    logs = LogWatcher(opened(tmp_path))
    logs.look()
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    (news,) = logs.look()
    assert (news.first, len(news.lines)) == (0, 1)


def test_among_many_sessions_one_that_was_quiet_for_long_is_still_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MANY", 1)
    monkeypatch.setattr(log, "QUIET_LOOKS", 3)
    logs = LogWatcher(opened(tmp_path))
    with manager_on(tmp_path) as manager:
        for name in ("a", "b", "c"):
            manager.preflight(name, HELLO)
        manager.flush()
        for _ in range(6):
            logs.look()
        manager.preflight("b", HELLO)
        manager.flush()
        found = [news for _ in range(log.SELDOM) for news in logs.look()]
        assert [(news.session_id, news.first) for news in found] == [("b", 2)]


@contextmanager
def stream(server: ViewerServer, path: str) -> Iterator[Any]:
    """The messages of a stream, as they come."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")

    def messages() -> Iterator[Any]:
        while True:
            line = answer.readline()
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            elif not line:
                return

    try:
        yield messages()
    finally:
        answer.close()
        connection.close()


def test_ariadnes_stream_gives_what_ingest_took_as_it_was_taken() -> None:
    with serving(None) as server, stream(server, "/events") as found:
        assert next(found)["type"] == "connected"
        ask(server, "/ingest", {"batch": [span(1), span(2)]})
        assert [next(found), next(found)] == [span(1), span(2)]


def test_ariadnes_stream_can_be_narrowed_to_a_trace_a_kind_or_a_time() -> None:
    query = "traceId=t2&kinds=tool,compact&since=2026-01-01T00:00:00.000000Z"
    with serving(None) as server, stream(server, f"/events?{query}") as found:
        next(found)
        batch = [
            span(1, "t1", kind="tool"),
            span(2, "t2", kind="agent"),
            span(3, "t2", kind="tool", started_at="2025-01-01T00:00:00.000000Z"),
            span(4, "t2", kind="compact"),
        ]
        ask(server, "/ingest", {"batch": batch})
        assert next(found) == batch[3]


def test_a_slow_reader_loses_the_oldest_and_is_told_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_WAITING_BYTES", 3 * len(live.message(span(1))))
    slow = EventStream("now", lambda _: True)
    slow.arrived([span(n) for n in range(5)])
    sent = slow.pending().decode()
    assert sent.startswith(": warning: 2 events skipped")
    assert [f"t1-{n}" in sent for n in range(5)] == [False, False, True, True, True]
    assert slow.pending() == b""


def test_too_many_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 1)
    with serving(None) as server, stream(server, "/events") as found:
        next(found)
        assert ask(server, "/api/live").status == 503


def test_the_pages_stream_names_the_sessions_that_changed(tmp_path: Path) -> None:
    with serving(tmp_path) as server, stream(server, "/api/live") as found, manager_on(tmp_path) as manager:
        time.sleep(0.2)
        manager.preflight("a", HELLO)
        assert next(found) == {"changed": ["a"]}


def test_the_exporters_spans_show_the_session_and_only_once_beside_its_archive(tmp_path: Path) -> None:
    with serving(None) as alone, serving(tmp_path) as beside:
        for server in (alone, beside):
            tracing = {"exporters": ["jsonl", "ariadne"], "ariadne_url": server.url}
            with manager_on(tmp_path, tracing=tracing) as manager:
                manager.preflight(server.url[-5:], HELLO)

        def rows(server: ViewerServer) -> list[tuple[str, str, int]]:
            found = ask(server, "/api/sessions").json()["sessions"]
            return sorted((row["id"], row["source"], row["calls"]) for row in found)

        until(lambda: rows(alone) == [(alone.url[-5:], "ingest", 1)])
        both = sorted((server.url[-5:], "archive", 1) for server in (alone, beside))
        until(lambda: rows(beside) == both)
        assert ask(beside, "/healthz").json()["events"]["count"] == 2


def printed(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return code, out.getvalue(), err.getvalue()


def test_tail_prints_a_line_for_each_event(demo_root: Path) -> None:
    code, out, _ = printed("tail", "demo", "--archive", str(demo_root), "--no-follow")
    events = opened(demo_root).events("demo")
    assert code == 0
    assert len(out.splitlines()) == len(events)
    assert sum("finished" in line and "compacted:" in line for line in out.splitlines()) >= 5
    _, last, _ = printed("tail", "demo", "--root", str(demo_root), "--no-follow", "-n", "3")
    assert last.splitlines() == out.splitlines()[-3:]
    _, raw, _ = printed("tail", "demo", "--root", str(demo_root), "--no-follow", "--json", "-n", "1")
    assert json.loads(raw) == events[-1].to_json()


def test_tail_says_which_sessions_there_are(demo_root: Path) -> None:
    code, _, err = printed("tail", "demmo", "--root", str(demo_root), "--no-follow")
    assert code == 2
    assert "There are: demo" in err


def test_tail_shows_a_damaged_line_and_goes_on(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        manager.preflight("a", HELLO)
    with (tmp_path / "a" / "events.jsonl").open("ab") as stream:
        stream.write(b'{"name": "\x1b[2J"\n{"name": "compact.archival"}\n')
    _, out, _ = printed("tail", "a", "--root", str(tmp_path), "--no-follow")
    assert [line.startswith("not an event") for line in out.splitlines()] == [
        False,
        False,
        True,
        True,
    ]
    assert "\x1b" not in out


def test_tail_follows_until_it_is_interrupted(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        manager.preflight("a", HELLO)
        manager.flush()
        command = [sys.executable, "-m", "compact", "tail", "a", "--root", str(tmp_path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | {"NO_COLOR": "1"}
        ) as process:
            assert process.stdout is not None
            assert "token_estimate" in process.stdout.readline()
            assert "trigger_decision" in process.stdout.readline()
            manager.preflight("a", [*HELLO, {"role": "assistant", "content": "Yes?"}])
            assert "token_estimate" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130


def test_stats_are_those_that_the_manager_counted(tmp_path: Path) -> None:
    session = demo_session()
    with manager_on(tmp_path, 128_000) as manager:
        standing = manager.preflight("demo", session.messages)
        manager.manual_compact("demo", standing)
        counted = manager.get_compaction_stats()
    _, out, _ = printed("stats", "--root", str(tmp_path), "--json")
    (row,) = json.loads(out)
    assert row["total_tokens_saved"] == counted["total_tokens_saved"]
    assert row["by_strategy"] == counted["by_strategy"]
    assert row["compaction_events"] == counted["compaction_events"]
    assert (row["steps"], row["calls"], row["peak_tokens"]) == (2, 2, 133_619)
    _, table, _ = printed("stats", "demo", "--root", str(tmp_path))
    assert f"{counted['total_tokens_saved']:,}" in table


def test_stats_are_those_that_the_manager_counted_in_a_session_of_many_steps(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        relive(manager, demo_session())
        manager.process_tool_result("row of a table\n" * 20_000, "query", "call_1", "demo")
        counted = manager.get_compaction_stats()
    found = stats_of("demo", manager.archive.events("demo"))
    assert found.steps > 5
    assert found.by_strategy == counted["by_strategy"]
    assert found.compaction_events == counted["compaction_events"]


def test_stats_of_several_sessions_are_added_up(demo_root: Path) -> None:
    _, out, _ = printed("stats", "--root", str(demo_root))
    assert out.splitlines()[-1].startswith("all ")
    assert len(out.splitlines()) == 5


def test_view_prints_its_addresses_and_ends_on_interrupt(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compact", "view", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(4)]
        url, token = lines[0].split()[1].split("/?token=")
        assert f"{url}/ingest" in lines[1]
        assert str(tmp_path) in lines[2]
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        until(lambda: answers(connection, token))
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == ""


def answers(connection: http.client.HTTPConnection, token: str) -> bool:
    try:
        connection.request("GET", "/healthz", headers={"authorization": f"Bearer {token}"})
        return connection.getresponse().read().startswith(b'{"status":"ok"')
    except OSError:
        connection.close()
        return False


def test_view_refuses_to_be_seen_by_others_without_a_token(tmp_path: Path) -> None:
    code, _, err = printed("view", str(tmp_path), "--host", "0.0.0.0")
    assert code == 2
    assert "can be reached from other machines" in err
    code, _, err = printed("view", str(tmp_path / "missing"))
    assert code == 2
    assert "there is no archive at" in err
    assert "Name an existing folder, or none: then the viewer waits for the configured archive" in err
    assert "--root" not in err, "the command has no such option"


def test_a_stopped_server_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with serving(tmp_path) as server, stream(server, "/api/live"):
        pass
    until(lambda: not [t for t in set(threading.enumerate()) - before if "compact" in t.name])
