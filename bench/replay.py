"""Replay and harness over recorded sessions: how many in a second on one core, and how much two cores help."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench import Figure
from compact import CompactConfig
from compact.harness import HarnessConfig, as_artifacts, stabilize
from compact.replay import Job, Played, Policy, play
from compact.replay.engines import local
from compact.replay.prices import built_in
from compact.transcripts import read_sessions

WINDOW = 32_000
SCALING = 1.6
_EVERY = 6
"""Of the shared sessions every sixth is played: enough work to measure, short enough to wait for."""


def bench_replay_on_one_core() -> Iterator[Figure]:
    """Recorded sessions replayed in a window of 32k tokens, every request checked, in a second on one core."""
    jobs = _jobs()
    _warm()
    seconds = _seconds(jobs, 1)
    calls = sum(len(played.calls) for played in _played)
    yield Figure(
        f"sessions per second ({len(jobs)} sessions, {calls:,} model calls)",
        len(jobs) / seconds,
        "/s",
        1,
        at_least=True,
    )


def bench_replay_on_two_cores() -> Iterator[Figure]:
    """The same on two cores against one: how many times faster, starting the processes included."""
    if (os.cpu_count() or 1) < 2:
        return
    jobs = _jobs() * 2
    _warm()
    one = min(_seconds(jobs, 1) for _ in range(2))
    two = min(_seconds(jobs, 2) for _ in range(2))
    yield Figure(
        f"times faster ({len(jobs)} sessions: {one:.1f} s, {two:.1f} s)",
        one / two,
        "x",
        SCALING,
        at_least=True,
    )


def bench_harness_on_one_core() -> Iterator[Figure]:
    """Recorded sessions stabilized to 8,000 tokens with the digits rule, in a second on one core."""
    sessions = [list(as_artifacts(job.session.messages)) for job in _jobs()]
    settings = HarnessConfig(budget=8_000)
    stabilize(sessions[0], settings)
    started = time.perf_counter()
    for artifacts in sessions:
        stabilize(artifacts, settings)
    seconds = time.perf_counter() - started
    yield Figure(
        f"sessions per second ({len(sessions)} sessions)", len(sessions) / seconds, "/s", 5, at_least=True
    )


_played: list[Played] = []


def _seconds(jobs: list[Job], workers: int) -> float:
    started = time.perf_counter()
    _played[:] = local(play, jobs, workers)
    return time.perf_counter() - started


def _warm() -> None:
    """Tokenizers and rules are loaded once per process; that is not what is measured on one core."""
    play(_jobs()[0])


@cache
def _jobs() -> list[Job]:
    repo = Path(__file__).resolve().parents[1]
    files = sorted((repo.parent / "shared" / "data" / "transcripts").glob("*.jsonl.gz"))
    every = _EVERY if files else 1
    files = files or sorted((repo / "tests" / "fixtures" / "transcripts").glob("*.jsonl.gz"))
    policy = Policy("default", CompactConfig(model="gpt-4o", max_context_tokens=WINDOW))
    return [
        Job(file=file.name, session=session, policies=[policy], prices=built_in(), model="gpt-4o")
        for file in files
        for session in list(read_sessions(file))[::every]
    ]
