"""The prompt cache of a stand-in: what each provider's own client is told that it read and wrote."""

from __future__ import annotations

from typing import Any

import anthropic
import boto3  # type: ignore[import-untyped]
import openai
import pytest
from botocore.config import Config  # type: ignore[import-untyped]
from google import genai

from compact.tools.standins import Provider, Reply, serving

WORDS = "A rule of the house that stands in every request. "
RULES = WORDS * 120
"""About 1,300 tokens."""
MARK: Any = {"type": "ephemeral"}
LONG_MARK: Any = {"type": "ephemeral", "ttl": "1h"}


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def says(text: str, mark: Any = None) -> Any:
    block = {"type": "text", "text": text}
    return {"role": "user", "content": [{**block, "cache_control": mark} if mark else block]}


class Claude:
    """Anthropic's client; each call returns what was fresh, read, and written for 5 minutes and for an hour."""

    def __init__(self, provider: Provider, model: str = "claude-sonnet-5") -> None:
        self.client = anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)
        self.model = model

    def __call__(self, messages: Any, **more: Any) -> tuple[int, int, int, int]:
        usage = self.client.messages.create(model=self.model, max_tokens=9, messages=messages, **more).usage
        assert usage.cache_creation is not None
        short, long = (
            usage.cache_creation.ephemeral_5m_input_tokens,
            usage.cache_creation.ephemeral_1h_input_tokens,
        )
        assert usage.cache_creation_input_tokens == short + long
        assert usage.cache_read_input_tokens is not None
        return usage.input_tokens, usage.cache_read_input_tokens, short, long


def test_what_is_marked_is_written_once_and_read_until_its_life_ends() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider:
        ask = Claude(provider)
        fresh, read, written, _ = ask([says(RULES, MARK), says("One")])
        assert (read, written > 1_024, fresh < 30) == (0, True, True)
        assert ask([says(RULES, MARK), says("Another")])[1:] == (written, 0, 0)
        clock.now += 299
        assert ask([says(RULES, MARK), says("Two")])[1:] == (written, 0, 0), "reading keeps it alive"
        clock.now += 299
        assert ask([says(RULES, MARK), says("Three")])[1] == written
        clock.now += 300
        assert ask([says(RULES, MARK), says("Four")])[1:] == (0, written, 0)
        assert ask([says(RULES), says("No mark")])[1:] == (0, 0, 0)


def test_a_moving_mark_reads_what_the_last_one_wrote() -> None:
    with serving(["Yes."], clock=Clock()) as provider:
        ask = Claude(provider)
        messages = [says(RULES)]
        whole = 0
        for turn in range(4):
            fresh, read, written, _ = ask([*messages, says(f"Turn {turn}", MARK)])
            assert read == whole
            whole = read + written
            assert fresh == 0, "everything up to the mark is read or written"
            messages += [says(f"Turn {turn}"), {"role": "assistant", "content": "Yes."}]


def test_an_edit_loses_what_stands_behind_it() -> None:
    with serving(["Yes."], clock=Clock()) as provider:
        ask = Claude(provider)
        system: Any = [{"type": "text", "text": RULES, "cache_control": MARK}]
        first = ask([says(RULES, MARK)], system=system)
        again = ask([says(RULES + "!", MARK)], system=system)
        assert first[1] == 0
        assert 0 < again[1] < first[2], "the system prompt is still read"
        assert ask([says(RULES, MARK)], system=system, tool_choice={"type": "auto"})[1] == again[1]
        tools: Any = [{"name": "read", "input_schema": {"type": "object"}}]
        assert ask([says(RULES, MARK)], system=system, tools=tools)[1] == 0


def test_a_mark_looks_back_twenty_blocks() -> None:
    with serving(["Yes."], clock=Clock()) as provider:
        ask = Claude(provider)
        blocks = [{"type": "text", "text": RULES}, *[{"type": "text", "text": "."}] * 40]

        def marked(place: int) -> Any:
            block = {**blocks[place], "cache_control": MARK}
            return [{"role": "user", "content": [*blocks[:place], block, *blocks[place + 1 :]]}]

        written = ask(marked(0))[2]
        assert ask(marked(19))[1] == written
        assert ask(marked(38))[1] > written, "the twentieth block, counted from the mark"
        ask_other = Claude(provider, "claude-sonnet-4-6")
        assert ask_other(marked(0))[1] == 0, "models share nothing"
        assert ask_other(marked(20))[1] == 0, "one block too far"


def test_long_and_short_lives_are_billed_apart() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider:
        ask = Claude(provider)
        first = ask([says(RULES, LONG_MARK), says(RULES + "?", MARK)])
        assert first[2] > 0 < first[3]
        clock.now = 3_599
        later = ask([says(RULES, LONG_MARK), says(RULES + "?", MARK)])
        assert later[1:] == (first[3], first[2], 0)


def test_a_request_of_its_own_mark_caches_what_it_can() -> None:
    with serving(["Yes."], clock=Clock()) as provider:
        ask = Claude(provider)
        written = ask([says(RULES)], cache_control=MARK)[2]
        assert written > 1_024
        assert ask([says(RULES), says("More")], cache_control=MARK)[1] == written


