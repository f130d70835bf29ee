"""A provider refuses a tool result whose content is null. Hygiene mends it, and keeps cache marks to four."""

from __future__ import annotations

from typing import Any

import pytest

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
