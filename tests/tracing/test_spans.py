"""Events are spans: one for each run, with the others below it, and their times tell where the time went."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.engine import Clock, events, manager, turns, user
from support.exporters import busy_session

from compact import CompactManager
from compact.engine.effects import Commit, Effect
from compact.errors import ArchiveError, InsufficientBudget
from compact.events import Ids, Recorder, session_trace
from compact.runtime.run import Run
from compact.testing import FailingArchive, ScriptedSummarizer

WINDOW = 16_000


def busy_manager(**more: Any) -> CompactManager:
    return manager(WINDOW, offload={"large_result_tokens": 2000}, **more)


def one_pass(**more: Any) -> list[dict[str, Any]]:
    made = busy_manager(**more)
    made.preflight("s", busy_session())
    return events(made)


def seconds(event: dict[str, Any]) -> float:
    began, ended = (datetime.fromisoformat(event[key]) for key in ("started_at", "ended_at"))
    return (ended - began).total_seconds()


def assert_one_tree(found: list[dict[str, Any]], roots: int) -> None:
    """Every event lies below one that ends its run; nothing lies outside its parent's time."""
    by_id = {event["span_id"]: event for event in found}
    assert len(by_id) == len(found), "span ids are unique"
    assert {event["trace_id"] for event in found} == {session_trace(found[0]["session_id"]).trace_id}
    tops = [event for event in found if event["parent_id"] is None]
    assert len(tops) == roots
    for event in found:
        if event["parent_id"] is not None:
            above = by_id[event["parent_id"]]
            assert above["started_at"] <= event["started_at"] <= event["ended_at"] <= above["ended_at"]


def test_an_idle_preflight_is_one_span_that_the_estimate_lies_below() -> None:
    made = manager()
    made.preflight("s", turns(2))
    estimate, decision = events(made)
    assert (estimate["name"], decision["name"]) == ("compact.token_estimate", "compact.trigger_decision")
    assert (estimate["parent_id"], decision["parent_id"]) == (decision["span_id"], None)
    assert_one_tree([estimate, decision], roots=1)
    assert seconds(estimate) > 0


def test_a_pass_is_one_span_with_everything_below_it() -> None:
    found = one_pass()
    assert_one_tree(found, roots=1)
    (root,) = [event for event in found if event["parent_id"] is None]
    assert root["name"] == "compact.finished"
    below = {event["name"].removeprefix("compact.") for event in found if event is not root}
    assert below == {
        "token_estimate", "started", "trigger_decision", "archival", "offload",
        "calls_shrunk", "summary_created", "pruned_messages", "ledger",
    }  # fmt: skip


def test_the_parts_of_a_pass_leave_no_gap() -> None:
    """Each begins where the one before it ended; storing the transcript has its own archival event."""
    found = one_pass()
    (root,) = [event for event in found if event["parent_id"] is None]
    (stored,) = [e for e in found if "transcript-pre" in str(e["properties"].get("file_path"))]
    timed = [e for e in found if e is not root and seconds(e) and e["name"] != "compact.archival"]
    parts = sorted([*timed, stored], key=lambda event: event["started_at"])
    assert parts[0]["started_at"] == root["started_at"]
    gaps = [
        datetime.fromisoformat(after["started_at"]) - datetime.fromisoformat(before["ended_at"])
        for before, after in pairwise(parts)
    ]
    assert max(gap.total_seconds() for gap in gaps) <= 0.001, "one look at the clock"


def test_every_stage_has_its_own_time() -> None:
    found = one_pass()
    for name in ("offload", "calls_shrunk", "summary_created", "pruned_messages", "finished", "archival"):
        spans = [event for event in found if event["name"] == f"compact.{name}"]
        assert spans
        assert all(seconds(event) > 0 for event in spans), name


@pytest.mark.parametrize("runs_async", [False, True])
def test_the_summary_span_shows_how_long_the_model_took(runs_async: bool) -> None:
    clock = Clock()

    class Slow(ScriptedSummarizer):
        def __call__(self, request: Any) -> str:
            clock.wait(30)
            return super().__call__(request)

    words = " ".join(f"word{n}" for n in range(60))
    made = CompactManager(
        busy_manager().config,
        summarizer=Slow(f"## Goal\nAnswer the questions about {words}."),
        clock=clock,
    )
    if runs_async:
        asyncio.run(made.apreflight("s", busy_session()))
    else:
        made.preflight("s", busy_session())
    found = events(made)
    told = [e for e in found if e["name"] in ("compact.summary_created", "compact.error")]
    assert max(map(seconds, told)) >= 30
    others = [e for e in found if e not in told and e["name"] != "compact.finished"]
    assert max(map(seconds, others)) < 30
    assert_one_tree(found, roots=1)


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = one_pass(), one_pass()
    assert json.dumps(first) == json.dumps(second)


def test_two_processes_on_one_session_never_give_the_same_span_id(tmp_path: Path) -> None:
    settings = {"adapter": "fs", "root": str(tmp_path)}
    for _ in range(2):
        with CompactManager(manager(archive=settings).config) as made:
            made.preflight("s", turns(2))
    found = events(made)
    assert len({event["span_id"] for event in found}) == len(found) == 4
    assert len({event["trace_id"] for event in found}) == 1


