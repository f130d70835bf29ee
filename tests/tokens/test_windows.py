from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.errors import ConfigError
from compact.tokens.models import match_model, model_table
from compact.tokens.windows import DEFAULT_TOKENS
from compact.windows import Window, check_window, window_of

INVALID: list[Any] = ["64000", math.nan, math.inf, -math.inf, -1, 0, 0.5, True, None, [], {}, 1 + 2j]


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gemini-1.5-pro", 1_000_000),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4-32k-0613", 32_768),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("openai/gpt-4o-2024-11-20", 128_000),
        ("openrouter/openai/gpt-4.1-mini", 1_047_576),
        ("azure/gpt-4o", 128_000),
        ("ft:gpt-4o:org::id", 128_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("bedrock/us.anthropic.claude-opus-4-6-v1", 1_000_000),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-3-7-sonnet-20250219-v1:0",
            200_000,
        ),
        ("vertex_ai/claude-opus-4-5@20251101", 200_000),
        ("models/gemini-2.0-flash-001", 1_000_000),
        ("accounts/fireworks/models/llama-v3p1-70b-instruct", 128_000),
        ("meta-llama/Llama-3-70b-chat-hf", 8_192),
        ("llama3.1:8b", 128_000),
        ("o1", 200_000),
        ("o1-mini-2024-09-12", 128_000),
        ("gpt-5.1-codex", 272_000),
        ("x-ai/grok-4-fast", 2_000_000),
        ("GPT-4O", 128_000),
    ],
)
def test_models_under_the_names_people_use(model: str, tokens: int) -> None:
    assert window_of(model) == Window(tokens, "built-in", known=True)


@pytest.mark.parametrize("model", ["my-model", "marco-o1", "gpt-4omni", "", None, "ft:", "/", "o10-mini"])
def test_an_unknown_model_gets_the_default_and_says_so(model: str | None) -> None:
    assert window_of(model) == Window(DEFAULT_TOKENS, "default", known=False)


def test_sources_in_order() -> None:
    """Configured, the user's table, the built-in table, the default."""
    windows = {"gpt-4o": 64_000}
    assert window_of("gpt-4o", 12_000, windows) == Window(12_000, "configured", known=True)
    assert window_of("gpt-4o", None, windows) == Window(64_000, "windows", known=True)
    assert window_of("gpt-4o") == Window(128_000, "built-in", known=True)
    assert window_of("mystery", None, windows) == Window(128_000, "default", known=False)


@pytest.mark.parametrize("invalid", INVALID)
def test_an_invalid_value_is_passed_over_in_favour_of_the_next_source(invalid: Any) -> None:
    assert window_of("gpt-4o", invalid).source == "built-in"
    assert window_of("gpt-4o", None, {"gpt-4o": invalid}).source == "built-in"
    assert window_of("mystery", invalid, {"mystery": invalid}).source == "default"
    assert window_of("gpt-4o", cap=invalid).tokens == 128_000


def test_a_smaller_cap_wins_and_a_larger_one_is_ignored() -> None:
    assert window_of("m", 64_000, cap=100_000) == Window(64_000, "configured", known=True)
    assert window_of("m", 64_000, cap=64_000) == Window(64_000, "configured", known=True)
    assert window_of("m", 64_000, cap=10_000) == Window(10_000, "cap", known=True)
    assert window_of("m", cap=10_000) == Window(10_000, "cap", known=False)


def test_the_users_table_takes_the_names_as_written_and_the_longest_wins() -> None:
    windows = {"gpt-4o": 1_000, "gpt-4o-mini": 2_000, "azure/team-a": 3_000, "Llama-3.1": 4_000}
    assert window_of("openai/gpt-4o-2024-08-06", None, windows).tokens == 1_000
    assert window_of("openai/gpt-4o-mini", None, windows).tokens == 2_000
    assert window_of("azure/team-a", None, windows).tokens == 3_000
    assert window_of("llama-v3p1-8b", None, windows).tokens == 4_000


