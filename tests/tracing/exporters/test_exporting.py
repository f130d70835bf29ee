"""Exporters as a manager runs them: chosen by name or passed, each on its own, and none in the caller's way."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.ariadne import Ariadne
from support.engine import events, manager, turns
from support.exporters import Gate
from support.waiting import until

from compact import CompactConfig, CompactManager
from compact.archive import Archive, MemoryStore
from compact.errors import ConfigError
from compact.events import Ids, Recorder, Started
from compact.redaction import Redactor
from compact.testing import CapturingExporter
from compact.tracing.exporters import CHOICES, open_exporter


def emit(made: CompactManager, count: int, session: str = "s") -> None:
    """A burst of events, as fast as it goes."""
    opened = made.sessions.get(session)
    for n in range(count):
        made.services.emit(opened, Started(reason="manual", note=str(n)))


@pytest.mark.sweep
@pytest.mark.no_cover
def test_a_burst_loses_nothing_from_the_log_and_drops_are_counted_exactly(tmp_path: Path) -> None:
    stuck, seen = Gate(batch=1), CapturingExporter()
    config = CompactConfig(
        archive={"adapter": "fs", "root": str(tmp_path)},
        tracing={"queue_events": 1_000, "flush_timeout_s": 0.1},
    )
    made = CompactManager(config, exporters=[stuck, seen])
    emit(made, 20_000)
    made.flush()
    written = events(made, name="started")
    assert [event["properties"]["note"] for event in written] == [str(n) for n in range(20_000)]
    made.close()
    stuck.open.set()
    made.close()
    in_log = events(made)
    warnings = [event["properties"] for event in in_log if event["name"] == "compact.warning"]
    for name, got in (("gate", len(stuck.got)), ("CapturingExporter", len(seen.events))):
        stats = made.get_compaction_stats()["exporters"][name]
        assert stats["delivered"] == got
        assert got + stats["dropped"] == len(in_log), "every event is accounted for"
        told = [w["message"] for w in warnings if f"exporter {name} " in w["message"]]
        counts = [int(text.partition("dropped ")[2].split()[0].replace(",", "")) for text in told]
        assert sum(counts) == stats["dropped"], "and the warnings in the log add up"
    assert len(stuck.got) < 1_100
    assert {warning["code"] for warning in warnings} == {"exporter_drops"}


def test_a_slow_exporter_delays_neither_the_log_nor_another_exporter() -> None:
    stuck, seen = Gate(), CapturingExporter()
    made = manager(exporters=[stuck, seen], tracing={"flush_timeout_s": 0.1})
    made.preflight("s", turns(2))
    until(lambda: len(seen.events) == 2)
    assert len(events(made)) == 2
    assert stuck.got == []
    stuck.open.set()
    made.close()


def test_no_exporter_runs_on_the_callers_thread() -> None:
    threads: list[str] = []
    made = manager(exporters=[lambda event: threads.append(threading.current_thread().name)])
    made.preflight("s", turns(2))
    made.close()
    assert threads == ["compact-<lambda>"] * 2


def test_exporters_of_the_same_name_are_told_apart() -> None:
    one, two = CapturingExporter(), CapturingExporter()
    with manager(exporters=[one, two]) as made:
        made.preflight("s", turns(2))
    stats = made.get_compaction_stats()["exporters"]
    assert list(stats) == ["CapturingExporter", "CapturingExporter-2"]
    assert [each["delivered"] for each in stats.values()] == [2, 2]


def test_an_archive_of_the_hosts_own_is_listened_to() -> None:
    recorder = Recorder(lambda: datetime.now(UTC), Ids("mine"))
    archive = Archive(MemoryStore(), Redactor(), recorder)
    seen = CapturingExporter()
    with CompactManager(CompactConfig(), archive=archive, exporters=[seen]) as made:
        made.preflight("s", turns(2))
    assert len(seen.events) == 2


def test_an_unknown_exporter_lists_the_choices() -> None:
    with pytest.raises(ConfigError, match="jsonl, console, ariadne, agents_sdk, otlp"):
        CompactConfig(tracing={"exporters": ["fax"]})
    with pytest.raises(ConfigError, match="jsonl, console, ariadne, agents_sdk, otlp, got 'fax'"):
        open_exporter("fax", CompactConfig().tracing)


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_can_be_opened(name: str) -> None:
    exporter = open_exporter(name, CompactConfig().tracing)
    assert exporter is None if name == "jsonl" else exporter is not None and exporter.name == name


def test_without_exporters_nothing_runs_beside_the_journal() -> None:
    before = set(threading.enumerate())
    with manager() as made:
        made.preflight("s", turns(2))
        assert made.get_compaction_stats()["exporters"] == {}
        assert {thread.name for thread in set(threading.enumerate()) - before} <= {"compact-journal"}


def test_closing_twice_and_going_on_after_it_works() -> None:
    seen = CapturingExporter()
    made = manager(exporters=[seen])
    made.preflight("s", turns(2))
    made.close()
    made.close()
    made.preflight("s", turns(3))
    made.close()
    assert len(seen.events) == 4


def test_a_process_that_ends_without_closing_still_delivers(tmp_path: Path) -> None:
    script = f"""
