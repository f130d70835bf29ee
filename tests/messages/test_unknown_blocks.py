"""Blocks, items and parts that compact does not know pass through as they are, in every dialect."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compact import CompactManager
from compact.checks import violations
from compact.hygiene import clean
from compact.messages import dialects

Item = dict[str, Any]
OPENED = {"type": "of_next_year", "payload": {"deep": [1, {"x": None}], "data": "b2xk"}, "n": 1.0}

ANTHROPIC: list[Item] = [
    {
        "role": "user",
        "content": [{"type": "container_upload", "file_id": "file_1"}, {"type": "text", "text": "Go"}],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I search."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "EqgfCioI="}
                ],
            },
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []},
            {"type": "compaction", "content": "Threshold.", "encrypted_content": "c2VhbGVk"},
            {"type": "text", "text": "Found.", "citations": [{"type": "char_location", "cited_text": "x"}]},
            OPENED,
        ],
    },
]
RESPONSES: list[Item] = [
    {"role": "user", "content": [{"type": "input_text", "text": "Go"}, OPENED]},
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk", "created_by": "me"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "container_id": "c",
        "code": "1",
        "outputs": [],
        "status": "completed",
    },
    OPENED,
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}, OPENED]},
]
CHAT: list[Item] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Go"},
            {"type": "input_audio", "input_audio": {"data": "b2xk"}},
            OPENED,
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}, OPENED], "of_next_year": OPENED},
]
AI_SDK: list[Item] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Go"},
            {"type": "file", "data": "b2xk", "mediaType": "a/b"},
            OPENED,
        ],
    },
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Done."}, {"type": "source", "sourceType": "url"}, OPENED],
    },
]
GEMINI: list[Item] = [
    {"role": "user", "parts": [{"text": "Go"}, {"fileData": {"fileUri": "u", "mimeType": "a/b"}}]},
    {
        "role": "model",
        "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "Done."},
            {"ofNextYear": OPENED},
        ],
    },
]
CONVERSE: list[Item] = [
    {
        "role": "user",
        "content": [
            {"text": "Go"},
            {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"%PDF"}}},
            {"ofNextYear": OPENED},
        ],
    },
    {
        "role": "assistant",
        "content": [{"text": "Done."}, {"citationsContent": {"content": []}}, {"ofNextYear": OPENED}],
    },
]
HARNESS: list[Item] = [
    {"kind": "task", "content": "Go"},
    {
        "kind": "of_next_year",
        "content": "Done.",
        "authority": "tool",
        "meta": {"any": OPENED},
        "unknown": OPENED,
    },
]
LISTS = {
    "anthropic": ANTHROPIC,
    "responses": RESPONSES,
    "chat": CHAT,
    "ai_sdk": AI_SDK,
    "gemini": GEMINI,
    "converse": CONVERSE,
    "harness": HARNESS,
}
ROLES = {"gemini": ("user", "model")}


def spoken(dialect: str, role: int, text: str) -> Item:
    name = ROLES.get(dialect, ("user", "assistant"))[role]
    if dialect == "gemini":
        return {"role": name, "parts": [{"text": text}]}
    return {"role": name, "content": [{"text": text}] if dialect == "converse" else text}


@pytest.mark.parametrize("name", LISTS)
def test_what_is_read_is_written_back_as_the_same_object(name: str) -> None:
    dialect = dialects.get(name)
    for item in copy.deepcopy(LISTS[name]):
        before = copy.deepcopy(item)
        assert dialect.write(dialect.read(item)) is item
        assert item == before


@pytest.mark.parametrize("name", LISTS)
def test_hygiene_leaves_them_alone(name: str) -> None:
    items = copy.deepcopy(LISTS[name])
    cleaned = clean(items)
    assert all(one is other for one, other in zip(cleaned, items, strict=True))
    if name != "harness":
        assert violations(items, name) == []


@pytest.mark.parametrize("name", [name for name in LISTS if name != "harness"])
def test_a_message_that_is_mended_keeps_its_unknown_blocks_as_they_are(name: str) -> None:
    items = copy.deepcopy(LISTS[name])
    text = next(
        block
        for item in items
        for block in item.get("content") or item.get("parts") or ()
        if isinstance(block, dict) and "text" in block
    )
    text["text"] = "Go \ud800 on"
    before = copy.deepcopy(items)
    cleaned = clean(items)
    assert items == before
    assert _unknown(cleaned) == _unknown(items)
    assert "\ud800" not in str(cleaned)


def _unknown(items: list[Item]) -> list[Any]:
    blocks = [
        block
        for item in items
        for block in item.get("content") or item.get("parts") or [item]
        if isinstance(block, dict)
    ]
    return [block for block in blocks if "text" not in block]


@pytest.mark.parametrize("name", [name for name in LISTS if name != "harness"])
def test_a_compaction_keeps_them_as_the_same_objects(name: str) -> None:
    filler = [spoken(name, n % 2, f"{n} " + "many words " * 200) for n in range(40)]
    items = copy.deepcopy(LISTS[name])
    history = [*filler, *items, spoken(name, 0, "And now?")]
    settings: Any = {"model": "gpt-4o", "max_context_tokens": 12_000, "archive": {"adapter": "memory"}}
    with CompactManager(**settings) as manager:
        found = manager.preflight("s", history, dialect=name)
        assert len(found) < len(history)
        standing = {id(item) for item in found}
        assert all(id(item) in standing for item in items)
        assert violations(found, name) == []
        restored = manager.archive.restore("s", 1).messages
        assert len(restored) == len(history)


@pytest.mark.parametrize("kind", ["compaction", "server_tool_use", "encrypted_content", "signature"])
def test_opaque_fields_are_archived_as_they_are(kind: str) -> None:
    secret = "sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 8
    block = {
        "compaction": {"type": "compaction", "content": f"Key {secret}", "signature": secret},
        "server_tool_use": {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"q": "x"},
        },
        "encrypted_content": {"type": "compaction", "content": None, "encrypted_content": secret},
        "signature": {"type": "thinking", "thinking": "Hm.", "signature": secret},
    }[kind]
    reply = {"role": "assistant", "content": [block, {"type": "text", "text": "Done."}]}
    if kind == "compaction":
        reply["content"] = [block]
    opening = [] if kind == "compaction" else [spoken("anthropic", 0, "Go")]
    filler = [spoken("anthropic", n % 2, f"{n} " + "many words " * 200) for n in range(40)]
    settings: Any = {"model": "gpt-4o", "max_context_tokens": 12_000, "archive": {"adapter": "memory"}}
    with CompactManager(**settings) as manager:
        manager.preflight(
            "s", [*opening, reply, *filler, spoken("anthropic", 0, "And now?")], dialect="anthropic"
        )
        restored = manager.archive.restore("s", 1).messages
        assert reply in restored