def test_whole_floats_are_numbers_and_huge_ints_too() -> None:
    assert window_of("m", 64_000.0).tokens == 64_000
    assert window_of("m", 10**400).tokens == 10**400


def test_every_name_of_the_table_finds_itself() -> None:
    known = model_table().windows
    assert [name for name in known if match_model(name, known) != name] == []
    dated = [name for name in known if match_model(f"openrouter/x/{name}-2099-01-01:free", known) is None]
    assert dated == []


@given(st.text())
def test_any_name_has_a_window(model: str) -> None:
    assert window_of(model).tokens > 0


# The guard. The first cases have thresholds of their own, as their origin had: 16000 and 32000.
@pytest.mark.parametrize(
    ("tokens", "warn", "block"),
    [
        (24_000, True, False),
        (16_000, True, False),
        (15_999, True, True),
        (32_000, False, False),
        (12_000, True, True),
    ],
)
def test_guard_with_explicit_thresholds(tokens: int, warn: bool, block: bool) -> None:
    verdict = check_window(tokens, 16_000, 32_000)
    assert (verdict.tokens, verdict.warn, verdict.block) == (tokens, warn, block)
    assert (verdict.min_tokens, verdict.warn_tokens) == (16_000, 32_000)


@pytest.mark.parametrize(
    ("tokens", "reference", "warn_below", "hard_min", "warn", "block"),
    [
        (3_999, None, 8_000, 4_000, True, True),
        (4_000, None, 8_000, 4_000, True, False),
        (7_999, None, 8_000, 4_000, True, False),
        (8_000, None, 8_000, 4_000, False, False),
        (200_000, None, 40_000, 20_000, False, False),
        (15_000, 200_000, 40_000, 15_000, True, False),
        (3_000, 200_000, 40_000, 4_000, True, True),
        (0, None, 8_000, 4_000, True, True),
    ],
)
def test_guard_with_scaling_thresholds(
    tokens: int, reference: int | None, warn_below: int, hard_min: int, warn: bool, block: bool
) -> None:
    verdict = check_window(tokens, reference_tokens=reference)
    assert (verdict.tokens, verdict.warn, verdict.block) == (tokens, warn, block)
    assert (verdict.warn_tokens, verdict.min_tokens) == (warn_below, hard_min)


def test_a_blocked_window_says_what_it_is_what_it_needs_and_what_to_do() -> None:
    reason = check_window(3_000, source="max_context_tokens").reason
    for part in (
        "3000 tokens",
        "from max_context_tokens",
        "minimum is 4000",
        "server",
        "guard.min_context_tokens",
    ):
        assert part in reason


def test_a_small_window_is_warned_of_and_a_good_one_is_not_spoken_of() -> None:
    assert "5000 tokens is small: below 8000" in check_window(5_000).reason
    assert check_window(100_000).reason == ""


@pytest.mark.parametrize("given_", INVALID)
def test_an_invalid_window_is_blocked_whatever_the_thresholds(given_: Any) -> None:
    """Fail closed: an unknown size is no size."""
    for verdict in (check_window(given_), check_window(given_, 0, 0)):
        assert (verdict.tokens, verdict.warn, verdict.block) == (0, True, True)
        assert repr(given_) in verdict.reason


@pytest.mark.parametrize("name", ["min_tokens", "warn_tokens"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "5", True])
def test_wrong_thresholds_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be a number of tokens, 0 or more") as caught:
        check_window(100_000, **{name: value})
    assert caught.value.path == name


@given(tokens=st.integers(1, 10**7), reference=st.one_of(st.none(), st.integers(1, 10**7)))
def test_its_own_size_never_blocks_a_window_of_four_thousand_or_more(
    tokens: int, reference: int | None
) -> None:
    verdict = check_window(tokens, reference_tokens=reference)
    assert verdict.block == (tokens < 4_000)
    assert verdict.warn or not verdict.block
    assert bool(verdict.reason) == verdict.warn
