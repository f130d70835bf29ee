"""Replay and harness over recorded sessions: how many per second on one core, and how much two cores help."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from bench import Figure, Skipped, recorded, transcripts
from compact import CompactConfig
from compact.harness import HarnessConfig, as_artifacts, stabilize
from compact.tokens.counter import counter_for
from compact.tokens.prices import built_in
from compact.tools.replay import Job, Played, Policy, play
from compact.tools.replay.engines import local
from compact.tools.transcripts import read_sessions

WINDOW = 32_000
SCALING = 1.6
_EVERY = 6
"""Every sixth recorded session is played, which is enough to measure and short enough to wait for."""


def bench_replay_on_one_core() -> Iterator[Figure]:
    """Recorded sessions replayed in 32k tokens, every request checked, against one cold tiktoken count of their text."""
    jobs = _jobs()
    play(jobs[0])  # tokenizers and rules are loaded once per process
    seconds, played = _cpu_seconds(partial(_played_by, 1, jobs))
    calls = sum(len(one.calls) for one in played)
    label = (
        f"{len(jobs) / seconds:.1f} sessions ({calls / seconds:.0f} model calls) per second; times the count"
    )
    yield Figure(label, seconds / _count_seconds(), "x", 25)


def bench_replay_on_two_cores() -> Iterator[Figure]:
    """Three times as many, on two cores against one: how many times faster, starting the processes included."""
    if (os.cpu_count() or 1) < 2:
        raise Skipped("needs two cores")
    if not recorded():
        raise Skipped.for_want_of_data("the few bundled sessions take less time than two processes to start")
    jobs = _jobs(_EVERY // 3)
    play(jobs[0])
    one, two = (_wall_seconds(partial(_played_by, workers, jobs)) for workers in (1, 2))
    yield Figure(
        f"times faster ({one:.1f} s, {two:.1f} s; other work on the machine spoils this)",
        one / two,
        "x",
        SCALING,
        at_least=True,
    )


def bench_harness_on_one_core() -> Iterator[Figure]:
    """Recorded sessions stabilized to 8,000 tokens with the digits rule, against one cold tiktoken count of their text."""
    sessions = [list(as_artifacts(job.session.messages)) for job in _jobs()]
    settings = HarnessConfig(budget=8_000)
    stabilize(sessions[0], settings)
    seconds, _ = _cpu_seconds(lambda: [stabilize(artifacts, settings) for artifacts in sessions])
    label = f"{len(sessions) / seconds:.1f} sessions per second; times the count"
    yield Figure(label, seconds / _count_seconds(), "x", 10)


def _played_by(workers: int, jobs: list[Job]) -> list[Played]:
    return list(local(play, jobs, workers))


def _cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, so that other programs on the machine do not matter."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def _wall_seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _count_seconds() -> float:
    plain = counter_for("o200k_base", fast=False)
    texts = [str(one["content"]) for job in _jobs() for one in as_artifacts(job.session.messages)]
    return _cpu_seconds(lambda: sum(map(plain.count, texts)))[0]


@cache
def _jobs(every: int = _EVERY) -> list[Job]:
    every = every if recorded() else 1
    policy = Policy("default", CompactConfig(model="gpt-4o", max_context_tokens=WINDOW))
    return [
        Job(file=file.name, session=session, policies=[policy], prices=built_in(), model="gpt-4o")
        for file in transcripts()
        for session in list(read_sessions(file))[::every]
    ]
