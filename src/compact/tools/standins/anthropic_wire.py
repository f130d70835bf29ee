"""How Anthropic writes answers, streams and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compact.tools.standins.anthropic_rules import find_problems
from compact.tools.standins.binding import sign_block, swap_for
from compact.tools.standins.native_anthropic import compaction_answer, is_compacting
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Told, pieces


def _list_messages(body: Item) -> list[Any]:
    found = body.get("messages")
    return found if isinstance(found, list) else []


def _blocks(told: Told) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    thinking = told.reply.thinking
    if thinking:
        found.append(
            {"type": "thinking", "thinking": thinking, "signature": sign_block(thinking, told.body, told.key)}
        )
    if told.reply.text:
        found.append({"type": "text", "text": told.reply.text})
    for call in told.calls("toolu"):
        found.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)})
    return found


def _usage(told: Told) -> dict[str, int]:
    reply = told.reply
    return {
        "input_tokens": max(0, told.tokens - reply.cached_tokens - reply.written_tokens),
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": reply.written_tokens,
        "output_tokens": reply.output_tokens,
    }


def _answer(told: Told) -> dict[str, Any]:
    if is_compacting(told.body):
        return compaction_answer(told, swap_for(told.body))
    return {
        "id": f"msg_{told.number:04}",
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": _blocks(told),
        "stop_reason": "tool_use" if told.reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(told),
    }


def _stream(told: Told) -> Iterator[str]:
    message = _answer(told)
    yield _start(message)
    for place, block in enumerate(message["content"]):
        empty, deltas = _deltas(block)
        yield _event({"type": "content_block_start", "index": place, "content_block": empty})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": place, "delta": delta})
        yield _event({"type": "content_block_stop", "index": place})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ended, "usage": message["usage"]})
    yield _event({"type": "message_stop"})


def _deltas(block: Item) -> tuple[Item, list[Item]]:
    if block["type"] == "compaction":
        return block, []  # it arrives whole
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in pieces(block["text"])]
    if block["type"] == "thinking":
        deltas: list[Item] = [
            {"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"])
        ]
        return (
            {**block, "thinking": "", "signature": ""},
            [*deltas, {"type": "signature_delta", "signature": block["signature"]}],
        )
    arguments = pieces(json.dumps(block["input"]))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in arguments]


def _start(message: Item) -> str:
    return _event({"type": "message_start", "message": {**message, "content": [], "stop_reason": None}})


def _event(event: Item) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _error(problem: Problem) -> Item:
    return {
        "type": "error",
        "error": {
            "type": problem.kind,
            "message": problem.message,
            **({"details": {"error_code": problem.code}} if problem.code else {}),
        },
        "request_id": "req_standin",
    }


def _late_error(told: Told, problem: Problem) -> Iterator[str]:
    yield _start(_answer(told))
    yield _event(_error(problem))


def _too_long(tokens: int, window: int) -> Problem:
    return Problem(f"prompt is too long: {tokens} tokens > {window} maximum")


def _no_room(tokens: int, output: int, window: int) -> Problem:
    return Problem(
        f"input length and `max_tokens` exceed context limit: {tokens} + {output} > {window}, decrease input length or "
        "`max_tokens` and try again"
    )


ANTHROPIC = Endpoint(
    name="anthropic",
    path="/v1/messages",
    find_problems=find_problems,
    list_messages=_list_messages,
    answer=_answer,
    stream=_stream,
    error=_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=Problem("x-api-key header is required", status=401, kind="authentication_error"),
)
