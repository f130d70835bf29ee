"""The provider's own count corrects the next estimate."""

from __future__ import annotations

import math

import pytest
from support.engine import manager, of_size, ratio, turns

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
