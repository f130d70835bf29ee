"""How Anthropic writes answers, streams and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compact.tools.standins.anthropic_rules import ERRORS, find_problems
from compact.tools.standins.binding import sign_block, swap_for
from compact.tools.standins.caching import Life, Place, block_places, claude_rules
from compact.tools.standins.native_anthropic import compaction_answer, is_compacting
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Told, pieces, sent_event

_WINDOWS = "Claude docs: build-with-claude/context-windows"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_CALLS = "toolu"
"""How the ids of calls begin."""


def _blocks(told: Told) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    thinking = told.reply.thinking
    if thinking:
        found.append(
            {"type": "thinking", "thinking": thinking, "signature": sign_block(thinking, told.body, told.key)}
        )
    if told.reply.text:
        found.append({"type": "text", "text": told.reply.text})
    for call in told.calls(_CALLS):
        found.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)})
    return found


def _usage(told: Told) -> dict[str, Any]:
    lives: tuple[Life, Life] = ("5m", "1h")
    return {
        "input_tokens": told.fresh_tokens,
        "cache_read_input_tokens": told.read_tokens,
        "cache_creation_input_tokens": told.written_tokens,
        "cache_creation": {f"ephemeral_{life}_input_tokens": told.written.get(life, 0) for life in lives},
        "output_tokens": told.reply.output_tokens,
        "service_tier": "standard",
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
    yield from _beginning(message)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {key: count for key, count in message["usage"].items() if isinstance(count, int)}
    yield _event({"type": "message_delta", "delta": ended, "usage": usage})
    yield _event({"type": "message_stop"})


def _beginning(message: Item) -> Iterator[str]:
    usage = {**message["usage"], "output_tokens": 1}
    started = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield _event({"type": "message_start", "message": started})
    for place, block in enumerate(message["content"]):
        empty, deltas = _deltas(block)
        yield _event({"type": "content_block_start", "index": place, "content_block": empty})
        if not place:
            yield _event({"type": "ping"})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": place, "delta": delta})
        yield _event({"type": "content_block_stop", "index": place})


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


def _event(event: Item) -> str:
    return sent_event(event, named=True)


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
    yield from _beginning(_answer(told))
    yield _event(_error(problem))


def _too_long(tokens: int, window: int) -> Problem:
    return Problem(f"prompt is too long: {tokens} tokens > {window} maximum", page=_WINDOWS)


def _no_room(tokens: int, output: int, window: int) -> Problem:
    return Problem(
        f"input length and `max_tokens` exceed context limit: {tokens} + {output} > {window}, decrease input length or "
        "`max_tokens` and try again",
        page=_WINDOWS,
    )


def _too_large(_: int) -> Problem:
    return Problem("Request exceeds the maximum size", status=413, kind="request_too_large", page=ERRORS)


def _places(body: Item) -> list[Place]:
    tools: Sequence[Any] = body.get("tools") or ()
    places = block_places(
        body,
        tools,
        lambda some: {**body, "tools": list(some)},
        ("tool_choice", "thinking", "output_config"),
        _mark,
    )
    whole = _life(body.get("cache_control"))
    if whole is not None:
        # Thinking carries no mark, so the request's own stands before it.
        place = next((n for n in reversed(range(len(places))) if not _is_thinking(places[n].value)), None)
        if place is not None:
            places[place] = replace(places[place], mark=whole)
    return places


def _is_thinking(value: Any) -> bool:
    block = value[-1] if isinstance(value, list) else value
    return isinstance(block, Mapping) and block.get("type") in ("thinking", "redacted_thinking")


def _mark(block: Any) -> Life | None:
    """How long a block wants to be kept: by its own mark, or by that of a block inside a result."""
    if not isinstance(block, Mapping):
        return None
    inner = block.get("content") if block.get("type") == "tool_result" else None
    found = [_mark(each) for each in inner] if isinstance(inner, list) else []
    inside = next((life for life in reversed(found) if life is not None), None)
    return _life(block.get("cache_control")) or inside


def _life(mark: Any) -> Life | None:
    if not isinstance(mark, Mapping):
        return None
    return "1h" if mark.get("ttl") == "1h" else "5m"


ANTHROPIC = Endpoint(
    name="anthropic",
    path="/v1/messages",
    find_problems=find_problems,
    messages="messages",
    answer=_answer,
    stream=_stream,
    error=_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=Problem(
        "x-api-key header is required", status=401, kind="authentication_error", page=ERRORS
    ),
    too_large=_too_large,
    max_bytes=32 * 1024 * 1024,
    call_prefix=_CALLS,
    faults={
        "rate_limited": Problem(
            "This request would exceed the rate limit for your organization. Please reduce the prompt length or the maximum "
            "tokens requested, or try again later.",
            status=429,
            kind="rate_limit_error",
            page=ERRORS,
        ),
        "server_error": Problem("Internal server error", status=500, kind="api_error", page=ERRORS),
        "overloaded": Problem("Overloaded", status=529, kind="overloaded_error", page=ERRORS),
    },
    kinds=_KINDS,
    places=_places,
    cache=lambda body: claude_rules(str(body["model"])),
    counting="/v1/messages/count_tokens",
)
