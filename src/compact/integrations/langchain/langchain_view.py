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
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from compact.errors import MessageError
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
    """A list of LangChain messages as chat messages.

    Raises:
        MessageError: an entry is an order to LangGraph, not a message; names its index.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        super().__init__(messages)
        for index, message in enumerate(messages):
            if isinstance(message, RemoveMessage):
                raise MessageError(
                    f"message {index} is a RemoveMessage, which no model can be sent",
                    hint="Return it as an update of the agent's state, so that LangGraph removes what it names",
                    index=index,
                )
            self.add(_to_chat(message), message)

    def back(self, kept: Sequence[Any]) -> list[Any]:
        """Return LangChain messages for a list that was made from `items`."""
        return [self.origin_of(item) if self.is_unchanged(item) else self._restore(item) for item in kept]

    def _restore(self, item: Mapping[str, Any]) -> BaseMessage:
        """Return the LangChain message for one that compact wrote or changed."""
        role, content, name = item["role"], item.get("content") or "", item.get("name")
        original = self.origin_of(item)
        if role == "assistant":
            return _restore_reply(item, original)
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
        reasoning = [block for block in message.content if _type(block) in _REASONING]
        item["content"] = _said(message.content) or None
        if reasoning:
            item["reasoning_details"] = reasoning
    # LangChain sends arguments as JSON with non-ASCII characters unescaped, and calls that it could not parse as they are.
    calls: list[tuple[Any, str]] = [
        (call, json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls
    ]
    calls += [(call, call["args"] or "") for call in message.invalid_tool_calls]
    if calls:
        item["tool_calls"] = [
            {
                "id": call["id"] or "",
                "type": "function",
                "function": {"name": call["name"] or "", "arguments": arguments},
            }
            for call, arguments in calls
        ]
        item["content"] = item["content"] or None


def _said(blocks: Sequence[Any]) -> list[Any]:
    """Return the blocks that are neither reasoning nor repeated calls."""
    return [block for block in blocks if _type(block) not in _REASONING | _CALLS]


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _restore_reply(item: Mapping[str, Any], original: BaseMessage | None) -> BaseMessage:
    content = item.get("content") or ""
    if not isinstance(original, AIMessage):
        calls, invalid = _restore_calls(item, ())
        return AIMessage(content=content, tool_calls=calls, invalid_tool_calls=invalid)
    calls, invalid = _restore_calls(item, original.invalid_tool_calls)
    if isinstance(original.content, list):
        content = _restore_blocks(original.content, item, [*calls, *invalid])
    # Some providers' packages send what they once kept here when `tool_calls` is empty.
    kept = {
        key: value
        for key, value in original.additional_kwargs.items()
        if key not in ("tool_calls", "function_call")
    }
    update = {
        "content": content,
        "tool_calls": calls,
        "invalid_tool_calls": invalid,
        "additional_kwargs": kept,
    }
    return original.model_copy(update=update)


def _restore_calls(
    item: Mapping[str, Any], invalid_before: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Return a reply's calls: those whose arguments are a JSON object, and the others."""
    errors = {(call["id"] or "", call["args"] or ""): call for call in invalid_before}
    calls: list[Any] = []
    invalid: list[Any] = []
    for call in item.get("tool_calls") or ():
        call_id, name, arguments = call["id"], call["function"]["name"], call["function"]["arguments"]
        known = errors.get((call_id, arguments))
        parsed = None if known is not None else _parse_arguments(arguments)
        if known is not None:
            invalid.append(known)
        elif parsed is None:
            invalid.append(
                {"id": call_id, "name": name, "args": arguments, "error": None, "type": "invalid_tool_call"}
            )
        else:
            calls.append({"id": call_id, "name": name, "args": parsed, "type": "tool_call"})
    return calls, invalid


def _parse_arguments(arguments: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return None
    return dict(value) if isinstance(value, Mapping) else None


def _restore_blocks(blocks: Sequence[Any], item: Mapping[str, Any], calls: Sequence[Any]) -> list[Any]:
    """Return a reply's blocks in their order: with its present words and arguments, without what was taken out."""
    content = item.get("content") or []
    words = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    reasoning = item.get("reasoning_details") or []
    is_same = words == _said(blocks)
    found: list[Any] = []
    for block in blocks:
        kind = _type(block)
        if kind in _REASONING:
            found += [block] if block in reasoning else []
        elif kind in _CALLS:
            if not is_same:  # the words stand before the calls, whatever stood there
                found += words
                words = []
            found += _update_call(block, calls)
        elif is_same:
            found.append(block)
        else:
            found += words
            words = []
    return found if is_same else found + words


def _update_call(block: Mapping[str, Any], calls: Sequence[Any]) -> list[Any]:
    """Return the block that repeats a call, with the call's present arguments. Nothing if the call is gone."""
    ids = (block.get("id"), block.get("call_id"))
    call = next((call for call in calls if call["id"] and call["id"] in ids), None)
    if call is None:
        return []
    key, value = {
        "tool_use": ("input", call["args"]),
        "tool_call": ("args", call["args"]),
        "function_call": ("arguments", call["args"]),
    }.get(block["type"], (None, None))
    if key is None or _parse_arguments(block.get(key)) == value:
        return [block]
    return [{**block, key: json.dumps(value, ensure_ascii=False) if key == "arguments" else value}]
