"""Every recorded session, with every preset and both kinds of host, at odd windows: `make sweep`, or `python -m bench.sweep`.

Each session is replayed call by call at three windows that are drawn by the seed. Nothing may raise except
`InsufficientBudget`, where what can never leave needs nearly all of the budget; every such case is listed. What is sent is legal and
within the budget, and has the user's newest message as it was. From a window of 32,000 on, history is edited in at most one
call of three, or in three calls of a short session.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench import run_to_end, transcripts, whole_number
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.checks import violations
from compact.tools.standins import chat_problems

Item = dict[str, Any]

PRESETS = ("default", "layered", "selective", "progressive")
HOSTS = ("keeps", "full")
MODELS = ("gpt-4o", "claude-sonnet-4-5")
"""One with a public tokenizer, and one whose counts carry a margin."""
EDGES = (7_919, 31_999, 32_000, 32_001)
ODD_WINDOWS, LEAST_WINDOW, MOST_WINDOW = 20, 8_000, 200_000
DRAWN = 3
EXCUSED = 0.97
"""`InsufficientBudget` is right where what can never leave needs more than this share of the budget."""
CALM_FROM, CALM_SHARE, FEW_EDITS = 32_000, 3, 3
_POINTER_TOKENS = 64
_LOOK_EVERY = 10
"""Edited requests are checked for legality, and one in so many of the others."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a session under one preset, host, model and window."""

    session: int
    preset: str
    host: str
    model: str
    window: int

    def __str__(self) -> str:
        return f"{sessions()[self.session]['id']} {self.preset} {self.host} {self.model} {self.window:,}"