def test_a_pass_that_fails_tells_no_changes() -> None:
    recorder = Recorder(lambda: datetime.now(UTC), Ids("archive"))
    failing = FailingArchive(recorder, lambda operation: operation == "begin")
    made = CompactManager(busy_manager().config, archive=failing)
    with pytest.raises(ArchiveError):
        made.preflight("s", busy_session())
    found = events(made)
    names = [event["name"].removeprefix("compact.") for event in found]
    assert names[-2:] == ["error", "finished"]
    assert "calls_shrunk" not in names
    assert "summary_created" not in names
    assert_one_tree(found, roots=1)
    assert found[-1]["properties"]["outcome"] == "failed"


def test_a_commit_that_fails_tells_no_changes_and_counts_none() -> None:
    made = busy_manager()
    serve = made.services.serve

    def failing(run: Run, effect: Effect) -> Any:
        if isinstance(effect, Commit):
            raise ArchiveError("the disk is full")
        return serve(run, effect)

    made.services.serve = failing  # type: ignore[method-assign]
    with pytest.raises(ArchiveError):
        made.preflight("s", busy_session())
    names = {event["name"].removeprefix("compact.") for event in events(made)}
    assert not names & {"calls_shrunk", "summary_created", "pruned_messages"}
    assert "offload" in names, "the huge result moved before the pass, and stays moved"
    assert set(made.get_compaction_stats()["by_strategy"]) == {"offload"}


def test_a_pass_that_gains_nothing_tells_no_changes() -> None:
    made = manager(WINDOW)
    out = made.manual_compact("s", [user("hi")])
    assert out == [user("hi")]
    found = events(made)
    assert [event["name"].removeprefix("compact.") for event in found][-1] == "finished"
    assert found[-1]["properties"]["outcome"] == "unchanged"
    assert not {e["name"] for e in found} & {"compact.summary_created", "compact.pruned_messages"}
    assert_one_tree(found, roots=1)


def test_what_cannot_fit_ends_in_a_failed_span() -> None:
    made = manager(WINDOW)
    with pytest.raises(InsufficientBudget):
        made.preflight("s", [{"role": "system", "content": "word " * 20_000}])
    found = events(made)
    assert found[-1]["properties"]["outcome"] == "failed"
    assert [e["status"] for e in found if e["name"] == "compact.error"] == ["error"]
    assert_one_tree(found, roots=1)


def test_a_result_that_is_offloaded_by_itself_is_a_run_of_its_own() -> None:
    made = manager()
    made.process_tool_result("word " * 30_000, "query", "c1", session_id="s")
    archival, offload = events(made)
    assert (archival["name"], offload["name"]) == ("compact.archival", "compact.offload")
    assert (archival["parent_id"], offload["parent_id"]) == (offload["span_id"], None)
    assert seconds(offload) >= seconds(archival) > 0


def test_a_lost_race_nests_the_second_try_below_the_first() -> None:
    made = busy_manager()
    items = busy_session()
    serve = made.services.serve
    rival = CompactManager(made.config, archive=made.archive, clock=Clock())
    raced: list[bool] = []

    def overtaken(run: Run, effect: Effect) -> Any:
        if isinstance(effect, Commit) and not raced:
            raced.append(True)
            rival.preflight("s", busy_session())
        return serve(run, effect)

    made.services.serve = overtaken  # type: ignore[method-assign]
    made.preflight("s", items)
    outcomes = [e for e in events(made) if e["name"] == "compact.finished"]
    assert {e["properties"]["outcome"] for e in outcomes} >= {"compacted", "adopted"}
    found = events(made)
    by_id = {e["span_id"] for e in found}
    assert all(e["parent_id"] in by_id for e in found if e["parent_id"] is not None)


def test_every_event_of_real_runs_is_as_the_schema_says() -> None:
    jsonschema = importlib.import_module("jsonschema")
    path = Path(__file__).resolve().parents[2] / "src" / "compact" / "tracing" / "events.schema.json"
    check = jsonschema.Draft202012Validator(json.loads(path.read_text("utf-8")))
    made = busy_manager(redaction={"enabled": False})
    made.preflight("s", busy_session())
    made.preflight("t", turns(2))
    made.manual_compact("t", turns(9), note="user-requested")
    made.preflight("u", busy_session())
    found = [*events(made), *events(made, "t"), *events(made, "u")]
    assert len(found) > 60
    for event in found:
        check.validate(event)
    broken = {**found[0], "properties": {**found[0]["properties"], "extra": 1}}
    with pytest.raises(jsonschema.ValidationError):
        check.validate(broken)


def test_a_pass_out_of_time_ends_its_own_span_and_the_next_run_has_another() -> None:
    let_go = threading.Event()

    def stuck(request: Any) -> str:
        let_go.wait(30)
        return "too late"

    items = [*turns(60), user("Go on.")]
    made = manager(WINDOW, summarizer=stuck, policy={"timeout_s": 1.5, "hard_cap_buffer": 0})
    made.estimate(items)  # so that the pass is under way long before its time is up
    made.preflight("s", items)
    let_go.set()
    found = events(made)
    roots = [event for event in found if event["parent_id"] is None]
    assert [root["properties"]["outcome"] for root in roots] == ["timeout", "compacted"]
    assert_one_tree(found, roots=2)
    below = {event["parent_id"]: event["name"] for event in found}
    assert below.keys() == {None, *(root["span_id"] for root in roots)}


def test_a_request_without_room_to_work_in_is_one_failed_span() -> None:
    made = manager(WINDOW)
    system = {"role": "system", "content": "word " * (made.config.budget(WINDOW) - 300)}
    with pytest.raises(InsufficientBudget):
        made.preflight("s", [system, user("hi")])
    found = events(made)
    (root,) = [event for event in found if event["parent_id"] is None]
    assert root["status"] == "error" or root["properties"]["outcome"] == "failed"
    assert_one_tree(found, roots=1)
