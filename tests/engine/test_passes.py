"""A pass checks its own result before it replaces anything, and tells what it did in numbers that add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.engine import Item, events, manager, pair, says, turns, user

from compact.engine.context import Context, Row, Stage
from compact.engine.effects import Asking
from compact.engine.ladder import DEFAULT_STAGES
from compact.errors import CompactError, InsufficientBudget

SYSTEM = {"role": "system", "content": "Be careful."}
RULE = user("Never delete data.", meta={"protected": True})


def session() -> list[Item]:
    return [SYSTEM, RULE, *turns(20), *pair("c1", "output"), says("Done.")]


def spoil(change: Callable[[Sequence[Row]], Sequence[Row]]) -> Stage:
    """A last stage that leaves something else."""

    def stage(context: Context) -> Asking[Context]:
        yield from ()  # a stage is a generator
        return context.with_rows(change(context.rows))

    return stage


def assert_refused(stage: Stage, match: str) -> None:
    made = manager(stages=(*DEFAULT_STAGES, stage))
    with pytest.raises(CompactError, match=match):
        made.manual_compact("s", session())
    assert made.archive.steps("s") == []
    assert [e["properties"]["outcome"] for e in events(made, name="finished")] == ["failed"]


def test_a_result_without_a_protected_message_is_not_committed() -> None:
    lacking = spoil(lambda rows: [row for row in rows if row.source != 1])
    assert_refused(lacking, "the result would lack a protected message")


def test_an_illegal_result_is_not_committed() -> None:
    illegal = spoil(lambda rows: [row for row in rows if not row.message.calls])
    assert_refused(illegal, "the result would be illegal: the result for 'c1'")


def test_a_result_over_the_budget_is_not_committed() -> None:
    made = manager(6000, stages=[spoil(lambda rows: rows[1:])])
    with pytest.raises(InsufficientBudget, match="what must stay takes 9,"):
        made.preflight("s", [*turns(2), user("x " * 9000)])
    assert made.archive.steps("s") == []


def test_the_turns_that_stay_are_those_whose_words_stay() -> None:
    made = manager(policy={"keep_recent_turns": 1, "keep_tool_io_pairs": 3})
    made.manual_compact(
        "s", [*pair("c0", "x"), *(m for n in (1, 2, 3) for m in (user("q"), *pair(f"c{n}", "x")))]
    )
    (decision,) = (e["properties"] for e in events(made, name="trigger_decision"))
    assert decision["planned"]["kept"] == {"pinned": 0, "recent_turns": 1, "tool_pairs": 3}


def test_what_was_kept_and_pruned_is_told_by_layers() -> None:
    made = manager()
    items = session()
    after = made.manual_compact("s", items)
    (pruned,) = (e["properties"] for e in events(made, name="pruned_messages"))
    assert pruned["layers"] == {"pinned": 2, "summary": 1, "recent": len(after) - 3}
    assert pruned["pruned_count"] == len(items) - (len(after) - 1), "all that does not stand any more"
    assert pruned["tokens_after"] < pruned["tokens_before"]
    (decision,) = (e["properties"] for e in events(made, name="trigger_decision"))
    assert decision["planned"]["kept"] == {"pinned": 2, "recent_turns": 6, "tool_pairs": 1}
    assert decision["planned"]["pruned_count"] == pruned["pruned_count"]
    saved = events(made, name="pruned_messages")[0]["payload"]["saved"]
    assert sum(saved.values()) == pruned["tokens_before"] - pruned["tokens_after"]
    assert set(saved) == {"summarize"}


def test_without_a_summary_the_layer_of_summaries_is_empty() -> None:
    made = manager(16_000, policy={"target_pct": 0.8})
    items = [user("go"), *(m for n in range(40) for m in pair(f"c{n}", f"output {n}\n" * 120)), says("ok")]
    after = made.preflight("s", items)
    assert not events(made, name="summary_created")
    (pruned,) = (e["properties"] for e in events(made, name="pruned_messages"))
    assert pruned["layers"] == {"pinned": 0, "summary": 0, "recent": len(after)}
    assert pruned["pruned_count"] == 0


def test_what_is_still_too_large_is_reduced_also_where_it_is_recent() -> None:
    """One pair larger than the window: its arguments and result become pointers, and the saving is told."""
    made = manager(6000, offload={"large_result_tokens": 50_000})
    arguments = '{"path": "a.py", "query": "' + "word " * 3000 + '"}'
    items = [user("Find it."), *pair("c1", "line\n" * 3000, name="find", arguments=arguments)]
    after = made.preflight("s", items)
    assert [message["role"] for message in after] == ["user", "assistant", "tool"]
    assert "[compact: " in after[1]["tool_calls"][0]["function"]["arguments"]
    assert after[2]["content"].startswith("[compact: ")
    saved: dict[str, Any] = events(made, name="pruned_messages")[0]["payload"]["saved"]
    assert set(saved) == {"compact"}


def test_the_shares_of_a_budget_that_is_too_small_add_up() -> None:
    made = manager(6000, guard={"min_room_share": 0.0})
    tools = [{"type": "function", "function": {"name": "f", "description": "does " * 200}}]
    rules = [{"role": "system", "content": "rule " * 2000}, {"role": "system", "content": "rule " * 3000}]
    with pytest.raises(InsufficientBudget) as caught:
        made.preflight("s", [*rules, user("hi"), says("yes")], tools=tools)
    error = caught.value
    fixed = error.shares.pop("tools and system prompt")
    assert fixed > 200
    assert set(error.shares) == {
        "system prompt",
        "the user's newest message",
        "the newest message",
        "the start of the reply",
    }
    assert sum(error.shares.values()) + fixed == error.needed > error.budget == 4500
    assert error.shares["system prompt"] > 5000
