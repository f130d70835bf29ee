"""A process ends when its host ends, whatever runs in the background."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support_running import WAIT_S

PROGRAM = """
import asyncio
from support_running import auntil, long_session
from support_engine import manager

made = manager(8000)
begun = []
redact = made._outside.redactor("s").redact_messages

def redacted(messages):
    begun.append(True)
    for _ in range(15):
        found = redact(messages)
    return found

made._outside.redactor("s").redact_messages = redacted

async def host():
    task = asyncio.create_task(made.apreflight("s", long_session(100)))
    await auntil(lambda: bool(begun))

asyncio.run(host())  # which cancels what still runs, in the middle of a long redaction
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
