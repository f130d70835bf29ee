"""A token estimator of the host: every number of its manager comes from that function, and a wrong one is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.engine import Item, pair, says, user

from compact import CompactConfig, CompactManager, ConfigError
from compact.harness import HarnessConfig, stabilize
from compact.tokens import Meter, counter


def words(text: str) -> int:
    return len(text.split())


def expected(items: list[Item], count: Callable[[str], int]) -> int:
    """The documented formula, for messages of a role and a text."""
    return 3 + sum(3 + count(one["role"]) + count(one["content"]) for one in items)


def manager(count: Any, model: str = "gpt-4o", **policy: Any) -> CompactManager:
    config = CompactConfig(
        model=model, max_context_tokens=16_000, archive={"adapter": "memory"}, policy=policy
    )
    return CompactManager(config, count_tokens=count)


TALK = [
    *(m for n in range(80) for m in (user(f"question {n}"), says(f"answer {n} " + "word " * 300))),
    user("go"),
]


@pytest.mark.parametrize("count", [len, words, lambda text: len(text) // 4, lambda text: 0])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "unheard-of"])
def test_the_estimate_is_the_hosts_own_count_for_every_model(count: Any, model: str) -> None:
    """No factor is put on it: the function counts in the model's tokens."""
    assert manager(count, model).estimate(TALK[:9]).total == expected(TALK[:9], count)
    assert Meter(model, count=count).count_text("a b  c") == count("a b  c")


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@pytest.mark.parametrize("count", [words, lambda text: len(text) // 3])
def test_trigger_budget_and_result_are_in_the_hosts_tokens(count: Any, model: str) -> None:
    made = manager(count, model)
    few = next(n for n in range(1, len(TALK), 2) if expected(TALK[: n + 2], count) >= 13_600)
    assert made.preflight("s", TALK[:few]) == TALK[:few], "85% of 16,000 is not reached"
    sent = made.preflight("s", TALK)
    assert len(sent) < len(TALK)
    assert expected(sent, count) <= 14_500
    assert list(made.archive.steps("s")) == [1]


def test_no_tokenizer_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever counts in a pass with calls, outputs and a summary asks the host."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a tokenizer was asked for")

    monkeypatch.setattr(counter.TiktokenCounter, "__init__", refuse)
    monkeypatch.setattr(counter.SplintrCounter, "__init__", refuse)
    monkeypatch.setattr(counter, "try_splintr", refuse)
    made = manager(words)
    calls = [message for n in range(30) for message in pair(f"c{n}", f"output {n} " * 400)]
    assert len(made.preflight("s", [*TALK, *calls, user("go on")])) < 150
    made.process_tool_result("x " * 30_000, "ls", "c1")
    made.call("s", [user("hi")], lambda messages: {"usage": {"prompt_tokens": 12}})
    stabilize([{"kind": "message", "content": "hi"}], HarnessConfig(count_tokens=words))


WRONG: dict[str, tuple[Any, str]] = {
    "no function": (5, "must be a function from a text to a number, got int"),
    "a name": ("cl100k_base", "must be a function from a text to a number, got str"),
    "a part of a token": (lambda text: 1.5, "must return a whole number >= 0, got 1.5"),
    "nothing": (lambda text: None, "must return a whole number >= 0, got None"),
    "a text": (lambda text: "12", "must return a whole number >= 0, got '12'"),
    "a verdict": (lambda text: True, "must return a whole number >= 0, got True"),
    "less than nothing": (lambda text: -1, "must return a whole number >= 0, got -1"),
    "tokens instead of their number": (str.split, r"must return a whole number >= 0, got \[\]"),
    "an error": (lambda text: 1 // len(text), "failed with ZeroDivisionError on a text of 0 characters"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_is_named_before_any_work(name: str) -> None:
    count, problem = WRONG[name]
    for build in (
        lambda: manager(count),
        lambda: HarnessConfig(count_tokens=count),
        lambda: Meter("gpt-4o", count=count).load(),
    ):
        with pytest.raises(ConfigError, match=f"count_tokens {problem}"):
            build()


def test_a_function_that_fails_later_is_named_too() -> None:
    def picky(text: str) -> int:
        return -5 if "zebra" in text else len(text)

    with pytest.raises(ConfigError, match="got -5 for a text of 5 characters"):
        manager(picky).preflight("s", [user("zebra")])


def test_the_harness_keeps_its_budget_in_the_hosts_tokens() -> None:
    given = [{"kind": "message", "content": "word " * 50} for _ in range(20)]
    done = stabilize(given, HarnessConfig(budget=500, count_tokens=len, keep_messages=0))
    assert done.report.tokens == 3 + len(done.artifacts) * (2 + 250) <= 500
    assert (
        len(stabilize(given, HarnessConfig(budget=500, count_tokens=words, keep_messages=0)).artifacts) == 9
    )
