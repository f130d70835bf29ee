"""AI-SDK lists in the form in which they are sent: no provider takes them as they are.

The AI-SDK's own rules for its messages, and what its packages for OpenAI and Anthropic make of them. Written from its documentation and
its types, without looking at `compact.messages.dialects`. Wider than the SDK, like the hosts that keep such lists: a system prompt may
be the developer's or stand in parts, and calls without an id and results without one belong together by their order and name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Item = dict[str, Any]


class NotSent(Exception):
    """The AI-SDK raises before it sends anything."""


def check_parts(messages: list[Item]) -> None:
    """Raise `NotSent` for a message that is not of the AI-SDK's types, with content parts of either generation."""
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise NotSent(f"an unknown role: {role}")
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            raise NotSent(f"content of another kind in a {role} message")
        for part in content:
            _check_part(part, str(role))


def _check_part(part: Any, role: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    allowed = {
        "system": {"text"},
        "developer": {"text"},
        "user": {"text", "image", "file"},
        "assistant": {"text", "file", "reasoning", "tool-call", "tool-result"},
        "tool": {"tool-result"},
    }[role]
    if kind not in allowed:
        raise NotSent(f"a part of type {kind} in a {role} message")
    if kind in ("text", "reasoning") and not isinstance(part.get("text"), str):
        raise NotSent("a text without a text")
    if kind in ("tool-call", "tool-result") and not isinstance(part.get("toolName"), str):
        raise NotSent(f"a {kind} without a name")


def to_chat_form(messages: list[Item]) -> list[Item]:
    """What the AI-SDK sends to OpenAI's chat completions. Raises `NotSent`."""
    check_parts(messages)
    found: list[Item] = []
    waiting: list[tuple[str, str, bool]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "tool":
            results = list(_results(message, waiting))
            found += [{"role": "tool", "tool_call_id": each, "content": text} for each, text in results]
            continue
        if waiting:
            raise NotSent("a call without a result")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [part["text"] for part in parts if part["type"] == "text" and part["text"]]
        calls = [part for part in parts if part["type"] == "tool-call"]
        ids = [part.get("toolCallId") or f"call_{len(found)}_{n}" for n, part in enumerate(calls)]
        waiting = [
            (each, part["toolName"], not part.get("toolCallId"))
            for each, part in zip(ids, calls, strict=True)
        ]
        said: Item = {"role": "system" if role == "developer" else role, "content": "".join(texts)}
        if calls:
            said |= {"content": "".join(texts) or None, "tool_calls": list(map(_call, ids, calls))}
        found.append(said)
    if waiting:
        raise NotSent("a call without a result")
    return found


def _call(call_id: str, part: Item) -> Item:
    arguments = json.dumps(part.get("args", part.get("input")))
    return {"id": call_id, "type": "function", "function": {"name": part["toolName"], "arguments": arguments}}


def to_anthropic_form(messages: list[Item]) -> tuple[list[str], list[Item]]:
    """What the AI-SDK sends to Anthropic: the system prompt, and messages with neighbours of one role in one. Raises `NotSent`."""
    chat = to_chat_form(messages)
    system: list[str] = []
    found: list[Item] = []
    for message in chat:
        if message["role"] == "system":
            if found:
                raise NotSent("system messages that are separated by others")
            system += [message["content"]] if message["content"].strip() else []
            continue
        role, blocks = _blocks(message)
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        else:
            found.append({"role": role, "content": blocks})
    if found and found[-1]["role"] == "assistant" and found[-1]["content"][-1]["type"] == "text":
        found[-1]["content"][-1]["text"] = found[-1]["content"][-1]["text"].strip()
    return system, found


def _blocks(message: Item) -> tuple[str, list[Item]]:
    if message["role"] == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
        }
        return "user", [result]
    text = message["content"] or ""
    blocks: list[Item] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls") or ():
        arguments = json.loads(call["function"]["arguments"])
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}
        )
    return message["role"], blocks


def _results(message: Item, waiting: list[tuple[str, str, bool]]) -> Iterator[tuple[str, str]]:
    """The results of a tool message. One without an id answers the next open call, or the next of its tool."""
    content = message["content"]
    given: list[tuple[Any, Any, str]]
    if isinstance(content, str):
        given = [(_text_result_id(message), _text_result_name(message), content)]
    else:
        given = [(part.get("toolCallId"), part["toolName"], _text_of(part)) for part in content]
    for own, name, text in given:
        fits = (
            each
            for each in waiting
            if each[0] == own or ((not own or each[2]) and name in (None, "", each[1]))
        )
        call = next(fits, None)
        if call is not None:
            waiting.remove(call)
        yield call[0] if call is not None else str(own), text


def _text_of(part: Item) -> str:
    output = part.get("result", part.get("output"))
    if isinstance(output, dict) and "value" in output:
        output = output["value"]
    return output if isinstance(output, str) else json.dumps(output)


def _text_result_id(message: Item) -> Any:
    notes = message.get("metadata") or {}
    return next(
        (
            place[key]
            for place in (message, notes)
            for key in ("tool_call_id", "toolCallId")
            if place.get(key)
        ),
        None,
    )


def _text_result_name(message: Item) -> Any:
    notes = message.get("metadata") or {}
    return notes.get("tool_name") or message.get("toolName") or message.get("name")
