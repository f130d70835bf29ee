"""Chat messages as LangChain's objects and back."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from bench.peers import Item, Native
from bench.peers._chat import arguments_of, text_of


def load(messages: list[Item]) -> Native:
    """One object for each message."""
    return [_load(item) for item in messages]


def back(native: Native) -> list[Item]:
    """One message for each object."""
    return [_back(message) for message in native]


def _load(item: Item) -> BaseMessage:
    text = text_of(item)
    match item["role"]:
        case "assistant":
            calls = [
                ToolCall(name=call["function"]["name"], args=arguments_of(call), id=call["id"])
                for call in item.get("tool_calls") or []
            ]
            return AIMessage(content=text, tool_calls=calls)
        case "tool":
            return ToolMessage(content=text, tool_call_id=item["tool_call_id"])
        case "user":
            return HumanMessage(content=text)
        case _:
            return SystemMessage(content=text)


def _back(message: BaseMessage) -> Item:
    content: Any = message.content
    if isinstance(message, AIMessage):
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
        found = {"role": "assistant", "content": content}
        return {**found, "tool_calls": calls} if calls else found
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
    return {"role": "user" if isinstance(message, HumanMessage) else "system", "content": content}
