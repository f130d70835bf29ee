"""Requests for the stand-ins: a host's list as it would be sent, and what is wrong with it."""

from __future__ import annotations

from typing import Any

from compact import hygiene
from compact.tools.standins import anthropic_problems, chat_problems, responses_problems

Item = dict[str, Any]
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
_HOST_KEYS = ("meta", "metadata", "stop_reason", "stopReason", "finish_reason", "x_trace", "annotations")


def provider_problems(items: list[Item], dialect: str) -> list[str]:
    """Why the provider refuses a list that is sent as it is. A leading system prompt goes where hosts put it."""
    if dialect == "chat":
        return chat_problems({"model": "gpt-4o", "messages": items})
    if dialect == "responses":
        return responses_problems({"model": "gpt-4o", "input": items})
    count = next((n for n, item in enumerate(items) if item.get("role") != "system"), len(items))
    messages = [{key: item[key] for key in item if key not in _HOST_KEYS} for item in items[count:]]
    body = {
        "model": "claude",
        "max_tokens": 9,
        "messages": messages,
        "tools": TOOLS,
        "system": _system(items[:count]),
    }
    return anthropic_problems(body)


def _system(items: list[Item]) -> list[Any]:
    blocks: list[Any] = []
    for item in items:
        content = item.get("content")
        blocks += [{"type": "text", "text": content}] if not isinstance(content, list) else content or [{}]
    return blocks


def sent(items: list[Item], dialect: str) -> Any:
    """A list as it goes out: clean, and with no call left open."""
    return hygiene.sendable(hygiene.clean(items, dialect=dialect), dialect)
