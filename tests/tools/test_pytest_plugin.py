"""The pytest plugin, in test runs of its own: what a user's suite sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.engine import pair, says, user
from support.replay import long_session

from compact.errors import ConfigError, MessageError
from compact.tools.pytest_plugin import StableSession, assert_stable, compact_session

__all__ = ["compact_session"]  # the plugin brings it where it is installed; here it is named

SYSTEM = {"role": "system", "content": "Obey."}


def test_a_stable_context_passes() -> None:
    talk = [SYSTEM, user("hi"), *pair("c", "out"), says("done")]
    assert_stable(talk, budget=100)
    assert_stable(talk, budget=100, source=talk, pii="standard")
    assert_stable([{"kind": "system", "content": "Obey."}, {"kind": "message", "content": "hi"}], budget=50)
    reminder = {"role": "system", "content": "Remember."}
    assert_stable([SYSTEM, user("hi"), reminder, user("go")])


def test_everything_that_is_wrong_is_said_at_once() -> None:
    broken = [user("call 5550100 " + "word " * 200), SYSTEM, pair("c", "out")[1]]
    with pytest.raises(AssertionError) as caught:
        assert_stable(
            broken, budget=100, pii="digits", source=[SYSTEM, {"role": "system", "content": "Also."}]
        )
    words = str(caught.value)
    for problem in (
        "orphan_result",
        "more than the budget of 100",
        "personal data",
        "stands behind",
        "pushed out",
    ):
        assert problem in words


@pytest.mark.parametrize("given", [None, "hi", 5, {"artifacts": None}])
def test_what_is_no_list_is_refused_by_name(given: object) -> None:
    with pytest.raises(MessageError, match="list"):
        assert_stable(given)


@pytest.mark.parametrize("budget", [0, -1, "8k", True])
def test_a_budget_that_is_none_is_refused_by_name(budget: Any) -> None:
    with pytest.raises(ConfigError, match="budget must be a whole number of tokens > 0, got"):
        assert_stable([user("hi")], budget)


def test_tools_and_a_system_prompt_beside_the_list_count() -> None:
    talk = [user("hi")]
    assert_stable(talk, budget=20)
    with pytest.raises(AssertionError, match="more than the budget of 20"):
        assert_stable(talk, budget=20, system="word " * 50)
    with pytest.raises(AssertionError, match="more than the budget of 20"):
        assert_stable(talk, budget=20, tools=[{"name": "f", "description": "word " * 50}])


def test_a_session_compacts_and_is_checked(compact_session: StableSession) -> None:
    compact_session.configure(max_context_tokens=8_000)
    talk = long_session()
    sent = compact_session.preflight(talk)
    assert len(sent) <= len(talk)
    assert compact_session.steps == 1
    assert compact_session.events[0]["started_at"].startswith("2026-01-01T")
    with pytest.raises(RuntimeError, match="before the first"):
        compact_session.configure(model="gpt-4o")


def test_two_sessions_give_the_same_events() -> None:
    runs = []
    for _ in range(2):
        session = StableSession("s").configure(max_context_tokens=8_000)
        session.preflight(long_session())
        events = session.events
        for event in events:
            event["properties"].pop("duration_ms", None)
        runs.append(events)
        session.close()
    assert runs[0] == runs[1]


SUITE = """
def test_one(compact_session):
    assert compact_session.preflight([{"role": "user", "content": "hi"}])

def test_two():
    from compact.tools.pytest_plugin import assert_stable
    assert_stable([{"role": "user", "content": "hi " * 100}], budget=10)
"""


def run_suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_agent.py").write_text(SUITE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        *options,
        str(folder),
    ]
    env = {**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, check=False)


def test_a_users_suite_has_the_fixture_and_reads_the_failure(tmp_path: Path) -> None:
    done = run_suite(tmp_path, *plugin_options())
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "the context is not stable:" in done.stdout
    assert "more than the budget of 10" in done.stdout
    assert "pytest_plugin.py" not in done.stdout.replace("compact.tools.pytest_plugin", ""), (
        "its own frames are hidden"
    )


def test_loading_the_plugin_imports_nothing_of_compact_but_itself(tmp_path: Path) -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import compact.tools.pytest_plugin; "
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip("[]\n").replace("'", "").split(", "))
    assert {name for name in loaded if name.startswith("compact")} == {
        "compact",
        "compact.tools",
        "compact.tools.pytest_plugin",
    }
    assert all(name.partition(".")[0] in sys.stdlib_module_names | {"compact"} for name in loaded), loaded


def plugin_options() -> list[str]:
    """The plugin is found by its entry point; in a folder that was not installed it is named."""
    from importlib.metadata import entry_points

    known = [point.value for point in entry_points(group="pytest11")]
    return [] if "compact.tools.pytest_plugin" in known else ["-p", "compact.tools.pytest_plugin"]
