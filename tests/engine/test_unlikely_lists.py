"""Lists that hosts rarely pass, and that must come out legal all the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.engine import Item, assert_good, manager, pair, says, turns, user

from compact import DEFAULT_STAGES
from compact.checks import violations
from compact.engine.context import Context
from compact.engine.effects import Asking
from compact.errors import CompactError, ConfigError
from compact.tokens import Meter


def test_outputs_of_blank_lines_are_shrunk() -> None:
    """No line of them says anything, so there is nothing to choose an excerpt from."""
    made = manager(8_000)
    items = [user("Look."), *(m for n in range(12) for m in pair(f"c{n}", " \n" * 1500)), user("Go on.")]
    assert_good(made, items, made.preflight("s", items))


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_a_nul_in_the_arguments_of_a_call_does_not_reach_the_text_of_a_summary(dialect: str) -> None:
    """In arguments it is data. In a text no provider accepts it."""
    items: list[Any] = [user("Start.")]
    for n in range(12):
        arguments = {"command": "echo a\x00b" if n == 3 else f"echo {n}"}
        if dialect == "chat":
            items += pair(f"c{n}", "ok", name="bash", arguments=json.dumps(arguments))
        else:
            call = {"type": "tool_use", "id": f"t{n}", "name": "bash", "input": arguments}
            result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "ok"}
            items += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        items += [says(f"Done {n}."), user(f"Go on {n}.")]
    assert violations(items, dialect) == []
    out = manager().manual_compact("s", items, dialect=dialect)
    assert len(out) < len(items)
    assert violations(out, dialect) == []


@pytest.mark.parametrize(
    ("items", "edited"),
    [([user("a"), says("b"), user("c"), says("d"), user("e")], -1), ([user("a")], 0)],
    ids=["the newest", "the only one"],
)
def test_a_role_that_was_changed_in_place_is_noticed(items: list[Item], edited: int) -> None:
    made = manager()
    own = [dict(item) for item in items]
    made.preflight("s", own, dialect="anthropic")
    own[edited]["role"] = "assistant"
    assert violations(own, "anthropic")
    assert violations(made.preflight("s", own, dialect="anthropic"), "anthropic") == []


def test_a_call_id_that_is_used_again_is_noticed_after_several_plain_messages() -> None:
    """Plain messages and calls arrive together. Every call among them is remembered, not only the newest."""
    made = manager()
    history = [user("a"), says("b")]
    made.preflight("s", history)
    history = [*history, user("c"), says("d"), user("e"), says("f"), *pair("c1", "one"), *pair("c2", "two")]
    made.preflight("s", history)
    history = [*history, *pair("c1", "three"), user("g")]
    assert violations(history)
    assert violations(made.preflight("s", history)) == []


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_summarizer_that_is_cancelled_is_one_that_failed(runs_async: bool) -> None:
    async def cancelled(_: Any) -> str:
        raise asyncio.CancelledError

    made, items = manager(8_000, summarizer=cancelled), turns(40)
    out = asyncio.run(made.apreflight("s", items)) if runs_async else made.preflight("s", items)
    assert_good(made, items, out)
    assert made.archive.steps("s") == [1]


def test_an_estimate_does_not_depend_on_what_was_counted_before() -> None:
    meter = Meter("gpt-4o")
    expected = meter.estimate([user("hello world")]).total
    meter.estimate([{"kind": "message", "content": "x", "id": "a", "priority": 1}])
    assert meter.estimate([user("hello world")]).total == expected


def test_a_tuple_comes_back_as_a_list() -> None:
    assert manager().preflight("s", (user("hi"),)) == [user("hi")]


# --- stages of a host that are wrong


def test_a_stage_that_drops_everything_is_refused() -> None:
    def drop_all(context: Context) -> Asking[Context]:
        yield from ()
        return context.with_rows([])

    made = manager(8_000, stages=[drop_all])
    with pytest.raises(CompactError, match="an empty list"):
        made.preflight("s", turns(40))
    assert made.archive.steps("s") == []


def test_a_stage_that_asks_for_something_unknown_is_told_so() -> None:
    def ask(context: Context) -> Asking[Context]:
        yield "hello"
        return context

    with pytest.raises(CompactError, match="something unknown: str"):
        manager(8_000, stages=[ask]).preflight("s", turns(40))


def test_stages_that_are_no_list_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="stages must be a list of stages, got a int"):
        manager(8_000, stages=5)  # type: ignore[arg-type]


def test_reduce_runs_only_our_reversible_stages() -> None:
    def drop_first(context: Context) -> Asking[Context]:
        yield from ()
        return context.with_rows(context.rows[1:])

    made = manager(8_000, stages=[drop_first, *DEFAULT_STAGES])
    items = [user("Look."), *(m for n in range(12) for m in pair(f"c{n}", f"row {n} " * 400)), user("Go on.")]
    out = made.reduce("s", items)
    assert len(out) == len(items)
    assert made.estimate(out).total < made.estimate(items).total
