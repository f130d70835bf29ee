"""{timeout, cancel, archive error, summarizer error, kill} at every point of the line: the old state or the new one.

The points are the effects that the engine yields in a real pass, found by running it. The first of each kind is in the
suite; all of them, with every fault, in a slow test.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.faults import WINDOW, Watched, assert_whole, ended, hard_session, manager_at, points_of
from support.waiting import WAIT_S, until

from compact.checks import violations
from compact.engine.effects import Effect
from compact.errors import ArchiveError, CompactError
from compact.runtime.run import Run

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

KINDS = {
    "Load",
    "KeepRemoved",
    "Store",
    "Begin",
    "SummaryRequest",
    "Commit",
    "compact.token_estimate",
    "compact.started",
    "compact.trigger_decision",
    "compact.offload",
    "compact.summary_created",
    "compact.pruned_messages",
    "compact.finished",
}


POINTS = [f"{kind}-1" for kind in sorted(KINDS)]


@cache
def all_points() -> tuple[str, ...]:
    made = manager_at(None)
    watched = Watched(made)
    made.preflight("s", hard_session())
    made.close()
    return tuple(points_of(watched))


def test_the_points_are_all_that_the_engine_asks_for() -> None:
    assert {name.rpartition("-")[0] for name in all_points()} >= KINDS


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_out_of_time_at_any_point(point: str, late: bool, tmp_path: Path) -> None:
    """The run is fenced before or right after an effect. It goes on for a while without knowing it."""
    made = manager_at(tmp_path)

    def out_of_time(run: Run, effect: Effect) -> None:
        made.conductor.end_by_timeout(run)

    watched = Watched(made, point, **{"after" if late else "before": out_of_time})
    items, before = hard_session(), hard_session()
    out = made.preflight("s", items)
    assert watched.struck
    assert items == before
    assert violations(out) == []
    ended(made)
    assert made.estimate(out).total <= WINDOW - 1500
    made.close()
    assert_whole(tmp_path, items)


@pytest.mark.parametrize("point", POINTS)
def test_a_cancel_at_any_point(point: str, tmp_path: Path) -> None:
    made = manager_at(tmp_path)
    items, before = hard_session(), hard_session()

    async def host() -> bool:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(made.apreflight("s", items))

        def cancel(run: Run, effect: Effect) -> None:
            loop.call_soon_threadsafe(task.cancel)
            until(lambda: run.is_fenced)

        watched = Watched(made, point, before=cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        return watched.struck

    assert asyncio.run(host())
    assert items == before
    ended(made)
    made.close()
    assert_whole(tmp_path, items)


@pytest.mark.parametrize("problem", [ArchiveError, pytest.param(RuntimeError, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", POINTS)
def test_an_error_at_any_point(point: str, problem: type[Exception], tmp_path: Path) -> None:
    """An archive that fails, a summarizer that fails, an exporter or a disk that fails under an event."""
    made = manager_at(tmp_path)

    def fail(run: Run, effect: Effect) -> None:
        raise problem(f"at {point}")

    watched = Watched(made, point, before=fail)
    items, before = hard_session(), hard_session()
    try:
        out = made.preflight("s", items)
    except (CompactError, RuntimeError):
        assert not point.startswith("SummaryRequest"), "a summarizer never stops a session"
    else:
        assert violations(out) == []
    assert watched.struck
    assert items == before
    ended(made)
    made.close()
    assert_whole(tmp_path, items)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_fault_at_every_point(tmp_path: Path) -> None:
    for point in all_points():
        test_out_of_time_at_any_point(point, False, tmp_path / f"{point}-time")
        test_out_of_time_at_any_point(point, True, tmp_path / f"{point}-late")
        test_a_cancel_at_any_point(point, tmp_path / f"{point}-cancel")
        for problem in (ArchiveError, RuntimeError):
            test_an_error_at_any_point(point, problem, tmp_path / f"{point}-{problem.__name__}")


def killed(root: Path, *names: str) -> dict[str, Any]:
    tests = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "support.running_kill", str(root), *names],
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S * 30,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.sweep
def test_a_process_killed_at_the_points_that_write(tmp_path: Path) -> None:
    found = killed(
        tmp_path, "Store-1", "Begin-1", "SummaryRequest-1", "Commit-1", "compact.pruned_messages-1"
    )
    assert found == {"killed": 10, "wrong": []}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_killed_at_every_point(tmp_path: Path) -> None:
    found = killed(tmp_path, *all_points())
    assert found == {"killed": 2 * len(all_points()), "wrong": []}
