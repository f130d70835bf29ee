"""A character that UTF-8 does not have is found and replaced wherever a message may hold text."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.standins import provider_problems, sent
from support.strategies import SESSIONS

from compact import hygiene
from compact.checks import violations
from compact.messages import dialects

Item = dict[str, Any]
Path = tuple[str | int, ...]
LONE = "half \ud83d"
DECIDING = {"type", "role", "kind"}
"""Fields that say what an item is. With another value it is another item, or none."""

TOLD: Item = {"role": "user", "content": "Go on."}
CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
TEXTS: dict[str, list[Item]] = {
    "responses": [
        TOLD,
        {"type": "reasoning", "summary": [], "encrypted_content": "x", "content": "Hm."},
        {"type": "reasoning", "id": "rs_1", "summary": "Hm."},
        {
            "type": "reasoning",
            "id": "rs_2",
            "summary": [{"type": "summary_text", "text": "Hm.", "x": "y"}],
            "content": [{"type": "reasoning_text", "text": "So."}],
            "encrypted_content": "c2VhbGVk",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "Read.",
                    "annotations": [{"type": "url_citation", "title": "A"}],
                },
                {"type": "refusal", "refusal": "No."},
            ],
        },
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk", "created_by": "me"},
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "result": "iVBORw0KGgo=",
            "revised_prompt": "A house.",
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "b",
            "name": "sql",
            "input": "select",
            "x": "y",
        },
        {"type": "custom_tool_call_output", "call_id": "b", "output": "1", "x": "y"},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}},
        {"type": "item_reference", "id": "fc_7"},
    ],
    "chat": [
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "Go"},
                {"type": "image_url", "image_url": {"url": "https://a.example/i.png", "detail": "low"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERi0"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "So."}, {"type": "refusal", "refusal": "No."}],
            "reasoning_content": "Hm.",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln"}],
            "annotations": [{"type": "url_citation", "url_citation": {"title": "A"}}],
            "tool_calls": [CALL | {"extra_content": {"google": {"thought_signature": "c2ln"}}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "text", "name": "read"},
    ],
    "anthropic": [
        {
            "role": "user",
            "content": [
                {
                    "type": "document",
                    "title": "A",
                    "context": "B",
                    "source": {"type": "text", "media_type": "text/plain", "data": "C"},
                    "cache_control": {"type": "ephemeral", "ttl": "5m"},
                }
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "c2ln"},
                {"type": "text", "text": "So.", "citations": [{"type": "char_location", "cited_text": "C"}]},
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "p"}, "caller": {"x": "y"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "search_result", "source": "s", "title": "t", "content": []}],
                }
            ],
        },
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Go"}, {"fileData": {"fileUri": "u", "mimeType": "a/b"}}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"},
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "c2ln"},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {
                    "functionCall": {"id": "a", "name": "read", "args": {"path": "p"}},
                    "thoughtSignature": "c2ln",
                },
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "a", "name": "read", "response": {"output": "x"}}}],
        },
    ],
    "converse": [
        {
            "role": "user",
            "content": [
                {"text": "Go"},
                {"document": {"format": "txt", "name": "d", "source": {"text": "A"}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                {"citationsContent": {"content": [{"text": "So."}], "citations": [{"title": "A"}]}},
                {"toolUse": {"toolUseId": "a", "name": "read", "input": {"path": "p"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"json": {"x": "y"}}], "status": "success"}}
            ],
        },
    ],
    "ai_sdk": [
        {"role": "user", "content": [{"type": "file", "data": "b2xk", "mediaType": "a/b", "filename": "f"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "Hm.", "providerOptions": {"a": {"signature": "c2ln"}}},
                {"type": "tool-call", "toolCallId": "a", "toolName": "read", "args": {"path": "p"}},
            ],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "read", "result": {"x": "y"}}],
        },
    ],
    "harness": [
        {"kind": "task", "content": "Go"},
        {"kind": "note", "title": "T", "content": "C", "meta": {"x": "y"}},
    ],
}


def places_of_text(value: Any, path: Path = ()) -> Iterator[Path]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        if isinstance(entry, str) and key not in DECIDING:
            yield (*path, key)
        yield from places_of_text(entry, (*path, key))


def with_text_at(items: list[Item], path: Path, text: str) -> list[Item]:
    found: Any = copy.deepcopy(items)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = text
    return found  # type: ignore[no-any-return]


def check_found(broken: list[Item], dialect: str) -> None:
    if dialect != "harness":  # artifacts are judged in the form in which they are sent
        assert "invalid_text" in {found.rule for found in violations(broken, dialect)}, broken


def check_every_text(items: list[Item], dialect: str) -> None:
    for path in places_of_text(items):
        broken = with_text_at(items, path, LONE)
        check_found(broken, dialect)
        after = hygiene.clean(broken, dialect=dialect)
        json.dumps(after, ensure_ascii=False, default=str).encode()
        assert "invalid_text" not in {found.rule for found in violations(after, dialect)}, path


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_a_lone_surrogate_is_found_and_replaced_in_every_text_of_every_kind_of_item(dialect: str) -> None:
    assert hygiene.clean(TEXTS[dialect], dialect=dialect)
    check_every_text(TEXTS[dialect], dialect)


@pytest.mark.parametrize("dialect", dialects.NAMES)
@given(data=st.data())
def test_a_lone_surrogate_in_any_text_of_any_session_is_found_and_replaced(
    dialect: str, data: st.DataObject
) -> None:
    items = json.loads(json.dumps(data.draw(SESSIONS[dialect]), default=str))
    path = data.draw(st.sampled_from(sorted(places_of_text(items), key=str)))
    broken = with_text_at(items, path, LONE)
    check_found(broken, dialect)
    json.dumps(hygiene.clean(broken, dialect=dialect), ensure_ascii=False).encode()


def test_reasoning_whose_content_is_a_broken_text_is_accepted_after_cleaning() -> None:
    items = [TOLD, {"type": "reasoning", "summary": [], "encrypted_content": "x", "content": LONE}, TOLD]
    assert provider_problems(items, "responses")
    assert provider_problems(sent(items, "responses"), "responses") == []


def test_an_escaped_nul_in_arguments_stays() -> None:
    use = {"type": "tool_use", "id": "a", "name": "write", "input": {"text": "a\x00b"}}
    items = [TOLD, {"role": "assistant", "content": [use]}]
    assert hygiene.clean(items, dialect="anthropic") is items
