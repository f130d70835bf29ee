"""`python -m bench.peers [--tasks a,b] [--peers a,b]`: measure, print the tables, and write docs/BENCHMARKS.md and its plot.

Runs in the environment of the peers (`make bench-peers` makes it). Each tool and task runs in a separate process. A
finished measurement is kept in docs/benchmarks.json with the conditions it was made under, so a run can be stopped and
continued. Measurements of another version of the tool, with another adapter or on another machine are repeated (`--again`
repeats everything). `--show` needs no peer; it prints the known tables and writes nothing.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.peers import NAMES, Peer, cases, peer_named
from bench.peers.basis import basis_of, our_source
from bench.peers.report import page_of, write_report

_DOCS = Path(__file__).resolve().parents[2] / "docs"
_RESULTS = "benchmarks.json"
_TASKS = ("importing", "preflight", "compaction", "outputs")
_ON_CASES = ("outputs", "baselines")
_IMPORT = """
import time
def kilobytes():  # not `resource`: its peak is inherited from the process that started this one
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
before = kilobytes()
wall, cpu = time.perf_counter(), time.process_time()
{statement}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
grown = kilobytes() - before
print(cpu * 1000, wall * 1000, grown / 1024)
"""
_LONGEST_S = 3600
"""Limit for one task of one tool. Exceeding it is a result, and the others are still measured."""
_RANKS = "https://openaipublic.blob.core.windows.net/encodings"
"""Where tiktoken downloads its files from. Their names in its cache are derived from it."""


def main(words: list[str] | None = None) -> int:
    """Measure what is missing, and write the page."""
    given = _asked(words)
    results = known(given.docs / _RESULTS)
    if given.show:
        _print_tables(page_of(results))
        for task, found in sorted(results.get("ours", {}).items()):
            if _is_measurement(found) and found["measured_on"]["tool"] != our_source():
                print(
                    f"compact {task}: kept from {found['measured']}, the source was another (make bench-peers)"
                )
        return 0
    os.environ |= {"DO_NOT_TRACK": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with tempfile.TemporaryDirectory() as folder:
        _give_tokenizers(Path(folder))
        wanted = [(name, task) for task in given.tasks for name in given.peers]
        if ("ours", "outputs") in wanted:
            wanted.append(("ours", "baselines"))
        file = given.cases or Path(folder) / "cases.jsonl"
        for name, task in wanted:
            with closing(peer_named(name)) as peer:
                _measure(name, peer, task, file, results, given)
    _print_tables(write_report(results, given.docs))
    return 0


def _asked(words: list[str] | None) -> argparse.Namespace:
    asked = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    asked.add_argument("--tasks", type=_some_of(_TASKS), default=_TASKS, help=f"some of {', '.join(_TASKS)}")
    asked.add_argument("--peers", type=_some_of(NAMES), default=NAMES, help=f"some of {', '.join(NAMES)}")
    asked.add_argument("--cases", type=Path, help="a file of bench.peers.cases, to use it again")
    asked.add_argument(
        "--every", type=int, default=1, help="of the cases only each so many, to try something"
    )
    asked.add_argument("--again", action="store_true", help="measure what was measured before, too")
    asked.add_argument(
        "--show", action="store_true", help="print the known tables; measure and write nothing"
    )
    asked.add_argument("--docs", type=Path, default=_DOCS, help="the folder of the page and benchmarks.json")
    return asked.parse_args(words)


def _some_of(known_names: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Parse names separated by commas. An empty text selects none, so that only the page is written."""

    def read(word: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in word.split(",") if name.strip())
        unknown = [name for name in names if name not in known_names]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)}: no such name; choose from {', '.join(known_names)}"
            )
        return names

    return read


def known(file: Path) -> dict[str, Any]:
    """The measurements of earlier runs that say under which conditions they were made."""
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {
        name: {key: value for key, value in found.items() if _is_measurement(value) or isinstance(value, str)}
        for name, found in read.items()
    }


def _is_measurement(value: Any) -> bool:
    return isinstance(value, dict) and "measured_on" in value


def _print_tables(page: str) -> None:
    print(page[page.index("## Results") : page.index("## What was called")])


def _give_tokenizers(folder: Path) -> None:
    """Fill the folder where tiktoken looks for its files before it asks the network, so that every tool has them."""
    for encoding in ("cl100k_base", "o200k_base"):
        packed = files("compact.tokens").joinpath("ranks", f"{encoding}.tiktoken.gz").read_bytes()
        name = hashlib.sha1(f"{_RANKS}/{encoding}.tiktoken".encode()).hexdigest()
        (folder / name).write_bytes(gzip.decompress(packed))
    os.environ |= {"TIKTOKEN_CACHE_DIR": str(folder), "CUSTOM_TIKTOKEN_CACHE_DIR": str(folder)}


def _measure(
    name: str, peer: Peer, task: str, file: Path, results: dict[str, Any], given: argparse.Namespace
) -> None:
    kept = results.setdefault(name, {})
    every = max(given.every, peer.EVERY) if task in _ON_CASES else 1
    basis = basis_of(name, peer, every)
    if not given.again and task in kept and kept[task]["measured_on"] == basis:
        print(f"{name} {task}: kept from {kept[task]['measured']}")
        return
    load = os.getloadavg()[0]
    print(f"{name} {task} ...", flush=True)
    if task in _ON_CASES and not file.exists():
        print(cases.write(file), "cases", flush=True)
    found = _importing(name) if task == "importing" else _run(name, task, file, every)
    kept["title"], kept["version"] = peer.TITLE, version(peer.DISTRIBUTION)
    kept["called"], kept["better"], kept["import"] = peer.CALLED, peer.BETTER, peer.IMPORT
    kept[task] = {
        **found,
        "load": round(max(load, os.getloadavg()[0]), 1),
        "measured": datetime.now(UTC).date().isoformat(),
        "measured_on": basis,
    }
    _write(results, given.docs / _RESULTS)


def _write(results: dict[str, Any], file: Path) -> None:
    """Write the file completely or not at all, because a run may be stopped at any time."""
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(file)


def _run(name: str, task: str, file: Path, every: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        # No package may keep files in the home folder or send telemetry.
        environment = {**os.environ, "HOME": home}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "bench.peers.tasks", name, task, str(file), str(every)],
                stdout=subprocess.PIPE,
                env=environment,
                timeout=_LONGEST_S,
                check=True,
            )
        except subprocess.TimeoutExpired:
            return {"too_slow": True}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _importing(name: str) -> dict[str, Any]:
    program = _IMPORT.format(statement=peer_named(name).IMPORT)
    runs = []
    for _ in range(4):  # the first one has no compiled files and a cold disk
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        runs.append([float(word) for word in done.stdout.split()[-3:]])
    cpu, wall, grown = (min(column) for column in zip(*runs[1:], strict=True))
    return {"cpu_ms": cpu, "wall_ms": wall, "memory_mb": grown}


if __name__ == "__main__":
    sys.exit(main())
