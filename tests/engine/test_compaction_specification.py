"""The scenarios of the compaction specification that concern the engine, each by its name, with its own numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.engine import (
    assert_good,
    events,
    manager,
    of_size,
    pair,
    says,
    summary_of,
    turns,
    user,
)
from support.tokens import published_encoding

from compact import CompactError, InsufficientBudget
from compact.engine import plan
from compact.messages import units
from compact.testing import ScriptedSummarizer
from compact.tokens.counter import counter_for


def test_accurate_token_estimation_using_tiktoken() -> None:
    """Each share, to the token, by tiktoken itself: OpenAI's published formula, and the stated frame of calls and tools."""
    encoded = published_encoding("o200k_base").encode_ordinary

    def framed(*texts: str) -> int:
        """A message costs 1, and each of its strings its tokens and 1."""
        return 1 + sum(1 + len(encoded(text)) for text in texts)

    made = manager()
    system = {"role": "system", "content": "You are careful."}
    developer = {"role": "developer", "content": "Answer in English."}
    talk = turns(10)
    plain = [framed(item["role"], item["content"]) for item in talk]
    assert plain == [3 + len(encoded(item["role"])) + len(encoded(item["content"])) for item in talk]
    calls = [message for n in range(5) for message in pair(f"c{n}", f"output {n}")]
    # The id of a call is not billed by its length: in a call and in its result, an id costs the same whatever it is.
    call_id = 1 + 6
    called = [framed("assistant", "read_file", '{"path": "a.py"}') + call_id for _ in range(5)]
    answered = [framed("tool", f"output {n}") + call_id for n in range(5)]
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
    written = '{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}'
    estimate = made.estimate([system, developer, *talk, *calls], tools)
    assert estimate.system == framed("system", "You are careful.")
    assert estimate.developer == framed("developer", "Answer in English.")
    assert estimate.messages == sum(plain) + sum(called) + sum(answered) + 3
    assert estimate.tools_schema == len(encoded(written)) + 10 + 12
    assert estimate.total == estimate.system + estimate.developer + estimate.tools_schema + estimate.messages


def test_budget_calculation_with_buffer_reserve() -> None:
    assert manager(128_000, policy={"hard_cap_buffer": 1500}).config.budget(128_000) == 126_500


def test_automatic_trigger_at_85_percent_threshold() -> None:
    made = manager(policy={"trigger_pct": 0.85})
    items = of_size(made, turns(30), 108_800)
    after = made.preflight("s", items)
    assert made.estimate(after).total < 108_800
    decision = events(made, name="trigger_decision")[0]["properties"]
    assert (decision["triggered"], decision["reason"]) == (True, "trigger")


def test_no_trigger_below_threshold() -> None:
    made = manager(policy={"trigger_pct": 0.85})
    items = of_size(made, turns(30), 96_000)
    assert made.preflight("s", items) is items
    decision = events(made, name="trigger_decision")[0]["properties"]
    assert (decision["triggered"], decision["reason"]) == (False, "below")
    assert of_size(made, turns(3), 108_799) is not None
    assert made.preflight("t", of_size(made, turns(3), 108_799))[0]["content"].startswith(" a a")


def test_manual_compaction_via_api() -> None:
    made = manager()
    items = turns(20)
    after = made.manual_compact("s", items, note="user-requested")
    assert after[-12:] == items[-12:]
    assert len(after) == 13
    decision = events(made, name="trigger_decision")[0]["properties"]
    assert (decision["triggered"], decision["reason"], decision["note"]) == (True, "manual", "user-requested")


def test_protected_message_never_pruned() -> None:
    summarizer = ScriptedSummarizer()
    made = manager(summarizer=summarizer)
    protected = user("Never touch production.", meta={"protected": True})
    items = [*turns(5), protected, *turns(20)]
    after = made.manual_compact("s", items)
    assert any(message is protected for message in after)
    assert all(
        "Never touch production" not in m.text for request in summarizer.requests for m in request.messages
    )
    assert_good(made, items, after)


def test_role_based_protection() -> None:
    made = manager()
    system, developer = {"role": "system", "content": "rules"}, {"role": "developer", "content": "more rules"}
    items = [system, *turns(10), developer, *turns(10)]
    after = made.manual_compact("s", items)
    assert after[0] is system
    assert any(message is developer for message in after)


def test_budget_exhaustion_with_protected_only_messages() -> None:
    made = manager(8000)
    items = [{"role": "system", "content": "rule " * 9000}, user("hi"), says("yes")]
    with pytest.raises(InsufficientBudget) as caught:
        made.preflight("s", items)
    error = caught.value
    assert isinstance(error, CompactError)
    assert error.code == "InsufficientBudget"
    assert error.needed > error.budget
    assert "system prompt 9,0" in str(error)
    assert "larger window" in error.hint
    assert error.hint.startswith("Shorten the system prompt")
    failure = events(made, name="error")[0]
    assert (failure["status"], failure["properties"]["error_type"]) == ("error", "InsufficientBudget")


