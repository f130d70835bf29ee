"""A pass that asks a model is made while the session goes on. No call that fits waits for it, and nothing differs afterwards."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest
from support.background import (
    WINDOW,
    await_ended,
    await_ready,
    blocking,
    decisions,
    grown,
    is_ready,
    outcomes,
    reasons_of_drops,
    reply_to,
)
from support.engine import Clock, assert_good, events, manager, pair, summary_of, turns, user
from support.running import GOOD, Caller, Gate, long_session
from support.waiting import WAIT_S, auntil, until

from compact import CompactConfig, CompactManager
from compact.checks import violations


def test_no_call_that_fits_waits_for_a_summary() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = grown(made)
    assert made.preflight("s", items) is items
    assert gate.asked.wait(WAIT_S)
    for _ in range(3):
        items = reply_to(items)
        assert made.preflight("s", items) is items
    assert made.archive.steps("s") == []
    gate.let_go.set()
    await_ready(made)
    assert made.archive.steps("s") == [], "the session is as it was until a call swaps the result in"
    out = made.preflight("s", reply_to(items))
    assert summary_of(out)
    assert made.archive.steps("s") == [1]
    assert made.archive.verify() == []
    assert len(gate.requests) == 1


@pytest.mark.parametrize("keeps", [True, False], ids=["host that keeps", "host with the full history"])
def test_the_result_is_that_of_a_pass_that_blocks_with_what_arrived_behind_it(keeps: bool) -> None:
    made, twin = manager(WINDOW, summarizer=lambda _: GOOD), blocking()
    items = grown(made)
    expected = list(twin.preflight("s", items))
    made.preflight("s", items)
    await_ready(made)
    later = [*reply_to(items), *pair("late", "what the tool said")]
    out = made.preflight("s", later)
    assert out == [*expected, *later[len(items) :]]
    assert all(any(message is own for own in later) for message in out if message["role"] != "assistant")
    for number in range(2):
        host = reply_to(list(out) if keeps else later, f"Reply {number}.")
        assert made.preflight("s", host) == [*out, *host[-2:]], "what was sent before stays byte for byte"
        out, later = [*out, *host[-2:]], [*later, *host[-2:]]


def test_a_new_process_goes_on_from_the_moment_of_the_swap() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    later = reply_to(items)
    out = list(made.preflight("s", later))
    state = made.archive.step("s", 1).state
    assert (state["made_from"], state["replaced"]) == (len(items), len(later))
    assert made.archive.restore("s", 1).messages == later
    for host in (reply_to(later), reply_to(out)):
        other = CompactManager(made.config, archive=made.archive, clock=Clock(), summarizer=lambda _: GOOD)
        assert other.preflight("s", copy.deepcopy(host)) == [*out, *host[-2:]]


def test_the_next_pass_takes_a_swapped_summary_in_and_hears_what_arrived_meanwhile() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    items = reply_to(items, question="Always answer in French.")
    items = list(made.preflight("s", items))
    assert "Always answer in French." in [entry.text for entry in made.ledger("s")]
    items = list(made.manual_compact("s", [*items, *turns(8)]))
    assert summary_of(items).startswith("<COMPACT-SUMMARY v2>")
    assert "Always answer in French." in summary_of(items)


def test_what_the_user_pinned_or_took_back_meanwhile_stands_as_it_is_at_the_swap() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    first = [user("Always use tabs."), *long_session(6)]
    pinned = made.pin("s", "Never push to main.")
    items = grown(made, first=first)
    made.preflight("s", items)
    assert gate.asked.wait(WAIT_S)
    made.unpin("s", pinned.id)
    made.pin("s", "Keep the changelog.")
    gate.let_go.set()
    await_ready(made)
    text = summary_of(made.preflight("s", reply_to(items)))
    assert "Keep the changelog." in text
    assert "Never push to main." not in text


def test_a_session_that_is_first_seen_at_the_trigger_is_compacted_in_that_call() -> None:
    made = manager(20_000, summarizer=lambda _: GOOD)
    items = grown(made, 17_100, first=turns(30))
    assert summary_of(made.preflight("s", items))
    assert decisions(events(made)) == [("trigger", True)]


def test_a_session_seen_before_that_jumps_over_the_trigger_does_not_wait() -> None:
    gate = Gate()
    made = manager(20_000, summarizer=gate)
    items = turns(2)
    made.preflight("s", items)
    items = grown(made, 17_100, first=[*items, *turns(30)])
    assert made.preflight("s", items) is items
    items = reply_to(items)
    assert made.preflight("s", items) is items
    assert decisions(events(made)) == [
        ("below", False),
        ("background_started", True),
        ("trigger", False),
    ], "a pass is due, and one is on its way"
    gate.let_go.set()
    await_ready(made)
    assert summary_of(made.preflight("s", items))


def test_a_call_over_the_limit_waits_for_the_pass_that_is_under_way() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = grown(made)
    made.preflight("s", items)
    assert gate.asked.wait(WAIT_S)
    over = grown(made, 6_600, first=items)
    caller = Caller(lambda: made.preflight("s", over))
    until(lambda: made.sessions.get("s").lane.run is not None)
    assert caller.is_alive()
    gate.let_go.set()
    out = caller.given()
    assert_good(made, over, out)
    assert len(gate.requests) == 1, "one summary serves both"
    assert out[-1] is over[-1]


def test_what_grew_too_large_meanwhile_is_compacted_in_the_call() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = grown(made)
    made.preflight("s", items)
    assert gate.asked.wait(WAIT_S)
    gate.let_go.set()
    await_ready(made)
    over = [*items, *turns(30)]
    assert_good(made, over, made.preflight("s", over))
    found = events(made)
    assert outcomes(found) == ["dropped", "compacted"]
    assert reasons_of_drops(found) == ["with what arrived meanwhile it does not fit the budget"]
    assert made.archive.steps("s") == [1]


def test_without_a_model_passes_are_made_in_the_call() -> None:
    made = manager(WINDOW)
    items = grown(made)
    assert made.preflight("s", items) is items
    assert made.sessions.get("s").background is None
    assert decisions(events(made)) == [("below", False)]


@pytest.mark.parametrize("name", ["layered", "selective", "progressive"])
def test_presets_make_no_pass_in_the_background(name: str) -> None:
    assert CompactConfig.preset(name).policy.background_pct is None
    assert CompactConfig().policy.background_pct == 0.75


def test_with_null_a_pass_is_made_in_the_call_that_needs_it() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD, policy={"background_pct": None})
    items = grown(made)
    assert made.preflight("s", items) is items
    assert summary_of(made.preflight("s", grown(made, 6_600, first=items)))
    assert decisions(events(made)) == [("below", False), ("budget", True)]


def test_a_ladder_that_asks_nobody_runs_in_the_call() -> None:
    from compact.engine.stages.truncate import truncate

    made = manager(WINDOW, summarizer=lambda _: GOOD, stages=[truncate])
    items = grown(made)
    assert made.preflight("s", items) is items
    assert made.sessions.get("s").background is None


def test_threads_and_an_event_loop_share_the_passes_of_one_session() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate)
    items = grown(made)

    async def on_loop(messages: list[Any]) -> Any:
        return await made.apreflight("s", messages)

    assert asyncio.run(on_loop(items)) is items
    assert gate.asked.wait(WAIT_S)
    callers = [Caller(lambda: made.preflight("s", items)) for _ in range(3)]
    assert all(caller.given() is items for caller in callers)
    gate.let_go.set()
    await_ready(made)
    later = reply_to(items)
    results = [asyncio.run(on_loop(later)), made.preflight("s", later)]
    assert results[0] == results[1]
    assert made.archive.steps("s") == [1]
    assert len(gate.requests) == 1


def test_a_coroutine_is_asked_on_the_loop_of_the_call_that_began_the_pass() -> None:
    asked: list[threading.Thread] = []

    async def summarize(_: Any) -> str:
        asked.append(threading.current_thread())
        return GOOD

    made = manager(WINDOW, summarizer=summarize)
    items = grown(made)

    async def host() -> Any:
        assert await made.apreflight("s", items) is items
        await auntil(lambda: is_ready(made))
        return await made.apreflight("s", reply_to(items))

    assert summary_of(asyncio.run(host()))
    assert asked == [threading.current_thread()]


def test_two_workers_begin_a_pass_and_one_of_them_makes_the_step() -> None:
    archive = manager().archive
    config = CompactConfig(model="gpt-4o", max_context_tokens=WINDOW)
    one, two = (
        CompactManager(config, archive=archive, summarizer=lambda _: GOOD, clock=Clock()) for _ in range(2)
    )
    items = grown(one)
    for made in (one, two):
        made.preflight("s", items)
        await_ready(made)
    later = reply_to(items)
    first, second = one.preflight("s", later), two.preflight("s", later)
    assert first == second
    assert archive.steps("s") == [1]
    found = events(one)
    assert sorted(outcomes(found)) == ["compacted", "dropped"]
    assert reasons_of_drops(found) == ["another worker was faster"]
    assert archive.verify() == []


def test_a_worker_that_was_overtaken_asks_no_model() -> None:
    archive = manager().archive
    config = CompactConfig(model="gpt-4o", max_context_tokens=WINDOW)
    gate = Gate()
    one = CompactManager(config, archive=archive, summarizer=lambda _: GOOD, clock=Clock())
    two = CompactManager(config, archive=archive, summarizer=gate, clock=Clock())
    items = grown(one)
    two.preflight("s", items[:6])
    one.preflight("s", items)
    await_ready(one)
    later = reply_to(items)
    expected = one.preflight("s", later)
    assert two.preflight("s", later) is later
    await_ready(two)
    assert two.preflight("s", later) == expected
    assert gate.requests == []


def test_what_happened_can_be_read_from_the_events() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    later = reply_to(items)
    made.preflight("s", later)
    found = events(made)
    assert decisions(found) == [("background_started", True), ("background_swapped", True)]
    assert len([event for event in found if event["name"] == "compact.started"]) == 1
    (finished,) = (event for event in found if event["name"] == "compact.finished")
    assert finished["properties"]["outcome"] == "compacted"
    assert finished["properties"]["tokens_before"] == made.estimate(later).total
    assert finished["properties"]["tokens_after"] == made.sessions.get("s").state.tokens_after
    of_pass = {event["name"] for event in found if event["parent_id"] == finished["span_id"]}
    assert of_pass >= {
        "compact.started",
        "compact.archival",
        "compact.summary_created",
        "compact.pruned_messages",
    }
    ids = {event["span_id"] for event in found}
    assert all(event["parent_id"] is None or event["parent_id"] in ids for event in found)
    roots = [event["name"] for event in found if event["parent_id"] is None]
    assert sorted(roots) == [
        "compact.finished",
        "compact.trigger_decision",
        "compact.trigger_decision",
    ], "both calls and the pass"
    assert made.get_compaction_stats()["compaction_events"] == 1


def test_a_pass_that_gains_nothing_is_not_tried_again_until_the_session_has_grown() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD, stages=[lambda context: context])
    items = grown(made)
    for _ in range(4):
        made.preflight("s", items)
        until(lambda: made.sessions.get("s").background is None or is_ready(made))
        items = reply_to(items)
    found = events(made)
    assert outcomes(found) == ["unchanged"]
    assert [reason for reason, _ in decisions(found)] == ["background_started", *["ineffective"] * 3]
    assert made.archive.steps("s") == []


def test_a_list_in_which_the_host_gives_equal_copies_gets_its_own_objects_back() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    later = copy.deepcopy(reply_to(items))
    out = made.preflight("s", later)
    own = {id(message) for message in later}
    assert sum(id(message) in own for message in out) == len(out) - 1, "all but the summary"
    assert violations(out) == []


def test_a_second_preflight_right_after_the_swap_changes_nothing() -> None:
    made = manager(WINDOW, summarizer=lambda _: GOOD)
    items = grown(made)
    made.preflight("s", items)
    await_ready(made)
    out = made.preflight("s", reply_to(items))
    assert made.preflight("s", list(out)) == out
    await_ended(made)
    assert made.archive.steps("s") == [1]
