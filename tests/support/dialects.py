"""The same conversation in every dialect: chat messages turned into the others, for tests that run on all of them."""

from __future__ import annotations

import json
from typing import Any

from compact.harness import as_artifacts

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
        if message["role"] in ("system", "developer"):
            found.append({"role": "system", "content": message["content"]})
            continue
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


def to_gemini(messages: list[Item]) -> list[Item]:
    """Chat messages as Gemini contents: responses inside user contents, roles alternating, a user first."""
    found: list[Item] = []
    names: dict[str, str] = {}
    for message in messages:
        role: str = message["role"]
        parts: list[Item] = []
        if role == "tool":
            name = names.get(message["tool_call_id"], "unknown")
            answer = {
                "id": message["tool_call_id"],
                "name": name,
                "response": {"output": message["content"] or ""},
            }
            parts = [{"functionResponse": answer}]
        elif message.get("content"):
            parts = [{"text": message["content"]}]
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            arguments = _object(call["function"]["arguments"])
            made = {"id": call["id"], "name": call["function"]["name"], "args": arguments}
            parts.append({"functionCall": made})
        if parts:
            _add_turn(found, "model" if role == "assistant" else "user", "parts", parts)
    return _with_user_first(found, {"role": "user", "parts": [{"text": "Go on."}]})


def to_converse(messages: list[Item]) -> list[Item]:
    """Chat messages as Bedrock Converse messages: results inside user messages, roles alternating, a user first."""
    found: list[Item] = []
    for message in messages:
        role: str = message["role"]
        blocks: list[Item] = []
        if role in ("system", "developer"):
            found.append({"role": "system", "content": [{"text": message["content"]}]})
            continue
        text: str = message.get("content") or ""
        if role == "tool":
            content = [{"text": text}] if text.strip() else []
            blocks = [{"toolResult": {"toolUseId": message["tool_call_id"], "content": content}}]
        elif text.strip():
            blocks = [{"text": text}]
        for call in message.get("tool_calls") or ():
            arguments = _object(call["function"]["arguments"])
            use = {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments}
            blocks.append({"toolUse": use})
        if blocks:
            _add_turn(found, "assistant" if role == "assistant" else "user", "content", blocks)
    return _with_user_first(found, {"role": "user", "content": [{"text": "Go on."}]})


def _add_turn(found: list[Item], role: str, key: str, blocks: list[Item]) -> None:
    if found and found[-1]["role"] == role:
        found[-1][key].extend(blocks)
    else:
        found.append({"role": role, key: blocks})


def _with_user_first(found: list[Item], opening: Item) -> list[Item]:
    first = next((n for n, message in enumerate(found) if message["role"] != "system"), None)
    if first is not None and found[first]["role"] != "user":
        found.insert(first, opening)
    return found


def to_artifacts(messages: list[Item]) -> list[Item]:
    """Chat messages as harness artifacts."""
    return [dict(artifact) for artifact in as_artifacts(messages)]


CONVERTERS = {
    "chat": lambda messages: messages,
    "responses": to_responses,
    "anthropic": to_anthropic,
    "ai_sdk": to_ai_sdk,
    "gemini": to_gemini,
    "converse": to_converse,
}


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
