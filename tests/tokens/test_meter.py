from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.strategies import examples
from support.tokens import generated, published_encoding, transcripts

from compact.errors import ConfigError, MessageError, MissingExtra
from compact.messages import CallId, Image, Message, ToolCall
from compact.messages.dialects import NAMES, get, write
from compact.tokens import Estimate, Meter, counter, estimate, profile_of
from compact.tokens.images import image_tokens
from compact.tokens.meter import MESSAGE_TOKENS, STRING_TOKENS

TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You are terse."},
    {"role": "developer", "content": "Answer in English."},
    {"role": "user", "name": "ada", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path":"a.py"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "print('hello')\n"},
    {"role": "assistant", "content": "A greeting."},
]


def tokens(text: str, encoding: str = "o200k_base") -> int:
    return len(published_encoding(encoding).encode_ordinary(text))


def test_a_plain_message_costs_three_and_its_strings() -> None:
    meter = Meter("gpt-4o")
    message = {"role": "user", "content": "hello world"}
    assert meter.count_item(message, "chat") == 3 + tokens("user") + tokens("hello world")
    named = {**message, "name": "ada"}
    assert meter.count_item(named, "chat") == meter.count_item(message, "chat") + 1 + tokens("ada")


CALL_TOKENS = 6
"""Of a call, and of a result, in place of its id: OpenAI's frame (`call` in the model table)."""


def _tokens_of(piece: Any) -> int:
    return CALL_TOKENS if type(piece) is CallId else tokens(str(piece))


def test_every_string_of_a_call_and_of_its_result_is_counted() -> None:
    meter = Meter("gpt-4o")
    call, result = CHAT[3], CHAT[4]
    strings = ["assistant", "read_file", '{"path":"a.py"}']
    assert meter.count_item(call, "chat") == 1 + 1 + CALL_TOKENS + sum(1 + tokens(text) for text in strings)
    strings = ["tool", "print('hello')\n"]
    assert meter.count_item(result, "chat") == 1 + 1 + CALL_TOKENS + sum(1 + tokens(text) for text in strings)


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "responses", "converse", "ai_sdk"])
def test_the_length_of_a_call_id_costs_nothing_where_no_provider_bills_it(dialect: str) -> None:
    """Measured on recorded usage (docs/TOKENS.md); for other models an id is text like any other."""

    def entries(call_id: str) -> list[Any]:
        return list(
            write(get(dialect), [Message("assistant", (ToolCall(call_id, "read_file", {"path": "a.py"}),))])
        )

    for model in ("gpt-4o", "gpt-5", "claude-sonnet-4-5", "claude-opus-4-8", "claude-fable-5-1"):
        meter = Meter(model)
        (short,), (long,) = entries("c1"), entries("toolu_01DbwMYdYK4p1GGNkhg1PQab")
        assert meter.count_item(short, dialect) == meter.count_item(long, dialect), model
    other = Meter("qwen3-coder")
    assert other.count_item(short, dialect) < other.count_item(long, dialect)


def test_shares_add_up_to_the_total() -> None:
    found = estimate(CHAT, "gpt-4o", tools=[TOOL])
    by_hand = [1 + sum(1 + _tokens_of(piece) for piece in get("chat").pieces(message)) for message in CHAT]
    assert (found.system, found.developer) == (by_hand[0], by_hand[1])
    assert found.messages == sum(by_hand[2:]) + 3
    assert found.tools_schema == 12 + 10 + tokens(json.dumps(TOOL, separators=(",", ":")))
    assert found.total == found.system + found.developer + found.tools_schema + found.messages


def test_usage_is_a_fraction_of_the_window() -> None:
    assert estimate(CHAT, "gpt-4o").max_tokens == 128_000
    found = estimate(CHAT, "gpt-4o", max_tokens=100)
    assert (found.usage_pct, found.max_tokens, found.model) == (found.total / 100, 100, "gpt-4o")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_window_that_is_not_positive_is_refused(limit: int) -> None:
    with pytest.raises(ConfigError, match="max_tokens must be a positive number of tokens"):
        estimate(CHAT, max_tokens=limit)


def test_nothing_costs_nothing() -> None:
    assert estimate([]) == Estimate(0, 0, 0, 0, 0, 0.0, 128_000, "gpt-4o")


