"""A process ends when its host ends, whatever runs in the background."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults import manager_at
from support.waiting import WAIT_S

PROGRAM = """
import asyncio
from support.running import long_session
from support.waiting import auntil
from support.engine import manager

made = manager(8000)
begun = []
redact = made.services.redactor(("s", None)).redact_messages

def redacted(messages):
    begun.append(True)
    for _ in range(15):
        found = redact(messages)
    return found

made.services.redactor(("s", None)).redact_messages = redacted

async def host():
    task = asyncio.create_task(made.apreflight("s", long_session(100)))
    await auntil(lambda: bool(begun))

asyncio.run(host())  # which cancels what still runs, in the middle of a long redaction
"""


KILLED = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from support.faults import hard_session, manager_at

made = manager_at(Path(sys.argv[1]))
journal = made.services.journal
flush = journal.flush
# The host is quicker than the journal's own thread.
journal.flush = lambda: threading.current_thread().name == "compact-journal" or flush()
if sys.argv[2] == "async":
    asyncio.run(made.apreflight("s", hard_session()))
else:
    made.preflight("s", hard_session())
os.kill(os.getpid(), signal.SIGKILL)
"""


HANGS = """
import logging, threading
from support.engine import manager, turns

logging.basicConfig()
made = manager()
made.preflight("s", turns(2))
made.flush()
made.archive.append_events = lambda *_: threading.Event().wait()  # a disk that went away
made.preflight("s", turns(3))
"""


LEAVES = """
import sys
from pathlib import Path
from support.engine import turns
from support.faults import manager_at

manager_at(Path(sys.argv[1])).preflight("s", turns(2))
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    tests = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S * 3,
        env={"PYTHONPATH": f"{tests}:{tests.parent / 'src'}", "PATH": "/usr/bin:/bin"},
    )


def test_a_process_ends_cleanly_while_compactions_run() -> None:
    done = run(PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_ends_though_its_archive_hangs() -> None:
    done = run(HANGS)
    assert done.returncode == 0
    assert "the archive did not take the last events within 3 s" in done.stderr


def test_a_process_that_ends_without_closing_writes_its_last_events(tmp_path: Path) -> None:
    done = run(LEAVES, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    told = [event.name for event in manager_at(tmp_path).archive.events("s")]
    assert told == ["compact.token_estimate", "compact.trigger_decision"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_host_that_is_killed_with_its_new_messages_in_hand_has_the_whole_step_in_its_log(
    tmp_path: Path, how: str
) -> None:
    done = run(KILLED, str(tmp_path), how)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    told = [event.name for event in manager_at(tmp_path).archive.events("s")]
    assert {"compact.summary_created", "compact.pruned_messages"} < set(told)
    assert told[-1] == "compact.finished"
