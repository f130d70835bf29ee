"""Before anything is spent: a window too small to work in, and a fixed part that leaves no room, are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.engine import events, manager, says, user

from compact import InsufficientBudget
from compact.errors import WindowTooSmall

TOOLS = [{"type": "function", "function": {"name": "t", "description": "words " * 2000}}]


@pytest.mark.parametrize(
    ("settings", "origin"),
    [
        ({"window": 3000}, "max_context_tokens"),
        ({"window": None, "windows": {"gpt-4o": 3000}}, "windows in the configuration"),
    ],
)
def test_a_window_below_the_hard_minimum_blocks_and_says_why(settings: Any, origin: str) -> None:
    made = manager(**settings)
    called: list[Any] = []
    attempts: list[Callable[[], Any]] = [
        lambda: made.preflight("s", [user("hi")]),
        lambda: made.manual_compact("s", [user("hi")]),
        lambda: made.call("s", [user("hi")], called.append),
    ]
    for attempt in attempts:
        with pytest.raises(WindowTooSmall) as caught:
            attempt()
        error = caught.value
        assert (error.tokens, error.minimum) == (3000, 4000)
        assert "larger context window" in error.hint
        assert "set max_context_tokens" in error.hint
        for part in ("3000", "4000", origin, "gpt-4o", "guard.min_context_tokens"):
            assert part in str(error)
    assert called == [], "the model was not asked"
    assert events(made) == []


def test_a_small_window_warns_once_per_session() -> None:
    made = manager(6000)
    for session in ("a", "a", "b"):
        made.preflight(session, [user("hi")])
    for session in ("a", "b"):
        (warning,) = events(made, session, "warning")
        assert warning["properties"]["code"] == "small_window"
        assert "6000" in warning["properties"]["message"]


def test_a_fixed_part_that_leaves_no_room_is_refused_with_each_share() -> None:
    made = manager(8000)
    items = [
        {"role": "system", "content": "rule " * 2000},
        {"role": "developer", "content": "more " * 1400},
        user("keep this " * 500, meta={"protected": True}),
        user("hi"),
    ]
    called: list[Any] = []
    with pytest.raises(InsufficientBudget) as caught:
        made.call("s", items, called.append, TOOLS)
    assert called == []
    error = caught.value
    assert set(error.shares) == {"system", "developer", "tools schema", "protected messages"}
    assert all(tokens > 900 for tokens in error.shares.values())
    assert sum(error.shares.values()) + 160 > error.budget == 6500
    for share in error.shares:
        assert share in str(error)
    assert "guard.min_room_share" in error.hint
    assert made.archive.steps("s") == [], "nothing was compacted"
    assert events(made, name="error")[0]["properties"]["error_type"] == "InsufficientBudget"


def test_room_that_is_enough_is_left_alone() -> None:
    made = manager(8000)
    items = [{"role": "system", "content": "rule " * 6100}, user("hi")]
    assert made.preflight("s", items) is items
    strict = manager(8000, guard={"min_room_share": 0.1})
    with pytest.raises(InsufficientBudget, match="the least is 800"):
        strict.preflight("s", items)
    lenient = manager(8000, guard={"min_room_share": 0.0})
    full = [{"role": "system", "content": "rule " * 6400}, user("hi")]
    assert lenient.preflight("s", full) is full


def test_a_system_prompt_outside_the_list_is_part_of_the_budget() -> None:
    made, system = manager(8000, policy={"hard_cap_buffer": 0}), "rule " * 5000
    items = [m for n in range(50) for m in (user(f"question {n} " + "word " * 40), says("text " * 40))]
    after = made.preflight("s", items, system=system)
    assert made.estimate(after, system=system).total <= 8000
