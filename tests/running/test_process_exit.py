"""A process ends when its host ends, whatever runs in the background."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support_running import WAIT_S

PROGRAM = """
import threading
from support_running import Gate, long_session, until
from support_engine import manager

gate = Gate()
made = manager(8000, summarizer=gate)
threading.Thread(target=made.preflight, args=("s", long_session(100)), daemon=True).start()
gate.asked.wait(20)
for n in range(20):
    threading.Thread(target=made.preflight, args=(f"t{n}", long_session(60)), daemon=True).start()
"""


def test_a_process_ends_cleanly_while_compactions_run() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S * 3,
        env={"PYTHONPATH": f"{tests}:{tests.parent / 'src'}", "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (0, "")
