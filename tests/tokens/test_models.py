from __future__ import annotations

import pytest
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from compact.tokens.models import UNKNOWN, model_table, profile_of

CHAT_PREFIXES = [
    name for name in MODEL_PREFIX_TO_ENCODING if not name.startswith(("ft:davinci", "ft:babbage"))
]


@pytest.mark.parametrize("prefix", CHAT_PREFIXES)
def test_openai_names_get_the_encoding_that_tiktoken_names(prefix: str) -> None:
    found = profile_of(f"{prefix}2099-01-01" if prefix.endswith("-") else prefix)
    # o200k_harmony is o200k_base with more special tokens, and those we never match.
    expected = MODEL_PREFIX_TO_ENCODING[prefix].replace("harmony", "base")
    assert (found.encoding, found.exact, found.percent) == (expected, True, 100)


@pytest.mark.parametrize(
    "name", ["gpt-4", "gpt-4o", "gpt-4.1", "gpt-5", "gpt-3.5-turbo", "o1", "o3", "o4-mini"]
)
def test_bare_openai_names_too(name: str) -> None:
    assert profile_of(name).encoding == MODEL_TO_ENCODING[name]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("openai/gpt-4o-2024-11-20", "o200k_base"),
        ("azure/gpt-4o", "o200k_base"),
        ("AZURE/GPT-4-Turbo-2024-04-09", "cl100k_base"),
        ("openrouter/openai/gpt-4.1-mini", "o200k_base"),
        ("ft:gpt-4o:org::id", "o200k_base"),
        ("ft:gpt-3.5-turbo-0125:acme:claude-sonnet-4-5:x", "cl100k_base"),
        ("gpt-4-1106-preview", "cl100k_base"),
        ("gpt-5.1-codex-max", "o200k_base"),
        ("gpt-5.6-luna", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("openai.gpt-oss-120b-1:0", "o200k_base"),
        ("codex-mini-latest", "o200k_base"),
        ("o3-deep-research", "o200k_base"),
        ("o4-mini-high", "o200k_base"),
        ("my-gpt-4o-deployment", "o200k_base"),
    ],
)
def test_openai_models_under_any_name_are_exact(model: str, encoding: str) -> None:
    assert (profile_of(model).encoding, profile_of(model).exact) == (encoding, True)


@pytest.mark.parametrize(
    ("model", "percent"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 117),
        ("claude-3-5-sonnet-latest", 117),
        ("claude-opus-4-6", 117),
        ("claude-opus-4-7", 157),
        ("anthropic/claude-opus-5.5", 157),
        ("claude-sonnet-5", 157),
        ("models/gemini-2.0-flash-001", 130),
        ("vertex_ai/gemini-3.1-pro-preview", 130),
        ("accounts/fireworks/models/llama-v3p1-70b-instruct", 110),
        ("meta-llama/Llama-4-Maverick", 110),
        ("llama2:13b", 145),
        ("mistral-large-latest", 130),
        ("open-mixtral-8x7b", 145),
        ("Qwen/Qwen3-Coder-480B", 125),
        ("deepseek-ai/DeepSeek-V3.1", 115),
        ("moonshotai/kimi-k2-thinking", 105),
        ("z-ai/glm-4.6", 110),
        ("x-ai/grok-4", 130),
        ("cohere.command-r-plus-v1:0", 130),
        ("marco-o1", 135),
        ("something-new", 135),
        ("", 135),
    ],
)
def test_other_models_are_rounded_up(model: str, percent: int) -> None:
    found = profile_of(model)
    assert (found.encoding, found.exact, found.percent) == ("cl100k_base", False, percent)


def test_an_openai_model_of_a_later_generation_is_not_called_exact() -> None:
    found = profile_of("gpt-6-astra")
    assert (found.encoding, found.exact, found.percent) == ("o200k_base", False, 110)


def test_unknown_names_get_the_stated_profile() -> None:
    assert profile_of("no-such-model") is UNKNOWN


def test_only_exact_profiles_have_no_margin() -> None:
    for name, profile in model_table().profiles.items():
        assert (profile.percent == 100) == profile.exact, name
