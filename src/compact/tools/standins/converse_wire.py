"""How Bedrock writes answers, streams and errors of Converse. A stream is binary: frames with headers and checksums."""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from compact.messages.message import CACHE_POINT
from compact.tools.standins.caching import Life, Place, block_places, claude_rules
from compact.tools.standins.converse_rules import find_problems
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Route, Told, pieces
from compact.tools.standins.signing import sign

_CONVERSE = "Bedrock: latest/APIReference/API_runtime_Converse.html"
_KINDS = {400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 413: "ValidationException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException"}  # fmt: skip
_STRING = 7
"""The type of a header whose value is text."""

_CALLS = "tooluse"
"""How the ids of calls begin."""


def _route(path: str) -> Route | None:
    """The model of `/model/{modelId}/converse`, `converse-stream` and `count-tokens`."""
    before, _, method = path.rpartition("/")
    if method not in ("converse", "converse-stream", "count-tokens") or "/model/" not in before:
        return None
    model = unquote(before.rpartition("/model/")[2])
    return Route(model, method == "converse-stream", counting=method == "count-tokens")


def _blocks(told: Told) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    thinking = told.reply.thinking
    if thinking:
        said = {"text": thinking, "signature": sign(thinking, told.key)}
        found.append({"reasoningContent": {"reasoningText": said}})
    if told.reply.text:
        found.append({"text": told.reply.text})
    for call in told.calls(_CALLS):
        found.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}})
    return found


def _usage(told: Told) -> dict[str, Any]:
    return {
        "inputTokens": told.fresh_tokens,
        "outputTokens": told.reply.output_tokens,
        "totalTokens": told.tokens + told.reply.output_tokens,
        "cacheReadInputTokens": told.read_tokens,
        "cacheWriteInputTokens": told.written_tokens,
        "cacheDetails": [{"ttl": life, "inputTokens": tokens} for life, tokens in told.written.items()],
    }


def _stop_reason(told: Told) -> str:
    return "tool_use" if told.reply.calls else "end_turn"


def _answer(told: Told) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": _blocks(told)}},
        "stopReason": _stop_reason(told),
        "usage": _usage(told),
        "metrics": {"latencyMs": 1},
    }


def _stream(told: Told) -> Iterator[bytes]:
    yield from _beginning(told)
    yield _event("messageStop", {"stopReason": _stop_reason(told)})
    yield _event("metadata", {"usage": _usage(told), "metrics": {"latencyMs": 1}})


def _beginning(told: Told) -> Iterator[bytes]:
    yield _event("messageStart", {"role": "assistant"})
    for place, block in enumerate(_blocks(told)):
        start, deltas = _deltas(block)
        if start is not None:
            yield _event("contentBlockStart", {"start": start, "contentBlockIndex": place})
        for delta in deltas:
            yield _event("contentBlockDelta", {"delta": delta, "contentBlockIndex": place})
        yield _event("contentBlockStop", {"contentBlockIndex": place})


def _deltas(block: Item) -> tuple[Item | None, list[Item]]:
    """How a block begins, if it says so, and the pieces in which it is delivered."""
    if "text" in block:
        return None, [{"text": part} for part in pieces(block["text"])]
    if "reasoningContent" in block:
        said = block["reasoningContent"]["reasoningText"]
        parts: list[Item] = [{"reasoningContent": {"text": part}} for part in pieces(said["text"])]
        return None, [*parts, {"reasoningContent": {"signature": said["signature"]}}]
    use = block["toolUse"]
    arguments = pieces(json.dumps(use["input"]))
    start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
    return start, [{"toolUse": {"input": part}} for part in arguments]


def _event(kind: str, data: Item) -> bytes:
    return frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, data)


def frame(headers: Mapping[str, str], data: Item) -> bytes:
    """One message of AWS's event stream: lengths, a checksum, headers, the data, and a checksum of it all."""
    named = b"".join(
        struct.pack(
            f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), _STRING, len(value), value.encode()
        )
        for name, value in headers.items()
    )
    payload = json.dumps(data).encode()
    lengths = struct.pack("!II", 16 + len(named) + len(payload), len(named))
    whole = lengths + struct.pack("!I", binascii.crc32(lengths)) + named + payload
    return whole + struct.pack("!I", binascii.crc32(whole))


def _error(problem: Problem) -> Item:
    return {"message": problem.message}


def _kind(problem: Problem) -> str:
    return (
        problem.kind
        if problem.kind.endswith("Exception")
        else _KINDS.get(problem.status, "ValidationException")
    )


def _late_error(told: Told, problem: Problem) -> Iterator[bytes]:
    if told.reply.text:
        yield from _beginning(told)
    kind = _kind(problem)
    named = {":exception-type": kind[:1].lower() + kind[1:], ":content-type": "application/json"}
    yield frame({**named, ":message-type": "exception"}, _error(problem))


def _too_long(_tokens: int, _window: int) -> Problem:
    return Problem("Input is too long for requested model.", kind="ValidationException", page=_CONVERSE)


def _no_room(tokens: int, output: int, window: int) -> Problem:
    text = (
        "The model returned the following errors: input length and `max_tokens` exceed context limit: "
        f"{tokens} + {output} > {window}, decrease input length or `max_tokens` and try again"
    )
    return Problem(text, kind="ValidationException", page=_CONVERSE)


def _tools(body: Item) -> Any:
    config = body.get("toolConfig")
    return config.get("tools") if isinstance(config, dict) else None


def _counted_body(body: Item) -> Item:
    given = body.get("input")
    found = given.get("converse") if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def _places(body: Item) -> list[Place]:
    def with_tools(some: Sequence[Any]) -> Item:
        return {**body, "toolConfig": {**(body.get("toolConfig") or {}), "tools": list(some)}}

    return block_places(body, _tools(body) or (), with_tools, ("additionalModelRequestFields",), _mark)


def _mark(block: Any) -> Life | None:
    """How long what stands before a cache point is kept."""
    point = block.get(CACHE_POINT)
    if not isinstance(point, dict):
        return None
    return "1h" if point.get("ttl") == "1h" else "5m"


CONVERSE = Endpoint(
    name="converse",
    path="/converse",
    find_problems=find_problems,
    messages="messages",
    answer=_answer,
    stream=_stream,
    error=_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=Problem(
        "Missing Authentication Token", status=403, kind="AccessDeniedException", page=_CONVERSE
    ),
    too_large=lambda _: Problem(
        "The request body is too large.", status=413, kind="ValidationException", page=_CONVERSE
    ),
    max_bytes=25_000_000,
    call_prefix=_CALLS,
    faults={
        "rate_limited": Problem(
            "Too many requests, please wait before trying again.",
            status=429,
            kind="ThrottlingException",
            page=_CONVERSE,
        ),
        "server_error": Problem(
            "The system encountered an unexpected error during processing. Try your request again.",
            status=500,
            kind="InternalServerException",
            page=_CONVERSE,
        ),
        "overloaded": Problem(
            "Bedrock is unable to process your request.",
            status=503,
            kind="ServiceUnavailableException",
            page=_CONVERSE,
        ),
    },
    kinds=_KINDS,
    places=_places,
    cache=lambda body: claude_rules(str(body["model"])),
    route=_route,
    counted_body=_counted_body,
    counted=lambda tokens: {"inputTokens": tokens},
    tools=_tools,
    error_headers=lambda problem: {"x-amzn-ErrorType": _kind(problem)},
    stream_type="application/vnd.amazon.eventstream",
)