def test_a_model_without_public_tokenizer_is_rounded_up_share_by_share() -> None:
    meter = Meter("claude-sonnet-4-5")
    assert (meter.encoding, meter.factor, meter.exact) == ("cl100k_base", 1.17, False)
    found = meter.estimate(CHAT, [TOOL])
    raw = [meter.count_item(message, "chat") for message in CHAT]
    assert found.system == math.ceil(raw[0] * 1.17)
    assert found.developer == math.ceil(raw[1] * 1.17)
    assert found.messages == math.ceil((sum(raw[2:]) + 3) * 1.17)
    assert found.tools_schema == math.ceil(meter.count_tools([TOOL]) * 1.17)
    assert found.total == found.system + found.developer + found.tools_schema + found.messages


@pytest.mark.parametrize(
    ("model", "raw", "own"), [("gpt-4o", 7, 7), ("grok-4", 10, 13), ("llama-3.1", 100, 110)]
)
def test_scale_rounds_up_and_knows_no_floating_point_dust(model: str, raw: int, own: int) -> None:
    assert Meter(model).scale(raw) == own


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize("size", [(640, 480), (1024, 1024), (3000, 200)])
def test_pictures_are_not_rounded_up_twice(model: str, size: tuple[int, int]) -> None:
    meter = Meter(model)
    image = Image("https://example.org/a.png", width=size[0], height=size[1])
    dialect: Any = SimpleNamespace(NAME="an image", EXPECTED="", pieces=lambda item: [item])
    raw = meter.count_item(image, dialect) - MESSAGE_TOKENS - STRING_TOKENS
    own = image_tokens(image, profile_of(model).images)
    assert own <= meter.scale(raw) <= own + math.ceil(meter.factor)


def test_an_inline_picture_is_counted_by_its_size_in_every_dialect() -> None:
    data = "iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAIAAAB7GkOt" + "A" * 400_000
    blocks = {
        "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        "ai_sdk": {"type": "image", "image": data},
    }
    for name, block in blocks.items():
        assert Meter("gpt-4o").count_item({"role": "user", "content": [block]}, name) == 3 + 1 + 255, name


