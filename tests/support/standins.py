"""Requests for the stand-ins: a host's list as it would be sent, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

from support.sent_forms import NotSent, to_anthropic_form, to_chat_form

from compact import hygiene
from compact.errors import MessageError
from compact.harness import to_request
from compact.messages.dialects.wire import encoded
from compact.tools.standins import (
    Rules,
    anthropic_problems,
    chat_problems,
    converse_problems,
    gemini_problems,
    responses_problems,
)

Item = dict[str, Any]
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
_HOST_KEYS = ("meta", "metadata", "stop_reason", "stopReason", "finish_reason", "x_trace", "annotations")


def provider_problems(items: list[Item], dialect: str) -> list[str]:
    """Why the provider refuses a list that is sent as it is. A leading system prompt goes where hosts put it."""
    if dialect == "chat":
        return chat_problems({"model": "gpt-4o", "messages": items})
    if dialect == "responses":
        return responses_problems({"model": "gpt-4o", "input": items})
    if dialect == "gemini":
        contents = list(map(_without_host_keys, items))
        return gemini_problems({"contents": contents}, Rules(thought_signatures=_signs(contents)))
    if dialect == "ai_sdk":
        return _part_problems(items)
    if dialect == "harness":
        return _artifact_problems(items)
    count = next((n for n, item in enumerate(items) if item.get("role") != "system"), len(items))
    messages = list(map(_without_host_keys, items[count:]))
    if dialect == "converse":
        prompts = [block for item in items[:count] for block in item.get("content") or [{}]]
        tools = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}
        return converse_problems(on_wire({"messages": messages, "system": prompts, "toolConfig": tools}))
    body = {
        "model": "claude",
        "max_tokens": 9,
        "messages": messages,
        "tools": TOOLS,
        "system": _system(items[:count]),
    }
    return anthropic_problems(body)


_CLAUDE_ID = re.compile("[a-zA-Z0-9_-]+")
"""What Anthropic issues. A session with other ids was another provider's."""


def _part_problems(items: list[Item]) -> list[str]:
    """Why the AI-SDK does not send its messages, or why the providers refuse what it makes of them."""
    try:
        chat = to_chat_form(items)
    except NotSent as problem:
        return [str(problem)]
    found = chat_problems({"model": "gpt-4o", "messages": chat})
    try:
        system, messages = to_anthropic_form(items)
    except NotSent:
        return found  # to Anthropic the AI-SDK sends no system message between others; OpenAI takes it
    ids = [block["id"] for each in messages for block in each["content"] if block["type"] == "tool_use"]
    if messages and messages[0]["role"] == "user" and all(map(_CLAUDE_ID.fullmatch, ids)):
        body = {
            "model": "claude",
            "max_tokens": 9,
            "messages": messages,
            "tools": TOOLS,
            "system": _texts(system),
        }
        found += anthropic_problems(body)
    return found


def _artifact_problems(items: list[Item]) -> list[str]:
    """Why the providers refuse the requests that artifacts become."""
    found: list[str] = []
    for name in ("chat", "responses", "anthropic", "gemini", "converse"):
        try:
            request = to_request(items, name)
        except MessageError as problem:
            assert "is empty, and a" in str(problem) or "nothing to send" in str(problem), problem  # noqa: PT017  # what rules the session must say something
            return []
        key = {"responses": "input", "gemini": "contents"}.get(name, "messages")
        more = {name: value for name, value in request.items() if name != key}
        found += _judge(name, request[key], more)
    return found


def _judge(dialect: str, messages: list[Item], more: Item) -> list[str]:
    if dialect in ("chat", "responses"):
        judge = chat_problems if dialect == "chat" else responses_problems
        return judge(
            {"model": "gpt-4o", {"chat": "messages", "responses": "input"}[dialect]: messages, **more}
        )
    if dialect == "gemini":
        return gemini_problems({"contents": messages, **more})
    if dialect == "converse":
        tools = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}
        return converse_problems(on_wire({"messages": messages, "toolConfig": tools, **more}))
    return anthropic_problems(
        {"model": "claude", "max_tokens": 9, "messages": messages, "tools": TOOLS, **more}
    )


def _texts(texts: list[str]) -> list[Item]:
    return [{"type": "text", "text": text} for text in texts]


def _signs(contents: list[Item]) -> bool:
    """Whether a call in the newest turn is signed, so that the model is one that signs its calls."""
    found = False
    for content in contents:
        parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
        if content.get("role", "user") == "user" and any("functionResponse" not in part for part in parts):
            found = False
        found = found or any("functionCall" in part and "thoughtSignature" in part for part in parts)
    return found


def _without_host_keys(item: Item) -> Item:
    return {key: item[key] for key in item if key not in _HOST_KEYS}


def on_wire(value: Any) -> Any:
    """A value as JSON holds it: bytes as base64."""
    if isinstance(value, dict):
        return {key: on_wire(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(on_wire, value))
    return encoded(value) if isinstance(value, bytes) else value


def _system(items: list[Item]) -> list[Any]:
    blocks: list[Any] = []
    for item in items:
        content = item.get("content")
        blocks += [{"type": "text", "text": content}] if not isinstance(content, list) else content or [{}]
    return blocks


def sent(items: list[Item], dialect: str) -> Any:
    """A list as it goes out: clean, and with no call left open."""
    return hygiene.sendable(hygiene.clean(items, dialect=dialect), dialect)
