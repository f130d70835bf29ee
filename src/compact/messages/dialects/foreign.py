"""Shapes of other programs that compact does not read. They are refused by name, never taken for empty messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LANGCHAIN_TYPES = frozenset(
    {
        "human",
        "ai",
        "chat",
        "function",
        "tool",
        "remove",
        "constructor",
        "HumanMessage",
        "AIMessage",
        "SystemMessage",
        "ToolMessage",
        "AIMessageChunk",
        "HumanMessageChunk",
        "SystemMessageChunk",
        "ToolMessageChunk",
    }
)
"""The `type` of LangChain's messages, except `system`, which harness artifacts have too."""
_OWN_KEYS = frozenset(
    {
        "additional_kwargs",
        "annotations",
        "audio",
        "cache_control",
        "content",
        "created_at",
        "finish_reason",
        "function_call",
        "id",
        "meta",
        "metadata",
        "model",
        "name",
        "object",
        "phase",
        "prefix",
        "providerMetadata",
        "providerOptions",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "response_metadata",
        "role",
        "status",
        "stopReason",
        "stop_reason",
        "stop_sequence",
        "timestamp",
        "toolCallId",
        "toolName",
        "tool_call_id",
        "tool_calls",
        "type",
        "usage",
        "usage_metadata",
        "weight",
    }
)
"""Keys of a message whose value is not the text of another format."""
_SAYS_OTHERWISE = (
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "reasoning_content",
    "reasoning_details",
)
"""What an assistant's message without content consists of."""
_TEXT_KEYS = frozenset(
    {
        "blocks",
        "body",
        "contents",
        "data",
        "kwargs",
        "message",
        "messages",
        "parts",
        "payload",
        "text",
        "value",
    }
)
"""Keys under which other formats keep what a message says."""
_CONVERSE_KEYS = frozenset(
    {
        "text",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "image",
        "document",
        "video",
        "cachePoint",
        "guardContent",
    }
)


class Shape(NamedTuple):
    """A shape that is not read: what it looks like, and what to do."""

    name: str
    hint: str


_CONVERT = "Convert the list to OpenAI chat messages ({'role', 'content', 'tool_calls'?}) or Anthropic messages first"
_ALONE = "A list has one format throughout: convert the other entries, and pass no other `dialect`"
_GEMINI = Shape("Gemini contents: a 'parts' list", _ALONE)
_UI = Shape("AI-SDK UI messages: a 'parts' list", "Pass the result of `convertToModelMessages` instead")
_PYDANTIC_AI = Shape("pydantic-ai messages: a 'parts' list", "Use compact.integrations.pydantic_ai")
_CONVERSE = Shape("Bedrock Converse: content blocks without a 'type'", _ALONE)
_LANGCHAIN = Shape(
    "LangChain messages", "Use compact.integrations.langchain, or convert with `convert_to_openai_messages`"
)
_LLAMA_INDEX = Shape("LlamaIndex chat messages: a 'blocks' list", _CONVERT)
_COHERE = Shape("Cohere's chat history: the text is in 'message'", _CONVERT)
_OLLAMA = Shape(
    "Ollama messages: tool calls without an 'id'", "Give each call an 'id' and each result its 'tool_call_id'"
)
_REQUEST = Shape("a whole request", "Pass the list inside it, for example request['messages']")
_LOG = Shape("a line of a session log", "Read the file with `compact`, or pass the messages inside its lines")


def find_hidden_text(data: Mapping[str, Any]) -> str | None:
    """The key under which an entry without content keeps what it says, or None if it says nothing.

    An entry that is simply empty is a message; one whose text is somewhere else is not one of ours.
    """
    if data.get("content") or any(data.get(key) for key in _SAYS_OTHERWISE):
        return None
    absent = "content" not in data
    for key, value in data.items():
        if not value or not isinstance(value, str | Mapping | list | tuple) or key in _OWN_KEYS:
            continue
        if key in _TEXT_KEYS:
            return str(key)
        if absent and not isinstance(value, Mapping) and not str(key).startswith(("x_", "_")):
            return str(key)
    return None


def shape_of(item: Any, data: Mapping[str, Any]) -> Shape | None:
    """The shape of an entry that was refused, as far as it is known."""
    kind, parts, inner = data.get("type"), data.get("parts"), data.get("data")
    if "lc" in data or (isinstance(kind, str) and kind in LANGCHAIN_TYPES):
        return _LANGCHAIN
    if kind is not None and (
        "additional_kwargs" in data or (isinstance(inner, Mapping) and "additional_kwargs" in inner)
    ):
        return _LANGCHAIN
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        keys = {key for part in parts if isinstance(part, Mapping) for key in part}
        return _PYDANTIC_AI if "part_kind" in keys else _UI if "type" in keys else _GEMINI
    if _has_untyped_blocks(data.get("content")):
        return _CONVERSE
    if _has_calls_without_id(data.get("tool_calls")) or ("tool_name" in data and "tool_call_id" not in data):
        return _OLLAMA
    if isinstance(data.get("blocks"), list):
        return _LLAMA_INDEX
    if isinstance(data.get("messages"), list) or isinstance(data.get("contents"), list):
        return _REQUEST
    if isinstance(data.get("message"), str) and "role" in data:
        return _COHERE
    if (
        "role" not in data
        and isinstance(kind, str)
        and data.keys() & {"payload", "message", "data", "timestamp"}
    ):
        return _LOG
    if not isinstance(item, Mapping):
        owner = type(item)
        return Shape(f"a {owner.__name__} of {owner.__module__.partition('.')[0]}", _CONVERT)
    return None


def _has_untyped_blocks(content: Any) -> bool:
    blocks = content if isinstance(content, list | tuple) else ()
    return any(
        isinstance(block, Mapping) and "type" not in block and block.keys() & _CONVERSE_KEYS
        for block in blocks
    )


def _has_calls_without_id(calls: Any) -> bool:
    listed = calls if isinstance(calls, list | tuple) else ()
    return any(isinstance(call, Mapping) and "function" in call and "id" not in call for call in listed)
