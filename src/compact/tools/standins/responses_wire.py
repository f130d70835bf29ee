"""How OpenAI's Responses API writes answers, streams and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compact.tools.standins.caching import openai_places, openai_rules
from compact.tools.standins.chat_wire import (
    FAULTS,
    KINDS,
    MAX_BYTES,
    UNAUTHORIZED,
    openai_error,
    openai_too_large,
)
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.responses_rules import find_problems
from compact.tools.standins.script import Endpoint, Told, pieces, sent_event
from compact.tools.standins.signing import seal

_LENGTH = "OpenAI docs: guides/conversation-state#managing-the-context-window"


def is_triggered(body: Item) -> bool:
    """Whether a request asks for a compaction item instead of a reply."""
    items = body.get("input")
    last = items[-1] if isinstance(items, list) and items else None
    return isinstance(last, dict) and last.get("type") == "compaction_trigger"


def compaction(told: Told, text: str) -> dict[str, Any]:
    """An item that stands for everything before it, in which only the provider can read."""
    return {
        "type": "compaction",
        "id": f"cmp_{told.number:04}",
        "encrypted_content": seal(text, told.key),
    }


def _threshold(body: Item) -> float:
    """The size above which the provider compacts by itself."""
    settings = [each for each in body.get("context_management") or () if each.get("type") == "compaction"]
    return min((each.get("compact_threshold") or float("inf") for each in settings), default=float("inf"))


def _output(told: Told) -> list[dict[str, Any]]:
    thinking = told.reply.thinking
    # The rules know by the letter that such an item may not come back without its reasoning.
    token = f"{told.number:04}r" if thinking else f"{told.number:04}"
    found: list[dict[str, Any]] = []
    if is_triggered(told.body):
        return [compaction(told, told.reply.text)]
    if told.tokens > _threshold(told.body):
        found.append(compaction(told, "What was said before."))
    if thinking:
        found.append(
            {
                "type": "reasoning",
                "id": f"rs_{token}",
                "summary": [{"type": "summary_text", "text": thinking}],
                "encrypted_content": seal(thinking, told.key),
            }
        )
    if told.reply.text:
        block = {"type": "output_text", "text": told.reply.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{token}", "role": "assistant", "status": "completed"}
        found.append({**message, "content": [block]})
    for place, call in enumerate(told.calls("call")):
        item = {"type": "function_call", "id": f"fc_{token}_{place}", "call_id": call.id, "name": call.name}
        found.append({**item, "arguments": json.dumps(call.arguments), "status": "completed"})
    return found


def _answer(told: Told) -> dict[str, Any]:
    return {
        "id": f"resp_{told.number:04}",
        "object": "response",
        "created_at": 0,
        "model": told.model,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": _output(told),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage_of(told),
    }


def usage_of(told: Told) -> Item:
    """What a reply says it took."""
    reply = told.reply
    return {
        "input_tokens": told.tokens,
        "output_tokens": reply.output_tokens,
        "total_tokens": told.tokens + reply.output_tokens,
        "input_tokens_details": {
            "cached_tokens": told.read_tokens,
            "cache_write_tokens": told.written_tokens,
        },
        "output_tokens_details": {"reasoning_tokens": 0},
    }


def _stream(told: Told) -> Iterator[str]:
    return _numbered(_events(told))


def _events(told: Told) -> Iterator[Item]:
    response = _answer(told)
    yield from _beginning(response)
    yield {"type": "response.completed", "response": response}


def _beginning(response: Item) -> Iterator[Item]:
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for place, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": place, "item": _unfinished(item)}
        yield from _deltas(item, {"output_index": place, "item_id": item["id"]})
        yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _deltas(item: Item, at: Item) -> Iterator[Item]:
    if item["type"] == "message":
        (block,) = item["content"]
        inside = {**at, "content_index": 0}
        yield {"type": "response.content_part.added", **inside, "part": {**block, "text": ""}}
        for part in pieces(block["text"]):
            yield {"type": "response.output_text.delta", **inside, "delta": part, "logprobs": []}
        yield {"type": "response.output_text.done", **inside, "text": block["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **inside, "part": block}
    elif item["type"] == "reasoning":
        (block,) = item["summary"]
        inside = {**at, "summary_index": 0}
        yield {"type": "response.reasoning_summary_part.added", **inside, "part": {**block, "text": ""}}
        for part in pieces(block["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **inside, "delta": part}
        yield {"type": "response.reasoning_summary_text.done", **inside, "text": block["text"]}
        yield {"type": "response.reasoning_summary_part.done", **inside, "part": block}
    elif item["type"] == "compaction":
        yield {"type": "response.compaction.compacting", **at}
    else:
        for part in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": part}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}


def _unfinished(item: Item) -> Item:
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    if item["type"] == "reasoning":
        return {**item, "summary": [], "encrypted_content": None}
    if item["type"] == "compaction":
        return {**item, "encrypted_content": ""}
    return {**item, "status": "in_progress", "arguments": ""}


def _late_error(told: Told, problem: Problem) -> Iterator[str]:
    response = _answer(told)
    failed = {"code": problem.code or "server_error", "message": problem.message}
    ending = {**response, "status": "failed", "output": [], "usage": None, "error": failed}
    return _numbered([*_beginning(response), {"type": "response.failed", "response": ending}])


def _numbered(events: Any) -> Iterator[str]:
    for number, event in enumerate(events):
        yield sent_event({**event, "sequence_number": number}, named=True)


def _too_long(_: int, __: int) -> Problem:
    message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return Problem(message, "input", "context_length_exceeded", page=_LENGTH)


def _no_room(tokens: int, _: int, window: int) -> Problem:
    return _too_long(tokens, window)


RESPONSES = Endpoint(
    name="responses",
    path="/v1/responses",
    find_problems=find_problems,
    messages="input",
    answer=_answer,
    stream=_stream,
    error=openai_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=UNAUTHORIZED,
    too_large=openai_too_large,
    max_bytes=MAX_BYTES,
    faults=FAULTS,
    kinds=KINDS,
    places=lambda body: openai_places(body, "input", ("tools", "instructions", "text")),
    cache=openai_rules,
    counting="/v1/responses/input_tokens",
    counted=lambda tokens: {"object": "response.input_tokens", "input_tokens": tokens},
)
