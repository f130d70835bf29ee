"""A host's own stage in the ladder: beside ours or instead of them, held to the same promises."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from support.engine import Item, assert_good, events, manager, pair, says, turns, user
from support.faults import Watched, ended, points_of
from support.waiting import until

from compact import DEFAULT_STAGES, CompactManager
from compact.checks import violations
from compact.engine.context import Context, Row, Stage, with_result_text
from compact.engine.effects import Asking, Effect, Emit, Store
from compact.engine.plan import rows_of
from compact.errors import ArchiveError, CompactError, ConfigError, InsufficientBudget
from compact.events import CallsShrunk
from compact.messages import Message, Text, ToolResult
from compact.runtime.run import Run

WINDOW = 8_000
RESULTS = 5
SYSTEM = {"role": "system", "content": "Be careful."}
RULE = user("Never delete data.", meta={"protected": True})
FULLER: dict[str, Any] = {"hard_cap_buffer": 0}
"""The session below is over the trigger, but fits the budget."""


def session() -> list[Item]:
    """About 7,400 tokens, most of them in results that are too small for the stage that offloads."""
    results = (f"Result {n}: " + " ".join(f"value{n}x{k}" for k in range(360)) for n in range(RESULTS))
    return [
        SYSTEM,
        RULE,
        user("Look at everything."),
        *(item for n, text in enumerate(results) for item in pair(f"c{n}", text)),
        says("Done."),
        user("Go on."),
    ]


def file_results(context: Context) -> Asking[Context]:
    """Store every result in the archive and leave only its path."""
    rows, desk = list(context.rows), context.desk
    for index in sorted(rows_of(context.units, pinned=False)):
        for place, part in enumerate(rows[index].message.parts):
            if not isinstance(part, ToolResult) or len(part.text) < 500:
                continue
            path = yield Store(part.text, "read_file", part.call_id)
            message = with_result_text(rows[index].message, place, f"Filed in {path}.")
            filed = desk.row(message, "offloaded")
            event = CallsShrunk(
                tool_name="read_file",
                tool_call_id=part.call_id,
                tokens_before=rows[index].tokens,
                tokens_after=filed.tokens,
                file_path=path,
            )
            yield Emit(event, payload={"stage": "file_results"})
            rows[index] = filed
    return context.with_rows(rows)


class Recorded:
    """A stage that does nothing. It counts how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, context: Context) -> Asking[Context]:
        self.runs += 1
        yield from ()  # a stage is a generator
        return context


def change_rows(change: Callable[[Sequence[Row]], Sequence[Row]], **changes: Any) -> Stage:
    """A stage that leaves other rows, and changes more of the context."""

    def stage(context: Context) -> Asking[Context]:
        yield from ()  # a stage is a generator
        return replace(context, rows=change(context.rows), **changes)

    return stage


def saved_by(made: CompactManager) -> dict[str, int]:
    (pruned,) = events(made, name="pruned_messages")
    saved: dict[str, int] = pruned["payload"]["saved"]
    assert sum(saved.values()) == pruned["properties"]["tokens_before"] - pruned["properties"]["tokens_after"]
    return saved


def outcomes(made: CompactManager) -> list[str]:
    return [event["properties"]["outcome"] for event in events(made, name="finished")]


# --- in the ladder


@pytest.mark.parametrize(
    "stages", [[file_results], (file_results, *DEFAULT_STAGES)], ids=["instead of ours", "beside ours"]
)
def test_a_stage_of_the_host_is_run_and_credited_under_its_own_name(stages: Sequence[Stage]) -> None:
    made, items = manager(WINDOW, stages=stages), session()
    after = made.preflight("s", items)
    assert_good(made, items, after)
    assert [item["content"] for item in after if item["role"] == "tool"] == [
        f"Filed in {event['properties']['file_path']}." for event in events(made, name="calls_shrunk")
    ]
    saved = saved_by(made)
    assert set(saved) == {"file_results"}, "it was enough"
    stats = made.get_compaction_stats()
    assert stats["by_strategy"] == saved
    assert stats["total_tokens_saved"] == saved["file_results"] > 5_000
    assert stats["compaction_events"] == 1
    assert outcomes(made) == ["compacted"]


