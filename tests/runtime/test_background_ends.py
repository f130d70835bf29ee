"""However a pass in the background ends, the session is as it was or as the step left it, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.background import (
    WINDOW,
    await_ended,
    await_ready,
    decisions,
    grown,
    outcomes,
    reasons_of_drops,
    reply_to,
)
from support.engine import Clock, Item, assert_good, events, manager, summary_of, user
from support.faults import Watched, points_of
from support.running import GOOD, Caller, Gate
from support.waiting import WAIT_S, auntil, until

from compact import CompactConfig, CompactManager
from compact.errors import ArchiveError

TESTS = Path(__file__).parents[1]


def begun(gate: Gate, **settings: Any) -> tuple[CompactManager, list[Item]]:
    """A manager with a session whose pass in the background waits for its summary."""
    made = manager(WINDOW, summarizer=gate, **settings)
    items = grown(made)
    assert made.preflight("s", items) is items
    assert gate.asked.wait(WAIT_S)
    return made, items


def assert_nothing_left(made: CompactManager, steps: list[int]) -> None:
    """No attempt, no gap, no number that nobody uses."""
    until(lambda: not any(thread.name == "compact-background" for thread in threading.enumerate()))
    assert made.archive.steps("s") == steps
    assert [blob.key for blob in made.archive.store.blobs("s") if blob.hidden] == []
    assert made.archive.verify() == []


def edited(items: list[Item]) -> list[Item]:
    return [items[0], user("Something else."), *items[2:]]


def rewound(items: list[Item]) -> list[Item]:
    return [*items[:5], user("Go back to this.")]


def branched(items: list[Item]) -> list[Item]:
    return [user("A new task."), *items[3:]]


@pytest.mark.parametrize("change", [edited, rewound, branched])
def test_a_result_for_a_list_that_was_changed_is_dropped(
    change: Callable[[list[Item]], list[Item]],
) -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    changed = change(items)
    assert made.preflight("s", changed) is changed
    found = events(made)
    assert outcomes(found) == ["dropped"]
    assert reasons_of_drops(found) == ["the list was edited, branched or rewound"]
    assert_nothing_left(made, [])


@pytest.mark.parametrize("when", ["while it is made", "when it is ready"])
def test_a_manual_compaction_comes_first(when: str) -> None:
    gate = Gate()
    made, items = begun(gate)
    if when == "when it is ready":
        gate.let_go.set()
        await_ready(made)
    caller = Caller(lambda: made.manual_compact("s", items))
    until(lambda: len(gate.requests) == 2)
    gate.let_go.set()
    out = caller.given()
    assert summary_of(out)
    await_ended(made)
    assert made.preflight("s", reply_to(out)) == reply_to(out)
    found = events(made)
    assert sorted(outcomes(found)) == ["compacted", "dropped"]
    assert reasons_of_drops(found) == ["another pass came first"]
    assert_nothing_left(made, [1])


def test_a_pass_that_an_overflow_forces_comes_first() -> None:
    class TooLong(Exception):
        status_code = 400

    let_go, asked = threading.Event(), list[Any]()

    def summarize(request: Any) -> str:
        asked.append(request)
        assert len(asked) > 1 or let_go.wait(WAIT_S)
        return GOOD

    made = manager(WINDOW, summarizer=summarize)
    items = grown(made)
    made.preflight("s", items)
    until(lambda: bool(asked))
    refused: list[int] = []

    def send(messages: list[Item]) -> str:
        if not refused:
            refused.append(len(messages))
            raise TooLong("This model's maximum context length is 5000 tokens, you sent 6400 tokens.")
        return "fine"

    assert made.call("s", items, send) == "fine"
    let_go.set()
    assert reasons_of_drops(events(made)) == ["another pass came first"]
    assert_good(made, items, made.last_request("s") or [])
    assert_nothing_left(made, [1])


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_reset_drops_it(runs_async: bool) -> None:
    gate = Gate()
    made, items = begun(gate)
    if runs_async:
        asyncio.run(made.areset("s"))
    else:
        made.reset("s")
    assert reasons_of_drops(events(made)) == ["the session was reset"]
    gate.let_go.set()
    assert_nothing_left(made, [])
    assert made.preflight("s", items[:4]) is not None


@pytest.mark.parametrize("runs_async", [False, True])
def test_closing_the_manager_drops_what_is_made_and_what_is_ready(runs_async: bool) -> None:
    gate = Gate()
    made, items = begun(gate)
    if runs_async:
        asyncio.run(made.aclose())
    else:
        made.close()
    assert reasons_of_drops(events(made)) == ["the manager was closed"]
    gate.let_go.set()
    assert_nothing_left(made, [])
    assert made.preflight("s", items) is items, "it still counts, and begins no pass any more"
    assert decisions(events(made))[-1] == ("below", False)


def test_a_pass_out_of_time_is_fenced_and_its_late_result_is_discarded() -> None:
    gate = Gate()
    made, items = begun(gate, policy={"timeout_s": 0.05})
    background = made.sessions.get("s").background
    assert background is not None
    until(lambda: background.is_late)
    items = reply_to(items)
    assert made.preflight("s", items) is items
    gate.let_go.set()
    found = events(made)
    assert outcomes(found) == ["timeout"]
    assert [event["properties"]["error_type"] for event in found if event["name"] == "compact.error"] == [
        "TimeoutError"
    ]
    assert_nothing_left(made, [])


def test_a_call_over_the_limit_does_not_wait_longer_than_the_pass_may_take() -> None:
    made = manager(WINDOW, summarizer=(gate := Gate()), policy={"timeout_s": 1.5})
    items = grown(made)
    made.preflight("s", items)
    assert gate.asked.wait(WAIT_S)
    over = grown(made, 6_600, first=items)
    out = made.preflight("s", over)
    assert_good(made, over, out)
    gate.let_go.set()
    assert "timeout" in outcomes(events(made))
    assert_nothing_left(made, [1])


def test_a_summarizer_that_fails_leads_to_the_same_summary_as_in_a_call_and_opens_the_breaker() -> None:
    def fail(_: Any) -> str:
        raise ConnectionError("the model is away")

    made = manager(WINDOW, summarizer=fail, recovery={"breaker_failures": 1})
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    out = made.preflight("s", reply_to(items))
    twin = manager(
        WINDOW,
        summarizer=fail,
        recovery={"breaker_failures": 1},
        policy={"background_pct": None, "trigger_pct": 0.75},
    )
    assert out == [*twin.preflight("s", items), *reply_to(items)[len(items) :]]
    codes = [event["properties"]["code"] for event in events(made, name="warning")]
    assert "breaker_open" in codes


def test_an_archive_that_fails_leaves_the_session_as_it_was_and_the_next_try_comes_when_it_has_grown() -> (
    None
):
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    begin = made.archive.begin

    def refuse(*_: Any, **__: Any) -> Any:
        raise ArchiveError("no space left")

    made.archive.begin = refuse  # type: ignore[method-assign]
    made.preflight("s", items)
    await_ended(made)
    items = reply_to(items)
    assert made.preflight("s", items) is items
    found = events(made)
    assert outcomes(found) == ["failed"]
    assert decisions(found) == [("background_started", True), ("ineffective", False)]
    made.archive.begin = begin  # type: ignore[method-assign]
    over = grown(made, 6_600, first=items)
    assert_good(made, over, made.preflight("s", over))
    assert_nothing_left(made, [1])


def test_a_swap_that_the_archive_refuses_leaves_the_list_as_it_is() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    begin = made.archive.begin

    def refuse(*_: Any, **__: Any) -> Any:
        raise ArchiveError("no space left")

    made.archive.begin = refuse  # type: ignore[method-assign]
    later = reply_to(items)
    assert made.preflight("s", later) is later
    made.archive.begin = begin  # type: ignore[method-assign]
    assert outcomes(events(made)) == ["failed"]
    assert_nothing_left(made, [])


def test_a_fault_at_any_effect_of_a_swap_leaves_the_old_state_or_the_new_one() -> None:
    def swapped(point: str = "") -> tuple[CompactManager, list[Item], Watched, Any]:
        made = manager(WINDOW, summarizer=lambda _: GOOD)
        items = grown(made)
        made.preflight("s", items)
        await_ready(made)

        def fail(*_: Any) -> None:
            raise ArchiveError("it broke")

        later = reply_to(items)
        watched = Watched(made, point, before=fail if point else None)
        return made, later, watched, made.preflight("s", later)

    _, _, watched, expected = swapped()
    for point in points_of(watched):
        if not point.startswith("compact."):
            made, later, struck, out = swapped(point)
            assert struck.struck, point
            assert out in (later, expected), point
            assert_nothing_left(made, [] if out == later else [1])
            assert_good(made, later, made.preflight("s", reply_to(list(out))))


def test_a_session_that_is_forgotten_keeps_its_pass_until_there_are_very_many() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate, policy={"sessions_in_memory": 1})
    items = grown(made)
    gate.let_go.set()
    for number in range(6):
        made.preflight(f"s{number}", items)
        await_ready(made, f"s{number}")
    assert len(made.sessions) == 4
    assert reasons_of_drops(events(made, "s0")) == ["the session was forgotten"]
    assert summary_of(made.preflight("s5", reply_to(items)))


def test_a_pass_whose_event_loop_ended_is_dropped() -> None:
    asked = threading.Event()

    async def summarize(_: Any) -> str:
        asked.set()
        await asyncio.sleep(WAIT_S)
        return GOOD

    made = manager(WINDOW, summarizer=summarize)
    items = grown(made)

    async def host() -> Any:
        found = await made.apreflight("s", items)
        await auntil(asked.is_set)
        return found

    assert asyncio.run(host()) is items
    await_ended(made)
    assert reasons_of_drops(events(made)) == ["the event loop of its summarizer ended"]
    assert not [event for event in events(made) if event["name"] == "compact.error"]
    assert_nothing_left(made, [])


PROGRAM = """
import sys, threading
from support.background import WINDOW, grown
from support.engine import manager
from support.faults import manager_at
from support.waiting import until

