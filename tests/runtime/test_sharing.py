"""Callers of one session share one compaction; cancelling one breaks no other; sessions do not wait for each other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from support.engine import assert_good, events, manager, says, summary_of, user
from support.running import GOOD, Caller, Gate, long_session, watchers_of
from support.waiting import WAIT_S, auntil, until

from compact.checks import violations
from compact.engine.effects import Effect
from compact.runtime.run import Run
from compact.summaries.request import SummaryRequest

WINDOW = 8000


def test_a_second_caller_waits_and_is_seen_through_the_new_state() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()
    later = [*items, says("I am."), user("And now?")]
    first = Caller(lambda: made.preflight("s", items))
    assert gate.asked.wait(WAIT_S)
    second = Caller(lambda: made.preflight("s", later))
    until(lambda: watchers_of(made) == 2)
    assert second.is_alive(), "never done while a compaction runs"
    gate.let_go.set()
    out, newer = first.given(), second.given()
    assert len(gate.requests) == 1
    assert newer == [*out, *later[len(items) :]]
    assert newer[-1] is later[-1]
    assert made.archive.steps("s") == [1]


def test_threads_and_tasks_of_one_session_share_one_compaction() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()

    async def tasks() -> list[Any]:
        return list(await asyncio.gather(*(made.apreflight("s", list(items)) for _ in range(4))))

    threads = [Caller(lambda: made.preflight("s", list(items))) for _ in range(4)]
    loops = [Caller(lambda: asyncio.run(tasks())) for _ in range(2)]
    assert gate.asked.wait(WAIT_S)
    until(lambda: watchers_of(made) == 12)
    gate.let_go.set()
    results = [caller.given() for caller in threads]
    results += [result for caller in loops for result in caller.given()]
    assert len(gate.requests) == 1
    assert len(results) == 12
    assert all(result == results[0] for result in results)
    assert len(events(made, name="started")) == len(events(made, name="finished")) == 1


def test_sessions_run_side_by_side() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    slow = Caller(lambda: made.preflight("slow", long_session()))
    assert gate.asked.wait(WAIT_S)
    other = Caller(lambda: made.preflight("other", long_session()))
    until(lambda: len(gate.requests) == 2)
    small = [user("hi")]
    assert made.preflight("small", small) is small
    assert slow.is_alive()
    assert other.is_alive()
    gate.let_go.set()
    assert_good(made, [], slow.given())
    assert_good(made, [], other.given())


def test_two_compactions_by_hand_of_one_list_are_one() -> None:
    gate = Gate()
    made = manager(100_000, summarizer=gate)
    items = long_session()
    callers = [Caller(lambda: made.manual_compact("s", items)) for _ in range(3)]
    assert gate.asked.wait(WAIT_S)
    until(lambda: watchers_of(made) == 3)
    gate.let_go.set()
    first, *others = [caller.given() for caller in callers]
    assert len(gate.requests) == 1
    assert all(other == first for other in others)


@pytest.mark.parametrize("leader_leaves", [True, False])
def test_cancelling_one_task_breaks_no_other(leader_leaves: bool) -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()

    async def both() -> Any:
        first = asyncio.create_task(made.apreflight("s", items))
        await auntil(lambda: gate.asked.is_set())
        second = asyncio.create_task(made.apreflight("s", items))
        await auntil(lambda: watchers_of(made) == 2)
        leaving, staying = (first, second) if leader_leaves else (second, first)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        gate.let_go.set()
        return await staying

    out = asyncio.run(both())
    assert summary_of(out)
    assert len(gate.requests) == 1
    assert made.archive.steps("s") == [1]


def test_a_compaction_that_nobody_waits_for_is_abandoned_and_the_next_call_starts_at_once() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()

    async def cancelled() -> None:
        task = asyncio.create_task(made.apreflight("s", items))
        await auntil(lambda: gate.asked.is_set())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert made.archive.steps("s") == []
    gate.asked.clear()
    again = Caller(lambda: made.preflight("s", items))
    assert gate.asked.wait(WAIT_S), "the abandoned one blocks nobody"
    gate.let_go.set()
    assert summary_of(again.given())
    assert made.archive.steps("s") == [1]
    assert made.archive.verify() == []


def test_a_coroutine_that_nobody_waits_for_is_cancelled() -> None:
    asked, ended = threading.Event(), list[str]()

    async def summarize(request: SummaryRequest) -> str:
        asked.set()
        try:
            await asyncio.sleep(WAIT_S)
        finally:
            ended.append(threading.current_thread().name)
        return GOOD

    made = manager(WINDOW, summarizer=summarize)

    async def cancelled() -> None:
        task = asyncio.create_task(made.apreflight("s", long_session()))
        await auntil(asked.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await auntil(lambda: bool(ended))

    asyncio.run(cancelled())
    assert ended == [threading.current_thread().name], "it ran on the host's own loop"


def test_messages_added_to_the_very_list_that_is_compacted_are_in_the_result() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()

    async def host() -> tuple[Any, Any]:
        task = asyncio.create_task(made.apreflight("s", items))
        await auntil(lambda: gate.asked.is_set())
        items.extend([says("Something arrived."), user("Did you see it?")])
        gate.let_go.set()
        return await task, await made.apreflight("s", items)

    out, again = asyncio.run(host())
    assert out[-2:] == items[-2:]
    assert out[-1] is items[-1]
    assert violations(out) == []
    assert again == out
    assert len(gate.requests) == 1


def test_a_list_that_grew_while_nothing_had_to_be_done_is_still_the_same_list() -> None:
    made = manager(100_000)
    items = [user("hi")]
    serve = made.services.serve

    def serve_growing(run: Run, effect: Effect) -> Any:
        if len(items) == 1:
            items.append(says("hello"))
        return serve(run, effect)

    made.services.serve = serve_growing  # type: ignore[method-assign]
    assert made.preflight("s", items) is items
    made.services.serve = serve  # type: ignore[method-assign]
    last = events(made, name="token_estimate")[-1]
    assert last["properties"]["t_est"] == made.estimate(items).total, "what arrived was counted too"


def test_a_list_that_is_rewritten_meanwhile_is_answered_as_it_was() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()
    before = list(items)
    caller = Caller(lambda: made.preflight("s", items))
    assert gate.asked.wait(WAIT_S)
    items.clear()
    gate.let_go.set()
    assert_good(made, [before[0]], caller.given())


def test_an_error_of_one_caller_is_not_an_error_of_another() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = long_session()
    first = Caller(lambda: made.preflight("s", items))
    assert gate.asked.wait(WAIT_S)
    wrong = Caller(lambda: made.preflight("s", [*items, 5]))
    until(lambda: watchers_of(made) == 2)
    gate.let_go.set()
    assert summary_of(first.given())
    with pytest.raises(Exception, match="not a"):
        wrong.given()
    assert made.preflight("s", items) == first.given()