def test_keep_recent_turns_policy() -> None:
    """20 pairs, keep 6: the last 6 are unchanged, the older 14 are summarized."""
    made = manager(policy={"keep_recent_turns": 6})
    items = turns(20)
    after = made.manual_compact("s", items)
    assert all(a is b for a, b in zip(after[-12:], items[-12:], strict=True))
    assert len(after) == 13
    created = events(made, name="summary_created")[0]["properties"]
    assert created["input_messages"] == 28


def test_keep_tool_io_pairs_policy() -> None:
    """10 tool pairs, keep 4: the last 4 are unchanged, the older 6 may be summarized."""
    made = manager(policy={"keep_tool_io_pairs": 4})
    pairs = [message for n in range(10) for message in pair(f"c{n}", f"output {n} " * 20)]
    items = [user("Look at all files."), *pairs]
    after = made.manual_compact("s", items)
    assert [m.get("tool_call_id") for m in after if m["role"] == "tool"] == ["c6", "c7", "c8", "c9"]
    assert all(any(a is b for b in after) for a in items[-8:])
    assert_good(made, items, after)


@pytest.mark.parametrize("keep", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [400, 1_000, 3_000])
def test_keep_tool_io_pairs_policy_holds_in_automatic_passes(keep: int, size: int) -> None:
    """Whatever else must go, and however often: the newest pairs stand whole as long as they fit the budget."""
    made = manager(32_000, policy={"keep_tool_io_pairs": keep})
    history: list[dict[str, Any]] = [user("Look at all files.")]
    passes = 0
    for n in range(200):
        history += pair(f"c{n}", f" word{n}" * (size // 2))
        sent = made.preflight("s", history)
        if len(made.archive.steps("s")) == passes:
            history = list(sent)
            continue
        passes = len(made.archive.steps("s"))
        newest = history[-2 * keep :]
        fits = made.estimate(newest).total < 28_000
        assert not fits or all(any(a is b for b in sent) for a in newest)
        done = events(made, name="pruned_messages")[-1]["properties"]["kept"]
        assert done["tool_pairs"] == keep or not fits
        history = list(sent)
        if passes == 4:
            return
    assert passes == 4


def test_incremental_reduction_on_budget_overflow() -> None:
    """Six large turns do not fit: fewer are kept, and what no longer is kept stands in the summary."""
    summarizer = ScriptedSummarizer("they talked")
    made = manager(8000, summarizer=summarizer)
    items = turns(10, words=150)
    after = made.preflight("s", items)
    assert_good(made, items, after)
    kept = [m for m in after if m["role"] == "user"]
    assert 1 <= len(kept) < 6
    assert len(summarizer.requests[-1].messages) == 20 - len(after) + 1, "nothing drops out unsummarized"
    assert after[-1] is items[-1]


def test_three_layer_output_structure() -> None:
    made = manager()
    system = {"role": "system", "content": "rules"}
    items = [system, *turns(20)]
    after = made.manual_compact("s", items)
    assert after[0] is system
    assert after[1]["role"] == "assistant"
    assert after[1]["content"].startswith("<COMPACT-SUMMARY v1>")
    assert after[2:] == items[-12:]
    pruned = events(made, name="pruned_messages")[0]["properties"]
    assert pruned["layers"] == {"pinned": 1, "summary": 1, "recent": 12}
    assert pruned["pruned_count"] == 28
    assert pruned["tokens_after"] < pruned["tokens_before"]


def test_rolling_session_summary_replacement() -> None:
    summarizer = ScriptedSummarizer("facts of round 1", "facts of round 2")
    made = manager(summarizer=summarizer)
    first = made.manual_compact("s", turns(20))
    second = made.manual_compact("s", [*first, *turns(20)])
    assert "facts of round 1" in summarizer.requests[1].previous
    assert summary_of(second).startswith("<COMPACT-SUMMARY v2>")
    assert "facts of round 2" in summary_of(second)


def test_token_estimate_event() -> None:
    made = manager()
    made.preflight("s", [{"role": "system", "content": "x"}, *turns(2)])
    properties = events(made, name="token_estimate")[0]["properties"]
    assert set(properties) == {"model", "t_est", "max_tokens", "usage_pct", "breakdown"}
    assert set(properties["breakdown"]) == {"system", "developer", "tools_schema", "messages"}
    assert properties["max_tokens"] == 128_000


def test_trigger_decision_event() -> None:
    made = manager()
    made.manual_compact("s", turns(20))
    properties = events(made, name="trigger_decision")[0]["properties"]
    assert properties["policy"] == {"trigger_pct": 0.85, "hard_cap_buffer": 1500, "strategy": "task_state"}
    assert properties["planned"] == {
        "kept": {"pinned": 0, "recent_turns": 6, "tool_pairs": 0},
        "pruned_count": 28,
    }


def test_summary_created_event() -> None:
    made = manager(summarizer=ScriptedSummarizer("in short"))
    made.manual_compact("s", turns(20))
    event = events(made, name="summary_created")[0]
    assert event["properties"]["strategy"] == "task_state"
    assert 0 < event["properties"]["compression_ratio"] < 1
    assert "in short" in event["payload"]["summary"]


@pytest.mark.sweep
@pytest.mark.no_cover
def test_property_test_invariants() -> None:
    """100 runs with random counts and content: protected items stay, and the result is within the budget."""
    for seed in range(100):
        chance = random.Random(seed)
        made = manager(chance.choice([6000, 9000, 16_000]))
        items = []
        for n in range(chance.randint(1, 60)):
            text = " ".join(
                chance.choice(["alpha", "beta", "Ω", "路径", "x=1"]) for _ in range(chance.randint(1, 300))
            )
            protected = {"meta": {"protected": True}} if chance.random() < 0.05 else {}
            items.append(user(f"{n} {text}", **protected) if n % 2 == 0 else says(f"{n} {text}", **protected))
        try:
            after = made.preflight("s", items)
        except InsufficientBudget:
            continue
        assert_good(made, items, after)


def test_synthetic_long_session_test() -> None:
    """Three times the window, many rounds, never InsufficientBudget, always below the budget."""
    made = manager(128_000)
    history: list[dict[str, object]] = [{"role": "system", "content": "rules"}]
    total = turn = 0
    filler = [" ".join(f"w{n}k{k}" for k in range(700)) for n in range(20)]
    while total < 384_000:
        new = [
            user(f"Do part {turn}. {filler[turn % 20]}"),
            says(f"Part {turn} is done. {filler[(turn + 7) % 20]}"),
        ]
        turn += 1
        total += made.estimate(new).total
        history = made.preflight("s", [*history, *new])
        assert made.estimate(history).total <= 126_500
    assert len(events(made, name="summary_created")) >= 3


def test_the_reduction_takes_one_turn_then_one_pair_down_to_one_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is kept is too much: every combination is tried, in this order."""
    tried: list[tuple[int, int]] = []
    removable = units.removable

    def noting(units: Any, turns: int, pairs: int) -> Any:
        tried.append((turns, pairs))
        return removable(units, turns, pairs)

    made = manager(6000, policy={"keep_recent_turns": 3, "keep_tool_io_pairs": 3})
    talk = [m for n in range(4) for m in (user("q " * 900), *pair(f"c{n}", "r " * 900), says("a " * 900))]
    items = [*talk, user("now " * 3500)]
    monkeypatch.setattr(plan, "removable", noting)
    after = made.preflight("s", items)
    monkeypatch.undo()
    order = list(dict.fromkeys(tried))
    assert order == [(3, 3), (2, 3), (2, 2), (1, 2), (1, 1)]
    assert_good(made, items, after)


def test_still_over_the_budget_at_one_turn_and_one_pair() -> None:
    """The protected part alone would fit; with the user's newest message, which is never cut, it does not."""
    made = manager(6000, guard={"min_room_share": 0.0})
    rules = of_size(made, [user("hi")], 4490)[0]["content"]
    items = [{"role": "system", "content": rules}, *turns(9), user("q " * 4000)]
    with pytest.raises(InsufficientBudget) as caught:
        made.preflight("s", items)
    assert caught.value.needed > caught.value.budget > caught.value.shares["system prompt"]
    assert events(made, name="error")[0]["properties"]["error_type"] == "InsufficientBudget"


@pytest.mark.sweep
@pytest.mark.no_cover
@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_soak(runs: int) -> None:
    """That many sessions past their window, against a model that refuses what is too long: it never has to."""
    reference = counter_for("o200k_base", fast=False)
    refused: list[int] = []
    steps = 0
    for seed in range(runs):
        chance = random.Random(seed)
        window = chance.choice([4000, 6000, 9000])

        def answer(sent: list[dict[str, Any]], window: int = window) -> dict[str, Any]:
            tokens = sum(reference.count(str(item["content"] or "")) for item in sent)
            if tokens > window:
                refused.append(tokens)
                raise ValueError(f"maximum context length is {window} tokens, you sent {tokens}")
            return says("Understood, going on.")

        history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
        with manager(window) as made:
            for n in range(8):
                history += [user(f"Read part {n}."), *pair(f"c{n}", f"line {n} " * chance.randint(50, 900))]
                history.append(made.call("s", history, answer))
            steps += len(made.archive.steps("s"))
    assert refused == []
    assert steps >= runs, "hardly a session was compacted: the test would prove nothing"