asked = threading.Event()

def summarize(request):
    asked.set()
    threading.Event().wait()  # a model that never answers

from compact import CompactConfig, CompactManager
made = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, archive={"root": sys.argv[1]}), summarizer=summarize)
items = grown(made)
assert made.preflight("s", items) is items
assert asked.wait(20)
"""

FORK = """
import os, sys, threading
from support.background import WINDOW, await_ready, grown, is_ready, reply_to
from support.engine import summary_of
from support.running import Gate
from compact import CompactConfig, CompactManager

gate = Gate()
made = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, archive={"root": sys.argv[1]}), summarizer=gate)
items = grown(made)
assert made.preflight("s", items) is items
assert gate.asked.wait(20)
made.flush()
child = os.fork()
if not child:
    gate.let_go.set()
    over = grown(made, 6_600, first=items)
    assert summary_of(made.preflight("s", over))  # it does not wait for a thread that is not there
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
gate.let_go.set()
await_ready(made)
out = made.preflight("s", reply_to(items))
assert made.archive.steps("s") == [1]
made.close()
"""


def run(program: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(root)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S * 3,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
    )


def test_a_process_ends_though_a_model_never_answers(tmp_path: Path) -> None:
    done = run(PROGRAM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    made = CompactManager(CompactConfig(model="gpt-4o", archive={"root": str(tmp_path)}), clock=Clock())
    assert reasons_of_drops(events(made)) == ["the process ends"]
    assert_nothing_left(made, [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_does_not_wait_for_a_pass_of_its_parent(tmp_path: Path) -> None:
    done = run(FORK, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
