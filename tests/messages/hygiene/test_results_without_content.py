"""A provider refuses a tool result whose content is null. Hygiene mends it, and keeps cache marks to four."""

from __future__ import annotations

from typing import Any

import pytest
from support.standins import provider_problems

from compact.checks import violations
from compact.hygiene import clean
from compact.messages.cache_marks import count_marks
from compact.tools.standins import anthropic_problems, chat_problems, responses_problems

Item = dict[str, Any]

MARK = {"cache_control": {"type": "ephemeral"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOLS = [{"name": "f", "input_schema": {}}]


def chat(**result: Any) -> list[Item]:
    said = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    return [{"role": "user", "content": "Do it."}, said, {"role": "tool", "tool_call_id": "c1", **result}]


def claude(**result: Any) -> list[Item]:
    use = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    told = {"type": "tool_result", "tool_use_id": "c1", **result}
    return [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [told]},
    ]


@pytest.mark.parametrize("result", [{"content": None}, {}, {"content": []}])
def test_a_result_with_null_or_no_content_is_mended(result: Item) -> None:
    cleaned = clean(chat(**result))
    assert chat_problems({"model": "gpt-4o", "messages": cleaned}) == []
    cleaned = clean(claude(**result))
    body = {"model": "claude-opus-4-8", "max_tokens": 1, "tools": TOOLS, "messages": cleaned}
    assert anthropic_problems(body) == []
    output = {"output": result["content"]} if result else {}
    items = [
        {"role": "user", "content": "Do it."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", **output},
    ]
    assert responses_problems({"model": "gpt-5", "input": clean(items)}) == []


def test_there_are_never_more_than_four_cache_marks() -> None:
    text = {"type": "text", "text": "a", **MARK}
    messages = claude(content=[dict(text), dict(text)])
    messages[0]["content"] = [dict(text), dict(text), dict(text)]
    assert [violation.rule for violation in violations(messages)] == ["cache_marks"]
    assert count_marks(*clean(messages)) == 4
    four = clean(messages)
    assert violations(four) == []
    beside = {"system": [dict(text)], "tools": [{**TOOLS[0], **MARK}], "messages": four}
    assert [violation.rule for violation in violations(beside)] == ["cache_marks"]


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": []}])
def test_a_result_without_content_is_mended_in_the_newer_dialects_too(content: Item) -> None:
    output = {"response": None} if content else {}
    contents = [
        {"role": "user", "parts": [{"text": "Do it."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", **output}}]},
    ]
    assert provider_problems(clean(contents), "gemini") == []
    use = {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}
    messages = [
        {"role": "user", "content": [{"text": "Do it."}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", **content}}]},
    ]
    assert provider_problems(clean(messages), "converse") == []
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}
    for result in ({"type": "tool-result", "toolCallId": "c1", "toolName": "f", "output": None}, None):
        parts = [
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "content": [call]},
            {"role": "tool", **({"content": [result]} if result else {"toolCallId": "c1", **content})},
        ]
        cleaned = clean(parts, dialect="ai_sdk")
        assert provider_problems(cleaned, "ai_sdk") == []
        assert [item["role"] for item in cleaned] == ["user", "assistant", "tool"]


# --- results that come late in a list of items

SAYS: Item = {"role": "user", "content": "Go on."}
THINKS: Item = {"type": "reasoning", "id": "rs_1", "summary": []}
REFERENCE: Item = {"type": "item_reference", "id": "fc_9"}


def asks(call_id: str = "c1") -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def told(call_id: str = "c1", output: str = "the real one") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


@pytest.mark.parametrize(
    "items",
    [
        [SAYS, asks(), SAYS, THINKS, told()],
        [SAYS, REFERENCE, asks(), SAYS, THINKS, told()],
        [SAYS, asks(), REFERENCE, SAYS, THINKS, told()],
        [SAYS, asks(), SAYS, asks("c2"), told(), told("c2")],
        [SAYS, asks(), SAYS, {"role": "assistant", "content": "Wait."}, told(), SAYS],
        [SAYS, told(output="too early"), asks(), SAYS, THINKS, told()],
        [SAYS, asks(), SAYS, THINKS, told(), told(output="a second one")],
    ],
)
def test_a_late_result_in_a_list_of_items_stays_the_real_one(items: list[Item]) -> None:
    cleaned = clean(items, dialect="responses")
    assert provider_problems(cleaned, "responses") == []
    assert violations(cleaned, "responses") == []
    place = next(n for n, item in enumerate(cleaned) if item.get("type") == "function_call")
    following = cleaned[place + 1 :]
    if following[0] == REFERENCE:
        following = following[1:]
    assert following[0]["output"] == "the real one"
    outputs = [item["output"] for item in cleaned if item.get("call_id") == "c1" and "output" in item]
    assert outputs == ["the real one"]
    assert clean(cleaned, dialect="responses") is cleaned


def test_a_second_result_behind_a_reference_is_dropped_and_one_for_a_hidden_call_stays() -> None:
    items = [SAYS, asks(), told(), REFERENCE, SAYS, told(output="again"), told("hidden")]
    assert [each.rule for each in violations(items, "responses")] == ["duplicate_result"]
    cleaned = clean(items, dialect="responses")
    assert cleaned == [SAYS, asks(), told(), REFERENCE, SAYS, told("hidden")]
    assert provider_problems(cleaned, "responses") == []


# --- the AI-SDK's tool messages

PART: Item = {
    "type": "tool-result",
    "toolCallId": "c1",
    "toolName": "f",
    "output": {"type": "text", "value": "x"},
}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [PART]},
        {"role": "tool", "content": [PART, {"type": "text", "text": "and words"}]},
        {"role": "tool", "toolCallId": "c1", "content": [{"type": "text", "text": "x"}]},
        {"role": "tool", "content": [{key: value for key, value in PART.items() if key != "toolName"}]},
        {"role": "tool", "content": [{**PART, "toolName": " "}]},
    ],
)
def test_a_result_of_the_ai_sdk_becomes_one_that_it_sends(message: Item) -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}
    items = [SAYS, {"role": "assistant", "content": [call]}, message, SAYS]
    assert violations(items, "ai_sdk", in_flight=False)
    cleaned = clean(items, dialect="ai_sdk")
    assert provider_problems(cleaned, "ai_sdk") == []
    assert violations(cleaned, "ai_sdk", in_flight=False) == []
    assert "x" in str(cleaned[2]), "the real result stays"
    assert len(cleaned) == 4


def test_results_beside_words_of_a_user_leave_the_words() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}
    mixed = {"role": "user", "content": [PART, {"type": "text", "text": "My words."}]}
    cleaned = clean([SAYS, {"role": "assistant", "content": [call]}, mixed], dialect="ai_sdk")
    assert cleaned[-1] == {"role": "user", "content": [{"type": "text", "text": "My words."}]}
    assert provider_problems(cleaned, "ai_sdk") == []