@pytest.mark.parametrize(
    ("model", "smallest"),
    [("claude-opus-5", 512), ("claude-sonnet-5", 1_024), ("claude-opus-4-7", 2_048), ("claude-opus-4-6", 4_096)],
)  # fmt: skip
def test_what_is_too_small_is_not_cached(model: str, smallest: int) -> None:
    with serving(["Yes."], clock=Clock(), count=lambda _, body: len(str(body["messages"]))) as provider:
        ask = Claude(provider, model)
        assert ask([says("x" * (smallest - 200), MARK)])[2] == 0
        assert ask([says("x" * smallest, MARK)])[2] > 0


def test_a_refused_request_leaves_nothing_behind() -> None:
    from compact.tools.standins import Fault

    script: Any = [Fault("overloaded"), "Yes."]
    with serving(script, clock=Clock()) as provider:
        ask = Claude(provider)
        with pytest.raises(anthropic.APIStatusError):
            ask([says(RULES, MARK)])
        assert ask([says(RULES, MARK)])[1] == 0


def gpt(provider: Provider) -> Any:
    return openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)


def test_openai_reads_what_it_was_sent_before_in_steps_of_128() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider, gpt(provider) as client:
        head = [{"role": "system", "content": RULES}]

        def ask(words: str, **more: Any) -> int:
            messages = [*head, {"role": "user", "content": words}]
            usage = client.chat.completions.create(model="gpt-4o", messages=messages, **more).usage
            assert usage.prompt_tokens == provider.requests[-1].tokens, "what is cached is a part of it"
            return int(usage.prompt_tokens_details.cached_tokens)

        assert ask("One") == 0
        read = ask("Two")
        assert read >= 1_024
        assert read % 128 == 0
        clock.now += 301
        assert ask("Three") == 0
        ask("Four", prompt_cache_retention="24h")
        clock.now += 86_000
        assert ask("Five") == read


def test_newer_models_of_openai_mark_their_newest_message_and_bill_the_writing() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider, gpt(provider) as client:

        def ask(items: Any, **more: Any) -> tuple[int, int]:
            usage = client.responses.create(model="gpt-5.6", input=items, **more).usage
            details = usage.input_tokens_details
            return details.cached_tokens, details.cache_write_tokens

        one, two = ({"role": "user", "content": each} for each in (RULES, "More"))
        read, written = ask([one])
        assert (read, written) == (0, provider.requests[0].tokens)
        assert ask([one, two]) == (written, provider.requests[1].tokens - written)
        clock.now += 1_801
        assert ask([one])[0] == 0
        block = {"type": "input_text", "text": RULES, "prompt_cache_breakpoint": {"mode": "explicit"}}
        explicit = {"prompt_cache_options": {"mode": "explicit"}}
        marked = {"role": "user", "content": [{**block, "text": RULES + "!"}]}
        written = ask([marked, two], extra_body=explicit)[1]
        assert written < provider.requests[-1].tokens
        assert ask([two], extra_body=explicit) == (0, 0)


def test_gemini_reads_what_it_was_sent_before() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider:
        client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=provider.url))

        def ask(words: str, model: str = "gemini-2.5-flash") -> int:
            contents: Any = [{"role": "user", "parts": [{"text": each}]} for each in (RULES * 2, words)]
            usage = client.models.generate_content(model=model, contents=contents).usage_metadata
            assert usage is not None
            return usage.cached_content_token_count or 0

        assert ask("One") == 0
        assert ask("Two") > 2_048
        assert ask("Three", "gemini-3.8-flash") == ask("Four", "gemini-3.8-flash") == 0, "it wants 4,096"
        clock.now += 301
        assert ask("Five") == 0
        client.close()


def test_bedrock_caches_up_to_its_points() -> None:
    clock = Clock()
    with serving(["Yes."], clock=clock) as provider:
        client = boto3.client(
            "bedrock-runtime",
            endpoint_url=provider.url,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"max_attempts": 1}),
        )

        def ask(words: str, point: Any) -> Any:
            content: Any = [{"text": RULES}, {"cachePoint": point}, {"text": words}]
            return client.converse(
                modelId="anthropic.claude-sonnet-5", messages=[{"role": "user", "content": content}]
            )["usage"]

        first = ask("One", {"type": "default"})
        written = first["cacheWriteInputTokens"]
        assert first["cacheDetails"] == [{"ttl": "5m", "inputTokens": written}]
        assert first["inputTokens"] + written + first["outputTokens"] == first["totalTokens"]
        again = ask("Two", {"type": "default"})
        assert (again["cacheReadInputTokens"], again["cacheWriteInputTokens"]) == (written, 0)
        clock.now += 301
        assert ask("Three", {"type": "default", "ttl": "1h"})["cacheDetails"] == [
            {"ttl": "1h", "inputTokens": written}
        ]
        client.close()


def test_a_script_may_say_what_was_cached() -> None:
    with serving([Reply("Yes.", cached_tokens=0, written_tokens=0)], clock=Clock()) as provider:
        ask = Claude(provider)
        for _ in range(2):
            assert ask([says(RULES, MARK)])[1:] == (0, 0, 0)
