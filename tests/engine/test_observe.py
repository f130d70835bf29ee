"""The provider's own count corrects the next estimate."""

from __future__ import annotations

import math

import pytest
from support.engine import events, manager, of_size, ratio, turns

from compact import CompactConfig, CompactManager
from compact.tokens import Meter


def test_a_larger_count_makes_the_session_act_earlier() -> None:
    made = manager(8000)
    items = of_size(made, turns(20, words=5), 5000)
    assert made.preflight("s", items) is items
    made.observe("s", input_tokens=7000)
    out = made.preflight("s", items)
    assert made.estimate(out).total * 1.4 < 0.85 * 8000


def test_an_exact_count_is_never_relaxed() -> None:
    made = manager(8000)
    items = of_size(made, turns(20, words=5), 6000)
    made.preflight("s", items)
    made.observe("s", input_tokens=3000)
    grown = of_size(made, turns(20, words=5), 6900)
    assert made.estimate(made.preflight("s", grown)).total < 6800


def test_the_margin_of_an_unknown_tokenizer_is_taken_back() -> None:
    config = CompactConfig(model="claude-sonnet-4-5", max_context_tokens=8000, archive={"adapter": "memory"})
    made = CompactManager(config)
    items = turns(10, words=5)
    while made.estimate(items).total < 6380:
        items[0]["content"] += " a"
    made.preflight("s", items)
    made.observe("s", input_tokens=4900)
    grown = [*items, *turns(1, words=30)]
    assert made.estimate(grown).total >= 6500
    assert made.preflight("s", grown) is grown


def test_nonsense_is_ignored() -> None:
    made = manager(8000)
    items = turns(2)
    made.preflight("s", items)
    made.observe("s", input_tokens=0)
    made.observe("s", input_tokens=10**9)
    assert made.preflight("s", items) is items


@pytest.mark.parametrize("entry", ["preflight", "call"])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-4o"])
def test_the_margin_is_that_of_the_model_that_was_called(entry: str, model: str) -> None:
    """Whatever the manager is configured for: only a model without a public tokenizer has a margin to take back."""
    other = "gpt-4o" if model.startswith("claude") else "claude-sonnet-4-5"
    made = CompactManager(CompactConfig(model=other, archive={"adapter": "memory"}))
    items = turns(20)
    if entry == "call":
        made.call("s", items, lambda _: {"usage": {"input_tokens": 100}}, model=model)
    else:
        made.preflight("s", items, model=model)
        made.observe("s", input_tokens=100)
    observed = made.sessions.get("s").observed[model]
    assert observed.counted == math.ceil(observed.ours / Meter(model).factor)
    assert ratio(made.sessions.get("s"), other) == 1
    assert Meter("claude-sonnet-4-5").factor > Meter("gpt-4o").factor == 1


def estimates(made: CompactManager) -> list[int]:
    return [event["properties"]["t_est"] for event in events(made, "s", "token_estimate")]


def test_the_estimate_is_the_observed_count_and_ours_of_what_came_since() -> None:
    """Also where the provider counts a system prompt that compact never sees."""
    made, items = manager(64_000), turns(4)
    ours = made.estimate(items).total
    made.preflight("s", items)
    made.observe("s", input_tokens=ours + 9_000)
    grown = [*items, *turns(6)[8:]]
    made.preflight("s", grown)
    assert estimates(made) == [ours, made.estimate(grown).total + 9_000]


def test_usage_of_a_request_from_before_a_compaction_is_ignored() -> None:
    """A late reply says nothing of what stands now: the session would be compacted again and again."""
    made, items = manager(8_000), turns(80)
    made.preflight("s", items[:40])
    late = made.prepared("s")
    made.manual_compact("s", items)
    after, steps = made.preflight("s", items), made.archive.steps("s")
    made.observe("s", input_tokens=3_900, request=late)
    assert made.preflight("s", items) == after
    assert estimates(made)[-1] == estimates(made)[-2]
    assert made.archive.steps("s") == steps


def test_a_late_reply_is_held_against_the_request_that_it_answers() -> None:
    made, items = manager(64_000), turns(40)
    made.preflight("s", items[:40])
    request, ours = made.prepared("s"), made.estimate(items[:40]).total
    made.preflight("s", items)
    made.observe("s", input_tokens=ours + 500, request=request)
    made.preflight("s", items)
    assert estimates(made)[-1] == made.estimate(items).total + 500


@pytest.mark.parametrize("counted", [0, 10**9])
def test_the_usage_of_an_aborted_call_and_a_count_that_cannot_be_true_change_nothing(counted: int) -> None:
    made, items = manager(8_000), turns(4)
    made.preflight("s", items)
    made.observe("s", input_tokens=counted)
    made.preflight("s", items)
    assert len(set(estimates(made))) == 1


def test_a_pass_fits_with_what_the_provider_counts_beside_what_we_see() -> None:
    made, items = manager(16_000), turns(40)
    ours = made.estimate(items).total
    made.preflight("s", items)
    made.observe("s", input_tokens=ours + 6_000)
    grown = [*items, *turns(160)[80:]]
    sent = made.preflight("s", grown)
    assert made.estimate(sent).total + 6_000 <= 16_000
    finished = events(made, "s", "finished")[-1]["properties"]
    assert finished["outcome"] == "compacted"
    assert finished["tokens_after"] >= made.estimate(sent).total + 6_000
    made.preflight("s", sent)
    assert made.archive.steps("s") == [1], "a second preflight right after is a no-op"
