"""`python -m bench.peers [--tasks a,b] [--peers a,b]`: measures, prints the tables, and writes docs/BENCHMARKS.md and its plot.

Runs in the environment of the peers (`make bench-peers` makes it). Each tool and task has a process of its own; a finished
measurement is kept in docs/benchmarks.json, so a run can be stopped and continued (`--again` measures anew).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.peers import NAMES, cases, peer_named
from bench.peers.report import write_report

_DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = _DOCS / "benchmarks.json"
_TASKS = ("importing", "preflight", "compaction", "outputs")
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
_LONGEST_S = 3 * 3600
_RANKS = "https://openaipublic.blob.core.windows.net/encodings"
"""Where tiktoken says its files are from; their names in its cache are made of it."""


def main() -> int:
    """Measure what is missing, and write the page."""
    asked = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    asked.add_argument("--tasks", default=",".join(_TASKS))
    asked.add_argument("--peers", default=",".join(NAMES))
    asked.add_argument("--cases", type=Path, help="a file of bench.peers.cases, to use it again")
    asked.add_argument("--every", type=int, default=1, help="of the cases only each so many, for a slow tool")
    asked.add_argument("--again", action="store_true", help="measure what was measured before, too")
    given = asked.parse_args()
    os.environ |= {"DO_NOT_TRACK": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        _give_tokenizers(Path(folder))
        file = given.cases or Path(folder) / "cases.jsonl"
        wanted = [
            (name, task) for task in given.tasks.split(",") for name in filter(None, given.peers.split(","))
        ]
        if "outputs" in given.tasks:
            wanted.append(("ours", "baselines"))
            if not file.exists():
                print(cases.write(file), "cases")
        file = _thinned(file, given.every, Path(folder)) if file.exists() else file
        for name, task in wanted:
            if given.again or task not in results.get(name, {}):
                _measure(name, task, file, results)
    page = write_report(results, _DOCS)
    print(page[page.index("## Results") : page.index("## What was called")])
    return 0


def _give_tokenizers(folder: Path) -> None:
    """Where tiktoken looks for its files before it asks the network, so that no tool has to do without them."""
    for encoding in ("cl100k_base", "o200k_base"):
        packed = files("compact.tokens").joinpath("ranks", f"{encoding}.tiktoken.gz").read_bytes()
        name = hashlib.sha1(f"{_RANKS}/{encoding}.tiktoken".encode()).hexdigest()
        (folder / name).write_bytes(gzip.decompress(packed))
    os.environ |= {"TIKTOKEN_CACHE_DIR": str(folder), "CUSTOM_TIKTOKEN_CACHE_DIR": str(folder)}


def _thinned(file: Path, every: int, folder: Path) -> Path:
    if every == 1:
        return file
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    fewer = folder / "fewer.jsonl"
    fewer.write_text("".join(lines[::every]), encoding="utf-8")
    return fewer


def _measure(name: str, task: str, file: Path, results: dict[str, Any]) -> None:
    load = os.getloadavg()[0]
    print(f"{name} {task} ...", flush=True)
    found = _importing(name) if task == "importing" else _run(name, task, file)
    peer = peer_named(name)
    kept = results.setdefault(name, {})
    kept["title"], kept["version"] = peer.TITLE, version(peer.DISTRIBUTION)
    kept["called"], kept["better"] = peer.CALLED, peer.BETTER
    kept[task] = {
        **found,
        "load": round(max(load, os.getloadavg()[0]), 1),
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    peer.close()


def _run(name: str, task: str, file: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        # A package that keeps files in the home folder, or reports home, shall do neither.
        environment = {**os.environ, "HOME": home}
        done = subprocess.run(
            [sys.executable, "-m", "bench.peers.tasks", name, task, str(file)],
            stdout=subprocess.PIPE,
            env=environment,
            timeout=_LONGEST_S,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _importing(name: str) -> dict[str, Any]:
    program = _IMPORT.format(statement=peer_named(name).IMPORT)
    runs = []
    for _ in range(4):  # the first one finds no compiled files and a cold disk
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        runs.append([float(word) for word in done.stdout.split()[-3:]])
    cpu, wall, grown = (min(column) for column in zip(*runs[1:], strict=True))
    return {"cpu_ms": cpu, "wall_ms": wall, "memory_mb": grown}


if __name__ == "__main__":
    sys.exit(main())
