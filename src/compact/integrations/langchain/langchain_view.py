"""LangChain's messages as OpenAI chat messages, and back. A message that nobody changed comes back as the same object.

What a chat message has no place for (ids, artifacts, metadata) stays with the original. Reasoning that a provider signed is
shown as such, so that a message which carries it is never edited.
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

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Blocks that repeat what stands in `tool_calls`."""


class View:
    """A list of LangChain messages as chat messages."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages
        self.items = [_as_chat(message) for message in messages]
        self._whole = {id(item): message for item, message in zip(self.items, messages, strict=True)}

    def back(self, kept: Sequence[Any]) -> list[Any]:
        """LangChain messages for a list that was made of `items`."""
        originals = self._by_call()
        return [self._whole.get(id(item)) or _as_langchain(item, originals) for item in kept]

    def _by_call(self) -> dict[tuple[str, str], BaseMessage]:
        """Messages by the calls that they make or answer: so a changed one finds the original that it is a copy of."""
        found: dict[tuple[str, str], BaseMessage] = {}
        for message in self._messages:
            if isinstance(message, ToolMessage):
                found["tool", message.tool_call_id] = message
            elif isinstance(message, AIMessage):
                for call in message.tool_calls:
                    found["assistant", call["id"] or ""] = message
        return found


def _as_chat(message: BaseMessage) -> dict[str, Any]:
    item: dict[str, Any] = {"role": _role(message), "content": message.content}
    if isinstance(message, AIMessage):
        _add_speech(item, message)
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
    kinds: dict[type[BaseMessage], str] = {
        HumanMessage: "user",
        AIMessage: "assistant",
        ToolMessage: "tool",
        FunctionMessage: "function",
    }
    return next((role for kind, role in kinds.items() if isinstance(message, kind)), message.type)


def _add_speech(item: dict[str, Any], message: AIMessage) -> None:
    if isinstance(message.content, list):
        item["content"] = [
            block for block in message.content if _kind(block) not in _REASONING | _CALLS
        ] or None
        reasoning = [block for block in message.content if _kind(block) in _REASONING]
        if reasoning:
            item["reasoning_details"] = reasoning
    calls = [_call(call["id"], call["name"], _json(call["args"])) for call in message.tool_calls]
    calls += [_call(call["id"], call["name"], call["args"]) for call in message.invalid_tool_calls]
    if calls:
        item["tool_calls"] = calls
        item["content"] = item["content"] or None


def _call(call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or ""}}


def _json(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)  # as LangChain sends it


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _as_langchain(item: Mapping[str, Any], originals: Mapping[tuple[str, str], BaseMessage]) -> BaseMessage:
    """A message that compact wrote or changed."""
    role, content, name = item["role"], item.get("content") or "", item.get("name")
    if role == "assistant":
        return _speech(item, content, originals)
    if role == "tool":
        original = originals.get(("tool", item["tool_call_id"]))
        if original is not None:
            return original.model_copy(update={"content": content})
        return ToolMessage(content=content, tool_call_id=item["tool_call_id"], name=name)
    if role in ("system", "developer"):
        return SystemMessage(content=content, name=name)
    if role == "function":
        return FunctionMessage(content=content, name=name or "")
    return HumanMessage(content=content, name=name)


def _speech(
    item: Mapping[str, Any], content: Any, originals: Mapping[tuple[str, str], BaseMessage]
) -> AIMessage:
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "args": _parsed(call), "type": "tool_call"}
        for call in item.get("tool_calls") or ()
    ]
    original = next((found for call in calls if (found := originals.get(("assistant", call["id"])))), None)
    if original is None:
        return AIMessage(content=content, tool_calls=calls)
    repeated = [block for block in original.content if _kind(block) in _CALLS]
    if repeated:
        said = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)
        content = [*said, *_with_arguments(repeated, calls)]
    copied: AIMessage = original.model_copy(update={"content": content, "tool_calls": calls})  # type: ignore[assignment]
    return copied


def _parsed(call: Mapping[str, Any]) -> Any:
    arguments = call["function"]["arguments"]
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _with_arguments(blocks: Sequence[Any], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The blocks that repeat calls, with what the calls say now."""
    arguments = {call["id"]: call["args"] for call in calls}
    keys = {"tool_use": "input", "tool_call": "args"}
    return [
        {**block, keys[block["type"]]: arguments[block["id"]]}
        for block in blocks
        if block["type"] in keys and block.get("id") in arguments
    ]