def test_encrypted_reasoning_has_a_rate() -> None:
    meter = Meter("gpt-5")
    item = {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x" * 1600}
    assert meter.count_item(item, "responses") == 1 + 1 + (1 + 300)


def test_a_message_changed_in_place_is_counted_again() -> None:
    """At any depth: hosts append to a streamed message where it stands."""
    meter = Meter("gpt-4o")
    messages = json.loads(json.dumps(CHAT))
    before = meter.estimate(messages).total
    messages[5]["content"] += " And more of it."
    after = meter.estimate(messages).total
    assert after == before + tokens("A greeting. And more of it.") - tokens("A greeting.")
    messages[3]["tool_calls"][0]["function"]["arguments"] = '{"path":"a/much/longer/path.py"}'
    assert meter.estimate(messages).total > after
    assert meter.estimate(messages).total == Meter("gpt-4o").estimate(messages).total


def test_a_list_that_grows_shrinks_and_changes_is_counted_like_a_new_one() -> None:
    """Whatever was remembered of its earlier forms."""
    meter = Meter("gpt-4o")
    messages: list[dict[str, Any]] = []
    for number, text in enumerate(generated(120, seed=4)):
        messages.append({"role": ("system", "user", "developer")[number % 3], "content": text})
        if number % 7 == 3:
            messages[number // 2 % len(messages)]["content"] += " changed"
        if number % 11 == 5:
            del messages[len(messages) // 3]
        if number % 13 == 6:
            messages.insert(0, {"role": "user", "content": "first of all"})
        assert meter.estimate(messages) == Meter("gpt-4o", memo_bytes=0).estimate(messages)


def test_an_id_that_was_given_to_another_message_does_no_harm() -> None:
    meter = Meter("gpt-4o")
    for number in range(300):
        text = "word " * (number % 7)
        assert meter.count_item({"role": "user", "content": text}, "chat") == 4 + tokens(text)


def test_the_dialect_is_recognised_when_the_list_grows_into_it() -> None:
    """A plain start fits several dialects; a later message decides."""
    meter = Meter("gpt-4o")
    messages: list[dict[str, Any]] = [{"role": "user", "content": "list the files"}]
    meter.estimate(messages)
    messages += [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {"p": "."}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
    ]
    for _ in range(2):
        assert meter.estimate(messages) == Meter("gpt-4o").estimate(messages, dialect="anthropic")
        messages.append({"role": "user", "content": "thanks"})


def test_one_meter_may_serve_sessions_of_several_dialects() -> None:
    meter = Meter("gpt-4o")
    lists: list[list[dict[str, Any]]] = [
        CHAT,
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
        [
            {"role": "user", "content": "hi"},
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ],
        [{"kind": "system", "content": "rules"}, {"kind": "task", "content": "do it"}],
    ]
    expected = [Meter("gpt-4o").estimate(messages) for messages in lists]
    for _ in range(3):
        assert [meter.estimate(messages) for messages in lists] == expected
    assert expected[3].system > 0


def test_a_system_prompt_outside_the_list_is_counted_as_system() -> None:
    plain = estimate([{"role": "user", "content": "hi"}])
    for system in ("You are terse.", [{"type": "text", "text": "You are terse."}]):
        found = estimate([{"role": "user", "content": "hi"}], system=system)
        assert found.system == 3 + tokens("system") + tokens("You are terse.")
        assert found.total - found.system == plain.total


class Parameters(BaseModel):
    type: str = "object"
    note: str | None = None


class ToolObject(BaseModel):
    name: str
    parameters: Parameters = Parameters()


@pytest.mark.parametrize(
    ("tools", "texts"),
    [
        (None, []),
        ([], []),
        ([TOOL, TOOL], [json.dumps(TOOL, separators=(",", ":"))] * 2),
        (TOOL, [json.dumps(TOOL, separators=(",", ":"))]),
        ([ToolObject(name="f")], ['{"name":"f","parameters":{"type":"object"}}']),
        ((tool for tool in [{"name": "f"}]), ['{"name":"f"}']),
        ('[{"name": "f"}]', ['[{"name": "f"}]']),
        ([{"name": "f", "when": 1 + 2j}], ['{"name":"f","when":"(1+2j)"}']),
    ],
    ids=["none", "empty", "dicts", "one-dict", "pydantic", "generator", "text", "odd-value"],
)
def test_tools_are_counted_as_compact_json(tools: Any, texts: list[str]) -> None:
    expected = 12 + sum(10 + tokens(text) for text in texts) if texts else 0
    assert Meter("gpt-4o").count_tools(tools) == expected


def test_a_tool_changed_in_place_is_counted_again() -> None:
    meter, tool = Meter("gpt-4o"), json.loads(json.dumps(TOOL))
    before = meter.count_tools([tool])
    tool["function"]["description"] += ", at most 2000 lines of it"
    assert meter.count_tools([tool]) > before


def test_sdk_objects_are_counted_like_their_dicts() -> None:
    class Message(BaseModel):
        role: str
        content: str

    messages = [Message(role="system", content="rules"), Message(role="user", content="hello")]
    dicts = [message.model_dump() for message in messages]
    assert estimate(messages) == estimate(dicts)


def test_a_generator_of_messages_is_read_once() -> None:
    def produce() -> Iterator[dict[str, Any]]:
        yield from CHAT

    assert estimate(produce()) == estimate(CHAT)


@pytest.mark.parametrize(
    ("messages", "dialect", "index"),
    [
        ([{"role": "user", "content": "x"}, 7], None, 1),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": 5}], "anthropic", 1),
        (
            [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": 5}],
            "chat",
            1,
        ),
    ],
    ids=["number", "content", "calls"],
)
def test_what_is_no_message_is_named_by_its_index(messages: Any, dialect: str | None, index: int) -> None:
    meter = Meter("gpt-4o")
    meter.estimate(CHAT)  # what it saw before must not shift the index
    with pytest.raises(MessageError, match=rf"messages\[{index}\]") as caught:
        meter.estimate(messages, dialect=dialect)
    assert caught.value.index == index


def test_deep_and_odd_content_is_counted_without_a_crash() -> None:
    deep: Any = "leaf"
    for _ in range(5000):
        deep = {"k": [deep]}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "\ud800 \x00 <|endoftext|>"},
        {"role": "user", "content": ""},
    ]
    meter = Meter("gpt-4o")
    assert meter.estimate(messages).total == meter.estimate(messages).total > 3


def test_an_object_where_text_belongs_is_counted_as_json() -> None:
    odd = {"role": "user", "content": [{"type": "text", "text": {"k": [1, 2]}}]}
    assert Meter("gpt-4o").count_item(odd, "anthropic") == 4 + tokens('{"k":[1,2]}')


def test_memory_is_bounded() -> None:
    """A meter of one megabyte counts ten megabytes of sessions and keeps about one."""
    meter = Meter("gpt-4o", memo_bytes=1_000_000)
    meter.load()
    tracemalloc.start()
    try:
        for number in range(1000):
            meter.estimate([{"role": "user", "content": f"{number} " * 3000}])
        assert tracemalloc.get_traced_memory()[0] < 1_500_000
    finally:
        tracemalloc.stop()


def test_a_meter_without_memory_counts_the_same() -> None:
    assert Meter("gpt-4o", memo_bytes=0).estimate(CHAT, [TOOL]) == Meter("gpt-4o").estimate(CHAT, [TOOL])


@pytest.mark.no_cover
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "claude-sonnet-4-5"])
def test_both_counters_give_the_same_estimate(model: str) -> None:
    messages = [{"role": "user", "content": text} for text in generated(300, seed=9)]
    fast, plain = Meter(model, fast=True), Meter(model, fast=False)
    assert fast.estimate(messages, [TOOL]) == plain.estimate(messages, [TOOL])
    assert (fast.counted_by, fast.reason) == ("splintr", "")
    assert (plain.counted_by, plain.reason) == ("tiktoken", "fast=False")