def test_its_events_stand_in_the_log_and_what_it_stored_is_in_the_archive() -> None:
    made, items = manager(WINDOW, stages=[file_results]), session()
    made.preflight("s", items)
    shrunk = events(made, name="calls_shrunk")
    assert [event["payload"] for event in shrunk] == [{"stage": "file_results"}] * RESULTS
    paths = [event["properties"]["file_path"] for event in shrunk]
    outputs = [item["content"] for item in items if item["role"] == "tool"]
    assert [made.archive.read_text("s", path) for path in paths] == outputs
    archived = {event["properties"]["file_path"] for event in events(made, name="archival")}
    assert archived > {f"memory://s{path}" for path in paths}
    (root,) = [event for event in events(made) if event["parent_id"] is None]
    assert {event["parent_id"] for event in shrunk} == {root["span_id"]}
    restored = made.archive.restore("s", 1).messages
    assert [message["content"] for message in restored] == [item["content"] for item in items]


def test_where_it_is_not_enough_the_stages_after_it_go_on() -> None:
    made = manager(WINDOW, stages=(file_results, *DEFAULT_STAGES))
    items = [SYSTEM, *turns(30), *session()[1:]]
    after = made.preflight("s", items)
    assert_good(made, items, after)
    assert {"file_results", "summarize"} <= set(saved_by(made))


def test_a_stage_after_ours_is_run_only_if_ours_are_not_enough() -> None:
    last = Recorded()
    made = manager(WINDOW, stages=(*DEFAULT_STAGES, last), policy={"keep_tool_io_pairs": 1})
    made.preflight("s", session())
    assert (last.runs, outcomes(made)) == (0, ["compacted"])
    made.manual_compact("t", [SYSTEM, *turns(9)])
    assert last.runs == 1, "a manual compaction climbs the whole ladder"


def test_a_session_below_the_trigger_runs_no_stage() -> None:
    only = Recorded()
    made, items = manager(WINDOW, stages=[only]), turns(2)
    assert made.preflight("s", items) is items
    assert only.runs == 0


def test_an_object_is_credited_under_the_name_of_its_class() -> None:
    class Filing:
        def __call__(self, context: Context) -> Asking[Context]:
            return file_results(context)

    made = manager(WINDOW, stages=[Filing()])
    made.preflight("s", session())
    assert set(saved_by(made)) == {"Filing"}


def test_a_stage_that_credits_itself_is_not_credited_twice() -> None:
    def file_and_credit(context: Context) -> Asking[Context]:
        after = yield from file_results(context)
        return after.credit("filing", context.tokens - after.tokens)

    made = manager(WINDOW, stages=[file_and_credit])
    made.preflight("s", session())
    assert set(saved_by(made)) == {"filing"}


def test_a_thread_and_an_event_loop_get_the_same() -> None:
    here, there = (manager(WINDOW, stages=(file_results, *DEFAULT_STAGES)) for _ in range(2))
    assert asyncio.run(there.apreflight("s", session())) == here.preflight("s", session())
    assert events(there) == events(here)


def test_both_kinds_of_host_go_on_from_what_it_left() -> None:
    made, items = manager(WINDOW, stages=[file_results]), session()
    after = made.preflight("s", items)
    assert made.preflight("s", after) is after
    more = [says("I do."), user("And now?")]
    assert made.preflight("s", [*items, *more]) == [*after, *more]
    other = CompactManager(made.config, archive=made.archive)
    assert other.preflight("s", [*items, *more]) == [*after, *more], "another process, too"
    assert made.archive.steps("s") == [1]


# --- faults


@cache
def points() -> tuple[str, ...]:
    made = manager(WINDOW, stages=[file_results])
    watched = Watched(made)
    made.preflight("s", session())
    return tuple(points_of(watched))


OWN = [f"{kind}-{n}" for kind in ("Store", "compact.calls_shrunk") for n in range(1, RESULTS + 1)]


