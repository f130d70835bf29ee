"""What the adapters read from a chat message."""

from __future__ import annotations

import json
from typing import Any

from bench.peers import Item


def text_of(item: Item) -> str:
    """Its text, whatever the shape of the content."""
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def arguments_of(call: Item) -> dict[str, Any]:
    """A call's arguments as an object. Anything else is wrapped under one key."""
    text = call["function"]["arguments"]
    try:
        found = json.loads(text)
    except ValueError:
        found = text
    return found if isinstance(found, dict) else {"arguments": found}


def plain(messages: list[Item]) -> list[Item]:
    """Messages with only what every package can hold: words, and calls with an object as arguments."""
    return [_plain(item) for item in messages]


def _plain(item: Item) -> Item:
    role = "system" if item["role"] in ("system", "developer") else item["role"]
    found: Item = {"role": role, "content": text_of(item)}
    if item.get("tool_calls"):
        found["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": json.dumps(arguments_of(call), ensure_ascii=False),
                },
            }
            for call in item["tool_calls"]
        ]
    if role == "tool":
        found["tool_call_id"] = item["tool_call_id"]
    return found
