"""The same conversation in every dialect: chat messages turned into the others, for tests that run on all of them."""

from __future__ import annotations

import json
from typing import Any

Item = dict[str, Any]


def to_responses(messages: list[Item]) -> list[Item]:
    """Chat messages as OpenAI Responses items."""
    found: list[Item] = []
    for message in messages:
        if message["role"] == "tool":
            found.append(
                {
                    "type": "function_call_output",
                    "call_id": message["tool_call_id"],
                    "output": message["content"] or "",
                }
            )
            continue
        if message.get("content"):
            kind = "output_text" if message["role"] == "assistant" else "input_text"
            block = {"type": kind, "text": message["content"]}
            found.append({"type": "message", "role": message["role"], "content": [block]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            found.append(
                {
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": function["name"],
                    "arguments": function["arguments"],
                }
            )
    return found


def to_anthropic(messages: list[Item]) -> list[Item]:
    """Chat messages as Anthropic messages: results inside user messages, roles alternating, a user first."""
    found: list[Item] = []
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            found.append({"role": "system", "content": message["content"]})
            continue
        blocks: list[Item] = []
        if role == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            if (message["content"] or "").strip():
                result["content"] = message["content"]
            role, blocks = "user", [result]
        elif (message.get("content") or "").strip():
            blocks = [{"type": "text", "text": message["content"]}]
        for call in message.get("tool_calls") or ():
            arguments = _object(call["function"]["arguments"])
            blocks.append(
                {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}
            )
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"].extend(blocks)
        else:
            found.append({"role": role, "content": blocks})
    first = next((n for n, message in enumerate(found) if message["role"] != "system"), None)
    if first is not None and found[first]["role"] != "user":
        found.insert(first, {"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    return found


def to_ai_sdk(messages: list[Item]) -> list[Item]:
    """Chat messages as AI-SDK messages."""
    found: list[Item] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            part = {
                "type": "tool-result",
                "toolCallId": message["tool_call_id"],
                "toolName": names.get(message["tool_call_id"], "unknown"),
                "result": message["content"] or "",
            }
            found.append({"role": "tool", "content": [part]})
            continue
        parts: list[Item] = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            parts.append(
                {
                    "type": "tool-call",
                    "toolCallId": call["id"],
                    "toolName": call["function"]["name"],
                    "args": _object(call["function"]["arguments"]),
                }
            )
        found.append({"role": message["role"], "content": parts})
    return found


CONVERTERS = {
    "chat": lambda messages: messages,
    "responses": to_responses,
    "anthropic": to_anthropic,
    "ai_sdk": to_ai_sdk,
}


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
