"""The long runs of the fault tests, with one line of results each: `make chaos`.

10,000 kills of processes that write to one archive, processes that race for steps, every error at every system call, and
every fault at every point of a compaction. Finished parts are kept in .chaos/ until the source changes, so a stopped run can
be continued (`--again` starts over). `--kills 500` makes it short.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import run_to_end, whole_number

REPO = Path(__file__).resolve().parents[1]
DONE = REPO / ".chaos" / "done.json"
KILLS = 10_000
_BATCH = 500
_LONGEST_S = 3_000
_KILLER = "support.archive_kill"


@dataclass(frozen=True, slots=True)
class Result:
    """What one part of the run found."""

    passed: bool
    counts: dict[str, int]
    seconds: float
    said: str = ""
    """The end of its output, if it failed."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of work that is done completely or not at all."""

    line: str
    """The line of the result that it counts for."""
    name: str
    run: Callable[[], Result]


def parts(kills: int) -> Iterator[Part]:
    """All parts, in order. Parts with the same line are added up."""
    for seed, start in enumerate(range(0, kills, _BATCH), 1):
        count = min(_BATCH, kills - start)
        yield Part(
            "processes killed while they write",
            f"kill-{count}-{seed}",
            lambda count=count, seed=seed: kill_processes(count, seed),  # type: ignore[misc]
        )
    yield Part("processes that race for steps", "race", lambda: race_processes(8, 200))
    yield _tests("every errno at every system call", "tests/archive/test_archive_faults.py")
    yield _tests("every fault at every point of a pass", "tests/runtime/test_fault_matrix.py")
    yield _tests("secrets at every exit, every place", "tests/test_canaries.py")


def _tests(line: str, path: str) -> Part:
    return Part(line, path, lambda: run_tests(path))


def kill_processes(count: int, seed: int) -> Result:
    """Kill processes while they write to one archive. Nothing that was acknowledged may be lost."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = _program("-m", _KILLER, "kill", f"{folder}/archive", str(count), str(seed))
    if done.returncode:
        return Result(False, {}, time.monotonic() - began, done.stderr[-600:])
    found = json.loads(done.stdout)
    wrong = [*found["wrong"], *found["left"]]
    counts = {
        "kills": found["kills"],
        "acknowledged writes": found["acknowledged"],
        "lost or torn": len(wrong),
    }
    return Result(
        not wrong and found["kills"] == count, counts, time.monotonic() - began, "; ".join(wrong)[:600]
    )


def race_processes(processes: int, steps: int) -> Result:
    """Let processes race for the same steps. Each step may be won once."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = _program("-m", _KILLER, "race", f"{folder}/archive", str(processes), str(steps))
    if done.returncode:
        return Result(False, {}, time.monotonic() - began, done.stderr[-600:])
    found = json.loads(done.stdout)
    total = processes * steps
    whole = found["steps"] == found["won"] == list(range(1, total + 1))
    wrong = [*found["overwritten"], *found["problems"], *found["left"]]
    if not whole:
        wrong.append("steps are missing, or were won twice")
    counts = {
        "processes": processes,
        "steps": total,
        "lost races": found["lost"],
        "overwritten or torn": len(wrong),
    }
    said = "; ".join(map(str, wrong))[:600]
    return Result(not wrong, counts, time.monotonic() - began, said)


def run_tests(path: str) -> Result:
    """Run a file of tests, slow ones included."""
    began = time.monotonic()
    done = _program(
        "-m", "pytest", "-q", "-rP", "-n", "2", "-p", "no:cacheprovider", "--timeout=3000",
        "-o", "addopts=--strict-markers --strict-config --import-mode=importlib", path,
    )  # fmt: skip
    last = (done.stdout.splitlines() or [""])[-1]
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)\b", last)}
    counts = {"tests": sum(found.values()), "failed": sum(found.values()) - found.get("passed", 0)}
    faults = sum(map(int, re.findall(r"\d+ system calls (\d+) failures", done.stdout)))
    if faults:
        counts["faults"] = faults
    good = done.returncode == 0 and bool(counts["tests"])
    return Result(good, counts, time.monotonic() - began, "" if good else done.stdout[-600:])


def _program(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(REPO / at) for at in ("src", "tests", ""))}
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=REPO,
        env=environment,
        timeout=_LONGEST_S,
        check=False,
    )


def source() -> str:
    """A hash of the tested source. A result for other source is not valid."""
    found = hashlib.sha256()
    for path in sorted([*(REPO / "src").rglob("*.py"), *(REPO / "tests").rglob("*.py")]):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _known(again: bool, tested: str) -> dict[str, Any]:
    if again:
        return {}
    try:
        found = json.loads(DONE.read_text(encoding="utf-8"))
        return dict(found["done"]) if found["source"] == tested else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # none yet, or torn
        return {}


def _keep(done: dict[str, Any], tested: str) -> None:
    DONE.parent.mkdir(exist_ok=True)
    partial = DONE.with_suffix(".part")
    partial.write_text(json.dumps({"source": tested, "done": done}), encoding="utf-8")
    partial.rename(DONE)


def _line(title: str, results: list[Result]) -> str:
    counts: dict[str, int] = {}
    for result in results:
        for word, number in result.counts.items():
            counts[word] = counts.get(word, 0) + number
    shown = ", ".join(f"{number} {word}" for word, number in counts.items())
    verdict = "PASS" if all(result.passed for result in results) else "FAIL"
    said = "".join(f"\n      {result.said}" for result in results if result.said)
    return f"{verdict}  {title:<38} {shown}  ({sum(r.seconds for r in results):.0f} s){said}"


def main() -> int:
    """Return 1 if anything failed."""
    asked = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    asked.add_argument("--kills", type=whole_number(1), default=KILLS)
    asked.add_argument("--again", action="store_true")
    given = asked.parse_args()
    tested = source()  # taken now, because edits during the run are not tested
    done = _known(given.again, tested)
    lines: dict[str, list[Result]] = {}
    for part in parts(given.kills):
        if part.name not in done:
            result = part.run()
            if result.passed:  # failed parts are run again
                done[part.name] = asdict(result)
                _keep(done, tested)
        else:
            result = Result(**done[part.name])
        if lines and part.line not in lines:
            title, results = list(lines.items())[-1]
            print(_line(title, results), flush=True)
        lines.setdefault(part.line, []).append(result)
    title, results = list(lines.items())[-1]
    print(_line(title, results), flush=True)
    return 0 if all(result.passed for results in lines.values() for result in results) else 1


if __name__ == "__main__":
    run_to_end(main)