def test_the_reason_for_the_slower_counter_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = MissingExtra.named("fast", "counting with splintr")
    monkeypatch.setattr(counter, "try_splintr", lambda _: missing)
    meter = Meter("gpt-4o")
    assert meter.counted_by == "tiktoken"
    assert "pip install 'compact-context[fast]'" in meter.reason


def test_many_threads_get_the_same_numbers() -> None:
    meter = Meter("gpt-4o", memo_bytes=40_000)
    sessions = [
        [{"role": "user", "content": text} for text in generated(40, seed=seed)] for seed in range(12)
    ]
    expected = [Meter("gpt-4o").estimate(messages).total for messages in sessions]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = pool.map(lambda messages: meter.estimate(messages).total, sessions)
            assert list(found) == expected


TEXTS = st.text(max_size=40)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "developer", "user", "assistant"]), "content": TEXTS}
        ),
        st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS, "name": TEXTS}),
        st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": TEXTS, "content": TEXTS}),
        st.fixed_dictionaries(
            {
                "role": st.just("user"),
                "content": st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})),
            }
        ),
    ),
    max_size=8,
)


SHARED = {
    model: Meter(model, memo_bytes=8_000_000) for model in ("gpt-4o", "gpt-4", "claude-opus-5", "qwen3")
}


@given(messages=MESSAGES, model=st.sampled_from(list(SHARED)))
@settings(max_examples=examples(150), deadline=None)
def test_estimates_are_sums_and_do_not_depend_on_what_was_counted_before(
    messages: list[dict[str, Any]], model: str
) -> None:
    shared = SHARED[model]
    found = shared.estimate(messages, [TOOL], dialect="chat")
    assert found == shared.estimate(json.loads(json.dumps(messages)), [TOOL], dialect="chat")
    assert found == Meter(model, memo_bytes=0).estimate(messages, [TOOL], dialect="chat")
    assert found.total == found.system + found.developer + found.tools_schema + found.messages
    raw = sum(shared.count_item(message, "chat") for message in messages)
    if shared.exact and messages:
        assert found.total - found.tools_schema == raw + 3
    elif messages:
        assert found.total - found.tools_schema >= shared.scale(raw + 3)


@pytest.mark.slow
def test_real_sessions_equal_a_recount_from_nothing() -> None:
    meter = Meter("gpt-4o")
    for messages in transcripts():
        for end in range(1, len(messages), max(1, len(messages) // 5)):
            raw = sum(
                1 + sum(1 + tokens(str(piece)) for piece in get("chat").pieces(message))
                for message in messages[:end]
            )
            assert meter.estimate(messages[:end], dialect="chat").total == raw + 3


def test_the_stated_dialects_are_all_countable() -> None:
    for name in NAMES:
        item = {"kind": "task", "content": "x"} if name == "harness" else {"role": "user", "content": "x"}
        assert Meter("gpt-4o").estimate([item], dialect=name).messages >= 5