@dataclass(slots=True)
class Run:
    """What one job did."""

    job: Job
    calls: int = 0
    passes: int = 0
    edits: int = 0
    excused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_calm(self) -> bool:
        """Whether history was edited rarely enough."""
        return self.job.window < CALM_FROM or self.edits <= max(FEW_EDITS, self.calls // CALM_SHARE)


@cache
def sessions() -> tuple[dict[str, Any], ...]:
    """All recorded sessions, or the few in the repository."""
    lines = [line for path in transcripts() for line in gzip.decompress(path.read_bytes()).splitlines()]
    return tuple(json.loads(line) for line in lines)


def draw_jobs(seed: int, share: float = 1.0) -> list[Job]:
    """The runs of a sweep. `share` takes a part of them."""
    chance = random.Random(seed)
    odd = [chance.randrange(LEAST_WINDOW, MOST_WINDOW) | 1 for _ in range(ODD_WINDOWS)]
    windows = [*EDGES, *odd]
    found = [
        Job(place, preset, host, chance.choice(MODELS), window)
        for place in range(len(sessions()))
        for preset in PRESETS
        for host in HOSTS
        for window in chance.sample(windows, DRAWN)
    ]
    return found if share >= 1 else chance.sample(found, max(1, round(len(found) * share)))


def config_of(job: Job) -> CompactConfig:
    """The settings of a run."""
    settings: dict[str, Any] = {
        "model": job.model,
        "max_context_tokens": job.window,
        "archive": {"adapter": "memory"},
    }
    return (
        CompactConfig(**settings) if job.preset == "default" else CompactConfig.preset(job.preset, **settings)
    )


def replay(job: Job) -> Run:
    """Replay a session: one call before every reply of the agent."""
    messages: list[Item] = sessions()[job.session]["messages"]
    run, made = Run(job), CompactManager(config_of(job))
    meter, budget = made.meter(), made.config.budget(job.window)
    kept: list[Item] = []
    sent: list[Item] = []
    taken = 0
    for place, message in enumerate(messages):
        if message["role"] != "assistant" or not place:
            continue
        given = [*kept, *messages[taken:place]] if job.host == "keeps" else messages[:place]
        taken = place
        run.calls += 1
        where = f"{job}, call {run.calls}"
        try:
            found = made.preflight("s", given)
        except InsufficientBudget as problem:
            needed = floor_of(given, meter) / budget
            noted = f"{where}: {needed:.1%} of the budget cannot leave: {problem}"
            (run.excused if needed > EXCUSED else run.problems).append(noted)
            break
        except Exception as problem:
            run.problems.append(f"{where}: {type(problem).__name__}: {problem}")
            break
        size, is_edited = meter.estimate(found).total, found[: len(sent)] != sent
        if size > budget:
            run.problems.append(f"{where}: {size:,} tokens, the budget is {budget:,}")
        newest = newest_user(given)
        if newest is not None and not any(item is newest for item in found):
            run.problems.append(f"{where}: the user's newest message is not as it was")
        if is_edited or run.calls % _LOOK_EVERY == 0:
            run.problems += [f"{where}: illegal: {told}" for told in find_illegal(found)]
        run.edits += is_edited
        kept = sent = list(found)
    run.passes = len(made.archive.steps("s")) if run.edits else 0
    if not run.is_calm:
        run.problems.append(
            f"{job}: history edited in {run.edits} of {run.calls} calls ({run.passes} passes)"
        )
    made.close()
    return run


def find_illegal(sent: Sequence[Item]) -> list[str]:
    """What a provider would refuse: by our own rules, and by those of the strict stand-in, which were written without them."""
    ours = [violation.message for violation in violations(sent)]
    return ours + chat_problems({"model": "gpt-4o", "messages": list(sent)})


def newest_user(messages: Sequence[Item]) -> Item | None:
    """The newest message of the user."""
    return next((item for item in reversed(messages) if item["role"] == "user"), None)


def floor_of(messages: Sequence[Item], meter: Any) -> int:
    """What can never leave: pinned messages, the user's newest message, the newest unit with its outputs as pointers."""
    start = len(messages) - 1
    while start and messages[start]["role"] == "tool":
        start -= 1
    unit = messages[start:]
    stays = [item for item in messages[:start] if item["role"] in ("system", "developer")]
    newest = newest_user(messages)
    if newest is not None and not any(item is newest for item in unit):
        stays.append(newest)
    raw = sum(meter.count_item(item, "chat") for item in stays) + 3
    for item in unit:
        size = meter.count_item(item, "chat")
        raw += min(size, _POINTER_TOKENS) if item["role"] == "tool" else size
    return int(meter.scale(raw))


def sweep(jobs: Sequence[Job], workers: int) -> Iterator[Run]:
    """Run all jobs, in several processes."""
    if workers == 1:
        yield from map(replay, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(replay, jobs, chunksize=8)


def main() -> int:
    """Print runs, calls, seed and every problem. Returns 1 if there is one."""
    asked = argparse.ArgumentParser(prog="python -m bench.sweep", description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--share", type=float, default=1.0, help="the part of the runs to make")
    asked.add_argument("--workers", type=whole_number(1), default=os.cpu_count() or 1)
    asked.add_argument("--preset", choices=PRESETS)
    args = asked.parse_args()
    jobs = [job for job in draw_jobs(args.seed, args.share) if args.preset in (None, job.preset)]
    runs, calls, passes, edits = 0, 0, 0, 0
    excused: list[str] = []
    problems: list[str] = []
    by_preset: Counter[str] = Counter()
    for run in sweep(jobs, args.workers):
        runs, calls, passes, edits = runs + 1, calls + run.calls, passes + run.passes, edits + run.edits
        excused += run.excused
        problems += run.problems
        by_preset[run.job.preset] += len(run.problems)
        for line in run.problems:
            print(f"  FAIL  {line}", flush=True)
    for line in excused:
        print(f"  excused  {line}")
    print(
        f"{runs:,} runs of {len(sessions())} sessions, {calls:,} calls, {passes:,} passes, {edits:,} edits, seed {args.seed}: "
        f"{len(problems)} problems, {len(excused)} excused"
    )
    print(", ".join(f"{preset} {by_preset[preset]}" for preset in PRESETS))
    return 1 if problems else 0


if __name__ == "__main__":
    run_to_end(main)