import sys
from compact import CompactConfig, CompactManager
config = CompactConfig(archive={{"adapter": "fs", "root": {str(tmp_path)!r}}}, tracing={{"exporters": ["console"]}})
CompactManager(config).preflight("s", [{{"role": "user", "content": "hi"}}])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert [line.split()[3] for line in done.stderr.splitlines()] == ["token_estimate", "trigger_decision"]


def test_what_a_killed_process_left_is_sent_by_the_next_one(tmp_path: Path) -> None:
    """Ariadne got the first events, was away for the next, and the process died at once after those."""
    ariadne = Ariadne()
    archive = {"adapter": "fs", "root": str(tmp_path)}
    tracing = {"exporters": ["ariadne"], "ariadne_url": ariadne.url}
    script = f"""
import os, sys
from compact import CompactConfig, CompactManager
made = CompactManager(CompactConfig(archive={archive!r}, tracing={tracing!r}))
made.preflight("s", [{{"role": "user", "content": "hi"}}])
made.close()
print("stop it", flush=True)
sys.stdin.readline()
made.preflight("s", [{{"role": "user", "content": "hi"}}])
made.flush()
os.kill(os.getpid(), 9)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "stop it\n"
        ariadne.stop()
        running.communicate("go on\n", timeout=60)
    assert running.returncode == -9
    assert len(ariadne.spans) == 2
    ariadne.start()
    with CompactManager(CompactConfig(archive=archive, tracing=tracing)) as made:
        made.preflight("s", [{"role": "user", "content": "hi"}])
    ariadne.stop()
    assert [span["span_id"] for span in ariadne.spans] == [event["span_id"] for event in events(made)]
    assert len(ariadne.spans) == 6


@pytest.mark.parametrize("trouble", ["down", "slow", "erroring"])
def test_a_preflight_does_not_wait_for_an_exporter_in_trouble(trouble: str) -> None:
    """150 waits of ten seconds would not end before the timeout. `python -m bench tracing` has what it costs."""
    ariadne = Ariadne()
    if trouble == "down":
        ariadne.stop()
    else:
        ariadne.mood, ariadne.delay_s = ("slow", 10.0) if trouble == "slow" else ("erroring", 0.0)
    tracing: dict[str, Any] = {"exporters": ["ariadne"], "ariadne_url": ariadne.url, "flush_timeout_s": 0.1}
    made = manager(tracing=tracing)
    session = turns(40)
    for _ in range(150):
        assert made.preflight("s", session) is session
    made.flush()
    stats = made.get_compaction_stats()["exporters"]["ariadne"]
    made.close()
    ariadne.stop()
    assert stats["delivered"] == 0
    assert stats["waiting"] + stats["dropped"] >= 150
