"""Processes that die in the middle of a write, and processes that race. `make slow` makes the long runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

TESTS = Path(__file__).resolve().parents[1]


def run(*arguments: object, timeout: float = 100) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "support.archive_kill", *map(str, arguments)],
        cwd=TESTS,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kills(root: Path, count: int, seed: int) -> None:
    found = run("kill", root, count, seed, timeout=7000)
    assert found["wrong"] == []
    assert found["left"] == [], "what killed processes leave is swept"
    assert found["kills"] == count
    assert all(found["kinds"].values()), "outputs, events and steps were all acknowledged before a kill"


@pytest.mark.sweep
def test_sixty_kills_lose_nothing_that_was_acknowledged_and_tear_nothing(tmp_path: Path) -> None:
    kills(tmp_path / "archive", 60, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_thousand_kills_lose_nothing_that_was_acknowledged_and_tear_nothing(tmp_path: Path) -> None:
    kills(tmp_path / "archive", 2000, seed=2)


def races(root: Path, processes: int, steps: int) -> None:
    found = run("race", root, processes, steps, timeout=7000)
    total = processes * steps
    assert found["codes"] == [0] * processes
    assert found["steps"] == found["won"] == list(range(1, total + 1)), "no gap, and every step won once"
    assert found["overwritten"] == []
    assert found["problems"] == []
    assert found["left"] == []
    assert found["lost"] > 0, "the processes really raced"
    assert found["archival_events"] == 4 * total
    print(processes, "processes", total, "steps", found["lost"], "lost races")  # noqa: T201


@pytest.mark.sweep
def test_processes_that_race_for_steps_leave_no_gap_and_overwrite_nothing(tmp_path: Path) -> None:
    races(tmp_path / "archive", 4, 6)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_eight_processes_and_two_hundred_steps_each(tmp_path: Path) -> None:
    races(tmp_path / "archive", 8, 200)
