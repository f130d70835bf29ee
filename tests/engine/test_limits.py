"""When a pass is due, and the numbers that decide it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from support.data import FIXTURES

from compact import CompactConfig
from compact.engine.limits import Decision, Rules, decide
from compact.runtime.model_rules import rules_for
from compact.tokens import Meter

CASES: list[dict[str, Any]] = yaml.safe_load((FIXTURES / "cases" / "forge.yaml").read_text("utf-8"))["cases"]
RULES = rules_for(CompactConfig(), 128_000)


def rules(**changes: Any) -> Rules:
    return replace(RULES, **changes)


@pytest.mark.parametrize("case", [c for c in CASES if c["rule"] == "should_compact"], ids=lambda c: c["id"])
def test_any_threshold_that_is_set_triggers_when_reached(case: dict[str, Any]) -> None:
    given = case["input"]
    if "on_turn_end" in given:
        # Acting at the end of a turn is the host's own decision here.
        assert case["id"] in ("F89", "F91", "F95")
        return
    pattern = given.get("pattern", "")
    chosen = rules(
        trigger=10**9,
        budget=10**9,
        token_threshold=given.get("token_threshold"),
        message_threshold=given.get("message_threshold"),
        turn_threshold=given.get("turn_threshold"),
    )
    decision = decide(chosen, tokens=given.get("tokens", 0), messages=len(pattern), turns=pattern.count("u"))
    assert decision.triggered == case["expected"]


def test_the_most_urgent_setting_gives_the_reason() -> None:
    chosen = rules(trigger=85, budget=98, token_threshold=50, message_threshold=10, turn_threshold=5)
    assert decide(chosen, tokens=99, messages=1, turns=1) == Decision(True, "budget")
    assert decide(chosen, tokens=98, messages=1, turns=1) == Decision(True, "trigger")
    assert decide(chosen, tokens=85, messages=1, turns=1) == Decision(True, "trigger")
    assert decide(chosen, tokens=84, messages=1, turns=1) == Decision(True, "tokens")
    assert decide(chosen, tokens=49, messages=10, turns=1) == Decision(True, "messages")
    assert decide(chosen, tokens=49, messages=9, turns=5) == Decision(True, "turns")
    assert decide(chosen, tokens=49, messages=9, turns=4) == Decision(False, "below")


def test_a_fit_lowers_every_number_to_it() -> None:
    fitted = rules(budget=900, trigger=800, target=500, summarize_above=850).fit(400)
    assert (fitted.budget, fitted.trigger, fitted.target, fitted.summarize_above) == (400, 400, 400, 400)
    assert fitted.least_room == 0


def test_a_pass_works_in_raw_tokens_of_messages() -> None:
    """The fixed part, the priming of the reply and the model's margin are taken off."""
    raw = rules(budget=1108, target=608, summarize_above=None).for_messages(100, 2.0, fold_all=True)
    assert (raw.budget, raw.target, raw.summarize_above) == (500, 250, 0)
    assert (raw.fixed, raw.fold_all) == (100, True)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_a_list_at_the_raw_budget_fits_and_where_counts_are_exact_one_more_token_does_not(model: str) -> None:
    meter = Meter(model)
    for budget in range(40, 240):
        raw = rules(budget=budget).for_messages(0, meter.factor, fold_all=False).budget
        messages = [
            {"role": "system", "content": "a"},
            {"role": "developer", "content": "a"},
            {"role": "user", "content": "a"},
        ]
        size = sum(meter.count_item(message, "chat") for message in messages)
        messages[2]["content"] = "a" + " a" * (raw - size)
        assert sum(meter.count_item(message, "chat") for message in messages) == raw
        assert meter.estimate(messages, dialect="chat").total <= budget
        messages[2]["content"] += " a"
        if meter.factor == 1.0:
            assert meter.estimate(messages, dialect="chat").total > budget