def test_the_effects_of_the_stage_are_among_the_points() -> None:
    assert set(OWN) <= set(points())


def assert_old_or_new(made: CompactManager, items: list[Item]) -> None:
    ended(made)
    assert items == session(), "the host's messages were changed"
    assert made.archive.steps("s") in ([], [1])
    assert made.archive.verify("s") == []
    assert_good(made, items, made.preflight("s", items))
    assert made.archive.steps("s") == [1], "the next call makes the step, or finds it made"
    assert made.archive.verify("s") == []


@pytest.mark.parametrize("policy", [{}, FULLER], ids=["too large", "fits"])
@pytest.mark.parametrize("problem", [RuntimeError, ArchiveError, KeyboardInterrupt])
@pytest.mark.parametrize("point", OWN)
def test_an_error_at_any_of_its_effects_leaves_the_old_state_or_the_new_one(
    point: str, problem: type[BaseException], policy: dict[str, Any]
) -> None:
    made, items = manager(WINDOW, stages=[file_results], policy=policy), session()

    def fail(run: Run, effect: Effect) -> None:
        raise problem(f"at {point}")

    watched = Watched(made, point, before=fail)
    if problem is ArchiveError and policy:
        assert made.preflight("s", items) is items, "it fits as it is"
    else:
        with pytest.raises(problem, match=f"at {point}"):
            made.preflight("s", items)
    assert watched.struck
    assert_old_or_new(made, items)


@pytest.mark.parametrize("point", OWN)
def test_a_cancel_at_any_of_its_effects_leaves_the_old_state_or_the_new_one(point: str) -> None:
    made, items = manager(WINDOW, stages=[file_results]), session()

    async def host() -> bool:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(made.apreflight("s", items))

        def cancel(run: Run, effect: Effect) -> None:
            loop.call_soon_threadsafe(task.cancel)
            until(lambda: run.is_fenced)

        watched = Watched(made, point, before=cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        return watched.struck

    assert asyncio.run(host())
    assert_old_or_new(made, items)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("point", ["Store-1", f"Store-{RESULTS}", "compact.calls_shrunk-1"])
def test_out_of_time_at_one_of_its_effects_gives_what_fits(point: str, late: bool) -> None:
    made, items = manager(WINDOW, stages=[file_results]), session()

    def out_of_time(run: Run, effect: Effect) -> None:
        made.conductor.end_by_timeout(run)

    watched = Watched(made, point, **{"after" if late else "before": out_of_time})
    after = made.preflight("s", items)
    assert watched.struck
    assert_good(made, items, after)
    assert_old_or_new(made, items)


def test_a_stage_that_fails_by_itself_changes_nothing() -> None:
    def fail(context: Context) -> Asking[Context]:
        yield Store("a text", "read_file", "c0")
        raise LookupError("no such table")

    made, items = manager(WINDOW, stages=[fail], policy=FULLER), session()
    with pytest.raises(LookupError, match="no such table"):
        made.preflight("s", items)
    (error,) = events(made, name="error")
    assert error["properties"]["error_type"] == "LookupError"
    assert outcomes(made) == ["failed"]
    assert made.archive.steps("s") == []
    assert items == session()


# --- results that break a promise


def drop_calls(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.message.calls]


def drop_protected(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.message.protected][:-1]


def edit_protected(rows: Sequence[Row]) -> list[Row]:
    rule = rows[1]
    edited = rule.message.with_parts((Text("Delete data."),))
    return [rows[0], replace(rule, message=edited), *rows[2:-1]]


def move_protected(rows: Sequence[Row]) -> list[Row]:
    return [rows[1], rows[0], *rows[2:-1]]


def repeat_protected(rows: Sequence[Row]) -> list[Row]:
    return [*rows[:2], rows[1], *rows[2:-2]]


def edit_the_hosts_own(rows: Sequence[Row]) -> list[Row]:
    shorter = rows[2].message.with_parts((Text("Look."),))
    return [*rows[:2], Row(shorter, 5, rows[2].source), *rows[3:-1]]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (drop_calls, "the result would be illegal: the result for 'c0'"),
        (drop_protected, "the result would lack a protected message"),
        (edit_protected, "the result would lack a protected message"),
        (move_protected, "the result would move or repeat a protected message"),
        (repeat_protected, "the result would move or repeat a protected message"),
        (edit_the_hosts_own, "the result would pass off a changed message as the host's own"),
    ],
)
def test_a_result_that_breaks_a_promise_is_refused_and_changes_nothing(
    change: Callable[[Sequence[Row]], Sequence[Row]], match: str
) -> None:
    made, items = manager(WINDOW, stages=[change_rows(change)], policy=FULLER), session()
    before = copy.deepcopy(items)
    with pytest.raises(CompactError, match=match):
        made.preflight("s", items)
    assert items == before
    assert violations(items) == []
    assert made.archive.steps("s") == []
    assert made.archive.verify("s") == []
    assert outcomes(made) == ["failed"]
    assert made.get_compaction_stats()["by_strategy"] == {}


