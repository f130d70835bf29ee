"""Processes that are killed in the middle of a compaction; run as a program, so that forking is cheap and safe.

    python tests/support/running_kill.py ROOT POINT...

Each point is an effect of the engine, by kind and number. One process is killed before it is served, another one after.
Prints what it found as one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from support.faults import Watched, assert_whole, hard_session, manager_at
from support.waiting import until

from compact.engine.effects import Effect
from compact.runtime.run import Run

QUIET = {"MainThread", "compact-idle"}


def die(run: Run, effect: Effect) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def child(root: Path, point: str, when: str) -> None:
    made = manager_at(root)
    Watched(made, point, **{when: die})
    made.preflight("s", hard_session())


def main(root: Path, points: list[str]) -> dict[str, Any]:
    """Every point, before and after."""
    dead, wrong = 0, []
    for point in points:
        for when in ("before", "after"):
            place = root / f"{point}-{when}"
            until(lambda: all(t.name in QUIET for t in threading.enumerate()))
            pid = os.fork()
            if pid == 0:
                try:
                    child(place, point, when)
                finally:
                    os._exit(1)
            if os.waitpid(pid, 0)[1] == signal.SIGKILL:
                dead += 1
            try:
                assert_whole(place, hard_session())
            except Exception:
                wrong.append(f"{point} {when}: {traceback.format_exc()[-600:]}")
    return {"killed": dead, "wrong": wrong}


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1]), sys.argv[2:]), sys.stdout)
