"""Anything may fail at any point: the session is as it was or as it should be, and nothing is lost.

The points are the engine's own: every effect that it yields in a real pass, found by running it, none listed by hand.
"""

from __future__ import annotations

import asyncio
import copy
from functools import cache
from typing import Any

import pytest
from support.engine import assert_good, manager, pair, turns, user

from compact import CompactManager
from compact.checks import violations
from compact.engine.effects import Begin, Commit, Effect, Emit, Load, Store
from compact.errors import ArchiveError, CompactError
from compact.runtime.run import Run
from compact.summaries.request import SummaryRequest
from compact.testing import FailingArchive

WINDOW = 16_000


def session() -> list[dict[str, Any]]:
    """A session that needs every rung: a huge result, old pairs, many turns, and something to mend."""
    huge = "\n".join(f"row {n} of a very long table" for n in range(3000))
    broken = {"role": "tool", "tool_call_id": "nobody", "content": "orphan"}
    return [
        {"role": "system", "content": "Be careful."},
        user("Never delete data.", meta={"protected": True}),
        *pair("big", huge, name="query"),
        broken,
        *turns(30),
        *(message for n in range(30) for message in pair(f"c{n}", f"output {n} " * 90)),
        user("Go on."),
    ]


class Watched:
    """A manager whose outside world fails at one chosen point."""

    def __init__(self, fail_at: int | None = None, problem: type[BaseException] = RuntimeError) -> None:
        self.manager = manager(WINDOW, offload={"large_result_tokens": 2000})
        self.effects: list[Effect] = []
        serve = self.manager.services.serve

        def watch(run: Run, effect: Effect) -> Any:
            self.effects.append(effect)
            if fail_at is not None and len(self.effects) == fail_at + 1:
                raise problem(f"at {type(effect).__name__}")
            return serve(run, effect)

        self.manager.services.serve = watch  # type: ignore[method-assign]


@cache
def points() -> tuple[Effect, ...]:
    watched = Watched()
    watched.manager.preflight("s", session())
    return tuple(watched.effects)


def test_the_pass_asks_for_everything_there_is() -> None:
    kinds = {type(effect) for effect in points()}
    assert {Load, Store, SummaryRequest, Begin, Commit, Emit} <= kinds
    assert len(points()) > 20


def check_after_failure(
    made: CompactManager, items: list[dict[str, Any]], before: list[dict[str, Any]]
) -> None:
    assert items == before, "the host's messages were changed"
    steps = made.archive.steps("s")
    assert steps in ([], [1])
    assert made.archive.verify("s") == []
    out = made.preflight("s", items)
    assert_good(made, items, out)
    assert made.archive.steps("s") == [1], "the next call makes the step, or finds it made"
    assert made.archive.verify("s") == []


def error_at(place: int, problem: type[Exception], runs_async: bool) -> None:
    watched = Watched(place, problem)
    items, before = session(), session()
    try:
        if runs_async:
            out = asyncio.run(watched.manager.apreflight("s", items))
        else:
            out = watched.manager.preflight("s", items)
    except (RuntimeError, CompactError):
        pass
    else:
        assert violations(out) == []
    check_after_failure(watched.manager, items, before)


@pytest.mark.parametrize("problem", [RuntimeError, ArchiveError])
def test_an_error_at_the_first_point_of_each_kind_leaves_the_old_state_or_the_new_one(
    problem: type[Exception],
) -> None:
    kinds = [type(effect) for effect in points()]
    for kind in sorted(set(kinds), key=kinds.index):
        error_at(kinds.index(kind), problem, runs_async=False)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("problem", [RuntimeError, ArchiveError])
def test_an_error_at_any_point_leaves_the_old_state_or_the_new_one(
    problem: type[Exception], part: int
) -> None:
    for place in range(part, len(points()), 4):
        error_at(place, problem, runs_async=False)
        if place % 5 == 0:
            error_at(place, problem, runs_async=True)


@pytest.mark.sweep
def test_a_cancel_at_any_point_leaves_the_old_state_or_the_new_one() -> None:
    for place in range(0, len(points()), 3):
        watched = Watched(place, KeyboardInterrupt)
        items, before = session(), session()
        with pytest.raises(KeyboardInterrupt):
            watched.manager.preflight("s", items)
        check_after_failure(watched.manager, items, before)


def test_if_the_archive_cannot_take_it_it_stays() -> None:
    recorder = manager().services.recorder
    archive = FailingArchive(recorder, lambda operation: operation in ("begin", "put_output"))
    made = CompactManager(manager(100_000).config, archive=archive)
    items = [*turns(3), *pair("big", "x " * 30_000)]
    assert made.preflight("s", items) is items, "it fits: the huge result stays where it is"
    assert made.process_tool_result("y " * 30_000, "query", "c9") == "y " * 30_000
    small = CompactManager(manager(WINDOW).config, archive=archive)
    with pytest.raises(ArchiveError):
        small.preflight("s", copy.deepcopy(items))


def test_messages_that_hygiene_removes_are_in_the_archive() -> None:
    made = manager(WINDOW)
    items = session()
    out = made.preflight("s", items)
    assert not any(item.get("tool_call_id") == "nobody" for item in out)
    kept = [
        made.archive.read_text("s", file.path) for file in made.archive.files("s") if "removed" in file.path
    ]
    assert any("orphan" in text for text in kept)
