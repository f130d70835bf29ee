"""LangChain's messages as OpenAI chat messages, and back.

What a chat message has no place for (ids, artifacts, metadata) stays with the original. Signed reasoning is shown as such,
so that a message which carries it is never edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from compact.integrations.chat_view import ChatView

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Blocks that repeat what `tool_calls` holds."""
_ROLES: dict[type[BaseMessage], str] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    ToolMessage: "tool",
    FunctionMessage: "function",
}


class LangChainView(ChatView[BaseMessage]):
    """A list of LangChain messages as chat messages."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        super().__init__(messages)
        for message in messages:
            self.add(_to_chat(message), message)

    def back(self, kept: Sequence[Any]) -> list[Any]:
        """Return LangChain messages for a list that was made from `items`."""
        return [self.origin_of(item) if self.is_unchanged(item) else self._restore(item) for item in kept]

    def _restore(self, item: Mapping[str, Any]) -> BaseMessage:
        """Return the LangChain message for one that compact wrote or changed."""
        role, content, name = item["role"], item.get("content") or "", item.get("name")
        original = self.origin_of(item)
        if role == "assistant":
            return _restore_reply(item, content, original)
        if role == "tool" and original is not None:
            return original.model_copy(update={"content": content})
        if role == "tool":
            return ToolMessage(content=content, tool_call_id=item["tool_call_id"], name=name)
        if role in ("system", "developer"):
            return SystemMessage(content=content, name=name)
        if role == "function":
            return FunctionMessage(content=content, name=name or "")
        return HumanMessage(content=content, name=name)


def _to_chat(message: BaseMessage) -> dict[str, Any]:
    item: dict[str, Any] = {"role": _role(message), "content": message.content}
    if isinstance(message, AIMessage):
        _add_reply(item, message)
    elif isinstance(message, ToolMessage):
        item["tool_call_id"] = message.tool_call_id
    elif message.name:
        item["name"] = message.name
    return item


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    if isinstance(message, SystemMessage):
        role: str = message.additional_kwargs.get("__openai_role__", "system")
        return role
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), message.type)


def _add_reply(item: dict[str, Any], message: AIMessage) -> None:
    if isinstance(message.content, list):
        said = [block for block in message.content if _type(block) not in _REASONING | _CALLS]
        reasoning = [block for block in message.content if _type(block) in _REASONING]
        item["content"] = said or None
        if reasoning:
            item["reasoning_details"] = reasoning
    # LangChain sends arguments as JSON with non-ASCII characters unescaped.
    calls = [(call, json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    calls += [(call, call["args"] or "") for call in message.invalid_tool_calls]  # type: ignore[misc]
    if calls:
        item["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}
            for call, arguments in calls
        ]
        item["content"] = item["content"] or None


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _restore_reply(item: Mapping[str, Any], content: Any, original: BaseMessage | None) -> BaseMessage:
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": _parse_arguments(call),
            "type": "tool_call",
        }
        for call in item.get("tool_calls") or ()
    ]
    if original is None:
        return AIMessage(content=content, tool_calls=calls)
    repeated = [block for block in original.content if _type(block) in _CALLS]
    if repeated:
        said = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)
        content = [*said, *_update_arguments(repeated, calls)]
    return original.model_copy(update={"content": content, "tool_calls": calls})


def _parse_arguments(call: Mapping[str, Any]) -> Any:
    arguments = call["function"]["arguments"]
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _update_arguments(blocks: Sequence[Any], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the blocks that repeat calls, with the calls' present arguments."""
    arguments = {call["id"]: call["args"] for call in calls}
    keys = {"tool_use": "input", "tool_call": "args"}
    return [
        {**block, keys[block["type"]]: arguments[block["id"]]}
        for block in blocks
        if block["type"] in keys and block.get("id") in arguments
    ]
