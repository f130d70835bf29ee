"""How Google writes answers, streams and errors of the Gemini API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compact.tools.standins.gemini_rules import find_problems, signed_text
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Route, Told, pieces
from compact.tools.standins.signing import sign

_LONG = "https://ai.google.dev/gemini-api/docs/long-context"
_KEYS = "https://ai.google.dev/gemini-api/docs/api-key"
_FILES = "https://ai.google.dev/gemini-api/docs/file-input-methods"
_METHODS = {
    "generateContent": (False, False),
    "streamGenerateContent": (True, False),
    "countTokens": (False, True),
}
_STATUSES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip


def _route(path: str) -> Route | None:
    """The model and the method of `/v1beta/models/{model}:{method}`, and of Vertex's longer paths."""
    before, _, method = path.rpartition(":")
    if method not in _METHODS or "/models/" not in before:
        return None
    streamed, counting = _METHODS[method]
    return Route(before.rpartition("/models/")[2], streamed, counting)


def _list_messages(body: Item) -> list[Any]:
    found = body.get("contents")
    return found if isinstance(found, list) else []


def _parts(told: Told) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if told.reply.thinking:
        found.append({"text": told.reply.thinking, "thought": True})
    if told.reply.text:
        found.append({"text": told.reply.text})
    for place, call in enumerate(told.calls("fc")):
        part: dict[str, Any] = {
            "functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}
        }
        # Of parallel calls only the first is signed.
        found.append(_signed(part, told) if not place else part)
    if not told.reply.calls and told.reply.thinking and found:
        found[-1] = _signed(found[-1], told)
    return found


def _signed(part: dict[str, Any], told: Told) -> dict[str, Any]:
    return {**part, "thoughtSignature": sign(signed_text(part), told.key)}


def _usage(told: Told) -> dict[str, int]:
    reply = told.reply
    return {
        "promptTokenCount": told.tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "totalTokenCount": told.tokens + reply.output_tokens,
    }


def _chunk(told: Told, parts: list[dict[str, Any]], ended: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if ended:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(told),
        "modelVersion": told.model,
        "responseId": f"resp_{told.number:04}",
    }


def _answer(told: Told) -> dict[str, Any]:
    return _chunk(told, _parts(told), True)


def _stream(told: Told) -> Iterator[str]:
    parts = [piece for part in _parts(told) for piece in _pieces_of(part)] or [{"text": ""}]
    for place, part in enumerate(parts):
        yield _event(_chunk(told, [part], place == len(parts) - 1))


def _pieces_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A part as a stream delivers it: a text in pieces, anything else, and what is signed, whole."""
    if "text" not in part or "thoughtSignature" in part:
        return [part]
    return [{**part, "text": piece} for piece in pieces(part["text"])]


def _event(chunk: Item) -> str:
    return f"data: {json.dumps(chunk)}\r\n\r\n"


def _error(problem: Problem) -> Item:
    status = _STATUSES.get(problem.status, "INVALID_ARGUMENT")
    return {"error": {"code": problem.status, "message": problem.message, "status": status}}


def _late_error(_told: Told, problem: Problem) -> Iterator[str]:
    yield _event(_error(problem))


def _too_long(tokens: int, window: int) -> Problem:
    text = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
    return Problem(text, page=_LONG)


def _no_room(tokens: int, output: int, window: int) -> Problem:
    return _too_long(tokens + output, window)


def _prompt(body: Item) -> Any:
    return body.get("systemInstruction", body.get("system_instruction"))


GEMINI = Endpoint(
    name="gemini",
    path=":generateContent",
    find_problems=find_problems,
    list_messages=_list_messages,
    answer=_answer,
    stream=_stream,
    error=_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=Problem(
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form "
        "of API consumer identity to call this API.",
        status=403,
        page=_KEYS,
    ),
    too_large=Problem("Request payload size exceeds the limit: 104857600 bytes.", page=_FILES),
    max_bytes=100 * 1024 * 1024,
    route=_route,
    prompt=_prompt,
    counted=lambda tokens: {"totalTokens": tokens},
)
