"""Lists of other programs are refused with the index, what they look like and what to do; never taken for empty messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.engine import manager

from compact import hygiene
from compact.checks import violations
from compact.errors import MessageError
from compact.messages import dialects

Item = dict[str, Any]
INSTRUCTION = "Never delete production data."
ASK: Item = {"role": "user", "content": INSTRUCTION}


def _langchain() -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    call = {"name": "read", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}
    return [
        SystemMessage(content="Rules."),
        HumanMessage(content=INSTRUCTION),
        AIMessage(content="", tool_calls=[call]),
        ToolMessage(content="text", tool_call_id="c1"),
    ]


def _langchain_dumps() -> list[Any]:
    return [message.model_dump() for message in _langchain()]


def _langchain_dicts() -> list[Any]:
    from langchain_core.messages import messages_to_dict

    return messages_to_dict(_langchain())


def _langchain_constructors() -> list[Any]:
    from langchain_core.load import dumpd

    return [dumpd(message) for message in _langchain()]


def _pydantic_ai() -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    return [ModelRequest(parts=[UserPromptPart(INSTRUCTION)]), ModelResponse(parts=[TextPart("Yes.")])]


def _pydantic_ai_dicts() -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    found: list[Any] = ModelMessagesTypeAdapter.dump_python(_pydantic_ai(), mode="json")
    return found


def _google() -> list[Any]:
    from google.genai.types import Content, Part

    return [
        Content(role="user", parts=[Part(text=INSTRUCTION)]),
        Content(role="model", parts=[Part(text="Yes.")]),
    ]


CONVERSE_RESULT = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}], "status": "success"}}
OLLAMA_CALL = {"function": {"name": "read", "arguments": {"path": "a"}}}

FOREIGN: dict[str, tuple[Any, str]] = {
    "Gemini beside chat": ([ASK, {"role": "model", "parts": [{"text": "Yes."}]}], "Gemini contents"),
    "chat beside Gemini": ([{"role": "user", "parts": [{"text": INSTRUCTION}]}, {"role": "assistant", "content": "Yes."}], "not a gemini message"),
    "Gemini objects beside chat": (lambda: [ASK, *_google()], "Gemini contents"),
    "a Gemini request": ([{"contents": [{"role": "user", "parts": [{"text": INSTRUCTION}]}]}], "a whole request"),
    "a chat request": ([{"model": "gpt-4o", "messages": [ASK]}], "a whole request"),
    "chat beside Bedrock": ([{"role": "user", "content": [{"text": INSTRUCTION}]}, {"role": "assistant", "content": "Yes."}], "not a converse message"),
    "Bedrock beside Anthropic": ([{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "r", "input": {}}]}, {"role": "user", "content": [CONVERSE_RESULT]}], "Bedrock Converse"),
    "Bedrock in a text list": ([{"role": "user", "content": [{"type": "text", "text": "x"}, {"text": INSTRUCTION}]}], "Bedrock Converse"),
    "Ollama": ([ASK, {"role": "assistant", "content": "", "tool_calls": [OLLAMA_CALL]}, {"role": "tool", "tool_name": "read", "content": "x"}], "Ollama"),
    "Ollama results": ([ASK, {"role": "tool", "tool_name": "read", "content": "x"}], "Ollama"),
    "LangChain objects": (_langchain, "LangChain"),
    "LangChain dumps": (_langchain_dumps, "LangChain"),
    "LangChain dicts": (_langchain_dicts, "LangChain"),
    "LangChain constructors": (_langchain_constructors, "LangChain"),
    "LangChain by type": ([{"type": "system", "content": "Rules."}, {"type": "human", "content": INSTRUCTION}, {"type": "ai", "content": "Yes."}], "LangChain"),
    "LangChain blocks": ([{"type": "human", "content": [{"type": "text", "text": INSTRUCTION}]}], "LangChain"),
    "pydantic-ai objects": (_pydantic_ai, "a ModelRequest of pydantic_ai"),
    "pydantic-ai dicts": (_pydantic_ai_dicts, "pydantic-ai"),
    "LlamaIndex": ([{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": INSTRUCTION}]}], "LlamaIndex"),
    "Cohere": ([{"role": "USER", "message": INSTRUCTION}, {"role": "CHATBOT", "message": "Yes."}], "Cohere"),
    "UI messages": ([{"id": "1", "role": "user", "parts": [{"type": "text", "text": INSTRUCTION}]}], "UI messages"),
    "Codex rollouts": ([{"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}}, {"timestamp": "t", "type": "response_item", "payload": {"type": "message"}}], "a line of a session log"),
    "typed logs": ([{"type": "log", "message": "started"}, {"type": "log", "message": INSTRUCTION}], "a line of a session log"),
    "only a type": ([{"type": "event"}], "keys: type"),
    "no role": ([{"text": INSTRUCTION}], "keys: text"),
    "a misspelt key": ([{"role": "user", "contents_": INSTRUCTION}], "keys: contents_, role"),
    "text elsewhere": ([{"role": "user", "content": None, "text": INSTRUCTION}], "keys: content, role, text"),
    "flat calls": ([ASK, {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "name": "read", "args": {}}]}], "it lacks 'id' or 'function'"),
    "pairs": ([("user", INSTRUCTION)], "got tuple"),
    "texts": ([INSTRUCTION], "got str"),
    "mixed dialects": ([{"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}], "like those around it"),
    "artifacts beside messages": ([{"kind": "task", "content": INSTRUCTION}, {"role": "user", "content": "x"}], ""),
}  # fmt: skip


NAMED: dict[str, list[Any]] = {
    "Gemini contents": [{"role": "user", "parts": [{"text": INSTRUCTION}]}],
    "Bedrock texts": [{"role": "user", "content": [{"text": INSTRUCTION}]}],
    **{name: FOREIGN[name][0] for name in ("LlamaIndex", "Cohere", "a misspelt key", "text elsewhere")},
}


def made(shape: Any) -> list[Any]:
    found: list[Any] = shape() if callable(shape) else shape
    return found


@pytest.mark.parametrize("name", [name for name in FOREIGN if name != "artifacts beside messages"])
def test_every_entry_point_refuses_it_by_index_and_says_what_it_looks_like(name: str) -> None:
    shape, words = FOREIGN[name]
    items, host = made(shape), manager()
    work = (
        lambda: host.preflight("s", items),
        lambda: host.manual_compact("s", items),
        lambda: host.estimate(items),
        lambda: violations(items),
        lambda: hygiene.clean(items),
    )
    for entry in work:
        with pytest.raises(MessageError) as refused:
            entry()
        assert f"messages[{refused.value.index}]" in str(refused.value)
        assert words in str(refused.value)
        assert refused.value.hint
    host.close()


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk"])
@pytest.mark.parametrize("name", NAMED)
def test_naming_a_dialect_does_not_make_it_one(name: str, dialect: str) -> None:
    items, host = NAMED[name], manager()
    for work in (
        lambda: host.preflight("s", items, dialect=dialect),
        lambda: hygiene.clean(items, dialect=dialect),
        lambda: violations(items, dialect),
    ):
        with pytest.raises(MessageError, match=r"messages\[0\]"):
            work()
    host.close()


def test_a_session_that_was_fine_refuses_what_is_appended_to_it() -> None:
    host, history = manager(), [ASK, {"role": "assistant", "content": "Yes."}]
    host.preflight("s", history)
    for extra in ({"role": "user", "parts": [{"text": "x"}]}, {"role": "user", "content": [{"text": "x"}]}):
        with pytest.raises(MessageError, match=r"messages\[2\]"):
            host.preflight("s", [*history, extra])
    assert host.preflight("s", [*history, ASK]) == [*history, ASK]
    host.close()


# --- what is known keeps what is unknown inside it

BLOCKS: dict[str, list[Item]] = {
    "anthropic": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "compaction", "content": "what was", "encrypted_content": "x"},
        {"type": "container_upload", "file_id": "f"},
        {"type": "future_block", "payload": {"text": "x"}},
    ],
    "chat": [{"type": "file", "file": {"file_id": "f"}}, {"type": "future_block", "payload": {"text": "x"}}],
    "ai_sdk": [{"type": "file", "data": "x", "mediaType": "application/pdf"}, {"type": "source", "url": "u"}],
}  # fmt: skip


@pytest.mark.parametrize("dialect", BLOCKS)
def test_unknown_blocks_and_fields_of_a_known_dialect_pass_untouched(dialect: str) -> None:
    items: list[Item] = [
        {"role": "user", "content": [{"type": "text", "text": INSTRUCTION}], "x_own": {"k": 1}},
        {
            "role": "assistant",
            "content": [*BLOCKS[dialect], {"type": "text", "text": "Done."}],
            "future": ["x"],
        },
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    ]
    before = json.dumps(items)
    host = manager()
    assert host.preflight("s", items, dialect=dialect) is items
    assert hygiene.clean(items, dialect=dialect) is items
    assert json.dumps(items) == before
    host.close()


def test_unknown_items_pass_beside_known_ones() -> None:
    items = [
        {"role": "user", "content": INSTRUCTION},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "future_item", "payload": {"text": "x"}},
        {"type": "compaction", "encrypted_content": "x"},
    ]
    host = manager()
    assert host.preflight("s", items) is items
    host.close()


def test_artifacts_are_recognised_by_their_documented_shape_only() -> None:
    assert dialects.detect([{"kind": "anything", "content": "x"}]).NAME == "harness"
    assert dialects.detect([{"type": "tool_output", "content": "x"}]).NAME == "harness"
    assert (
        dialects.detect([{"type": "task", "content": "x"}, {"type": "note", "content": "y"}]).NAME
        == "harness"
    )
    for kind in ("note", "human", "ai", "event"):
        with pytest.raises(MessageError):
            dialects.detect([{"type": kind, "content": "x"}])


def test_replies_of_other_clients_without_content_are_messages() -> None:
    """A client's object leaves out what is null and has fields of its own."""
    from litellm import Message

    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    reply = Message(content=None, tool_calls=[call], provider_specific_fields={"citations": ["x"]})
    dicts: list[Item] = [
        {"role": "assistant", "tool_calls": [call], "thinking_blocks": ["x"], "images": ["x"]},
        {"role": "assistant", "refusal": "No.", "provider_specific_fields": {"k": "v"}},
        {"role": "assistant", "usage": {"k": 1}, "provider_specific_fields": {"k": "v"}},
    ]
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    for said in (reply, *dicts):
        dialects.read([ASK, said])
        host = manager()
        host.preflight("s", [ASK, said, *([result] if "tool_calls" in str(said) else [])])
        host.close()