def row_of(words: int, tokens: int) -> Row:
    return Row(Message("user", (Text("word " * words),)), tokens, None)


@pytest.mark.parametrize("tokens", [500, 0], ids=["counted", "counted as nothing"])
def test_a_larger_result_is_not_taken(tokens: int) -> None:
    made = manager(WINDOW, stages=[change_rows(lambda rows: [*rows, row_of(500, tokens)])], policy=FULLER)
    items = session()
    assert made.preflight("s", items) is items
    assert outcomes(made) == ["unchanged"]
    assert made.archive.steps("s") == []
    assert made.get_compaction_stats()["by_strategy"] == {}


@pytest.mark.parametrize("lies", [False, True])
def test_a_smaller_result_that_is_still_too_large_is_refused(lies: bool) -> None:
    def shorten(context: Context) -> Asking[Context]:
        rows = context.rows[:-1]
        if not lies:
            return context.with_rows(rows)
        free = [replace(row, tokens=1) for row in rows]
        yield from ()  # a stage is a generator
        return context.with_rows(free, rules=replace(context.rules, budget=10**6))

    made = manager(WINDOW, stages=[shorten])
    items = session()
    with pytest.raises(InsufficientBudget, match="what must stay takes 7,"):
        made.preflight("s", items)
    assert made.archive.steps("s") == []
    assert outcomes(made) == ["failed"]


@pytest.mark.parametrize("answer", [None, [], "rows"])
def test_a_stage_that_returns_no_context_is_named(answer: Any) -> None:
    def forgetful(context: Context) -> Any:
        yield from ()
        return answer

    for stage in (forgetful, lambda context: answer):
        made, items = manager(WINDOW, stages=[stage], policy=FULLER), session()
        with pytest.raises(CompactError, match=r"the stage (forgetful|<lambda>) returned no Context"):
            made.preflight("s", items)
        assert made.archive.steps("s") == []
        assert outcomes(made) == ["failed"]


# --- the ladder as a setting


@pytest.mark.parametrize("wrong", ["summarize", 5, None])
def test_a_stage_that_cannot_be_called_is_a_wrong_setting(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="a stage must be callable") as caught:
        manager(stages=[*DEFAULT_STAGES, wrong])
    assert caught.value.path == "stages"


def test_without_stages_the_ladder_is_ours() -> None:
    ours, named = manager(WINDOW), manager(WINDOW, stages=list(DEFAULT_STAGES))
    assert ours.preflight("s", session()) == named.preflight("s", session())
    assert events(ours) == events(named)


def test_an_empty_ladder_leaves_what_fits_and_refuses_what_does_not() -> None:
    fits, items = manager(WINDOW, stages=[], policy=FULLER), session()
    assert fits.preflight("s", items) is items
    assert outcomes(fits) == ["unchanged"]
    assert fits.manual_compact("t", items) is items
    full = manager(WINDOW, stages=())
    with pytest.raises(InsufficientBudget, match="what must stay takes 7,"):
        full.preflight("s", items)
    assert outcomes(full) == ["failed"]
    assert fits.archive.steps("s") == full.archive.steps("s") == []
