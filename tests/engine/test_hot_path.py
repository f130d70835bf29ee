"""How much of compact runs for a preflight that does nothing, and how many files a pass enters.

The limits keep the straight line straight. A new part of the line may raise them, by 5 functions and 2 files, with one line
of reason here.

- 47 functions and 16 files in a call, 88 in a pass: whether a pass is due stands beside the call (`call.py`, `background.py`), and every
  request is weighed and corrected (`economy.py`, `corrections.py`).
- 13 files in a call, 81 in a pass: when a session was called (`cache_state.py`), what opens its economy (`opening.py`), and whether its
  provider writes the summary (`engine/native.py` and what it asks).
- 77 files in a pass: what a provider counted corrects every size in it (`corrections.py`).
- 87 files in a pass: what is a copy of the transcript (`copies.py`), who writes it (`outputs.py`), and what a pass did (`outcome.py`),
  which is known without the ladder; the provider's own compaction (`compaction_blocks.py`, `native.py` twice).
- 50 files in a pass: what a session has learned (`memory.py`) and whose words stand where (`origins.py`) do, too.
- 48 files in a pass: the form of entries (`dialects/forms.py`), entries of other programs (`dialects/foreign.py`) and
  cache marks (`cache_marks.py`) have files of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support.engine import Item, manager, says, user

import compact

SOURCE = str(Path(compact.__file__).parent)
# A pass also weighs the words of a session, chooses lines by them, writes the record, tells remarks from what is pasted, finds what was
# said before, tells two things apart, reads answers and withdrawals, and settles signed thinking: a file each.
MOST_FUNCTIONS, MOST_FILES, MOST_FILES_OF_A_PASS = 47, 16, 88


def entered(work: Callable[[], object]) -> set[tuple[str, str, int]]:
    """The functions of compact that run in this thread: file, name and line."""
    found: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            found.add((code.co_filename, code.co_name, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def talk(count: int) -> list[Item]:
    return [user(f"question {n}") if n % 2 == 0 else says(f"answer {n}") for n in range(count)]


@pytest.mark.parametrize("new", [0, 1, 2], ids=["the same list", "a question more", "a turn more"])
def test_a_warm_preflight_that_does_nothing_is_short(new: int) -> None:
    made, history = manager(), talk(200)
    for count in (200, 201, 202):
        made.preflight("s", history[:count] if count <= 200 else talk(count))
    longer = talk(202 + new)
    made.preflight("s", longer[:202])
    found = entered(lambda: made.preflight("s", longer))
    files = {file for file, _, _ in found}
    assert len(found) <= MOST_FUNCTIONS, sorted(found)
    assert len(files) <= MOST_FILES, sorted(files)


PASS = """
import json, sys, threading
from support.engine import manager, pair, turns, user

files, recording = set(), False

def note(frame, event, _):
    if recording and event == "call":
        files.add(frame.f_code.co_filename)

threading.setprofile(note)  # before any thread of compact is started
sys.setprofile(note)
made = manager(16_000)
items = [*turns(10), *(m for n in range(38) for m in pair(f"c{n}", f"output {n} " * 120)), user("Go on.")]
made.preflight("warm", items)  # rules are compiled and tokenizers read once per process
made.preflight("s", items[:6])
made.flush()
recording = True
made.preflight("s", items)
recording = False
assert made.archive.steps("s") == [1]
print(json.dumps(sorted(files)))
"""


def test_a_pass_enters_few_files() -> None:
    """In a process of its own, so that every thread is watched from its start."""
    tests = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PASS], capture_output=True, text=True, check=True, cwd=tests, env=os.environ
    )
    files = [file for file in json.loads(done.stdout) if file.startswith(SOURCE)]
    assert any(file.endswith("shrink_calls.py") for file in files)
    assert len(files) <= MOST_FILES_OF_A_PASS, (len(files), files)
