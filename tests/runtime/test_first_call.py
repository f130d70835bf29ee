"""What a process loads for its first call. Most calls make no pass, and wrap no client."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from compact import CompactConfig, CompactManager

with CompactManager(CompactConfig(archive={"adapter": "memory"})) as manager:
    talk = [{"role": "user", "content": "Hello"}]
    manager.preflight("s", talk)
    first = set(sys.modules)
    manager.manual_compact("s", talk)
    print(json.dumps([sorted(first), sorted(sys.modules)]))
"""
READS_AND_WRITES = {
    "compact.engine.ladder",
    "compact.summaries.checking.verification",
    "compact.summaries.ledger.reading",
}


@pytest.fixture(scope="module")
def loaded() -> tuple[set[str], set[str]]:
    """The modules of a process after its first call, and after its first pass."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    first, after_a_pass = json.loads(done.stdout)
    return set(first), set(after_a_pass)


def test_the_first_call_loads_nothing_that_only_a_pass_needs(loaded: tuple[set[str], set[str]]) -> None:
    first, after_a_pass = loaded
    assert not READS_AND_WRITES & first
    assert after_a_pass >= READS_AND_WRITES
    assert not {name for name in first if name.startswith("compact.summaries.ledger.")} - {
        "compact.summaries.ledger.entry"
    }


ON_A_LOOP = """
import asyncio, sys, threading
from compact import CompactConfig, CompactManager

loaded_by = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "compact.engine.ladder":
            loaded_by.append(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Watch())

async def talk():
    manager = CompactManager(CompactConfig(archive={"adapter": "memory"}))
    said = [{"role": "user", "content": "Hello"}]
    await manager.apreflight("s", said)
    await manager.amanual_compact("s", said)
    await manager.aclose()

asyncio.run(talk())
assert loaded_by == [False], loaded_by
"""


def test_an_event_loop_does_not_load_what_a_pass_needs() -> None:
    subprocess.run([sys.executable, "-c", ON_A_LOOP], check=True, timeout=100)


def test_wrappers_of_clients_are_loaded_with_the_first_client(
    loaded: tuple[set[str], set[str]],
) -> None:
    _, after_a_pass = loaded
    assert not {"compact.integrations.clients", "compact.integrations.bedrock", "openai"} & after_a_pass
