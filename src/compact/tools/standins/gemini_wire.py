"""How Google writes answers, streams and errors of the Gemini API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.standins.caching import gemini_rules, message_places
from compact.tools.standins.gemini_rules import find_problems, signed_text
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Route, Told, pieces, sent_event
from compact.tools.standins.signing import sign

_LONG = "Gemini API: docs/long-context"
_KEYS = "Gemini API: docs/api-key"
_ERRORS = "Gemini API: docs/troubleshooting"
_FILES = "Gemini API: docs/file-input-methods"
_METHODS = {
    "generateContent": (False, False),
    "streamGenerateContent": (True, False),
    "countTokens": (False, True),
}
_STATUSES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip

_CALLS = "fc"
"""How the ids of calls begin."""


def _route(path: str) -> Route | None:
    """The model and the method of `/v1beta/models/{model}:{method}`, and of Vertex's longer paths."""
    before, _, method = path.rpartition(":")
    if method not in _METHODS or "/models/" not in before:
        return None
    streamed, counting = _METHODS[method]
    return Route(before.rpartition("/models/")[2], streamed, counting)


def _parts(told: Told) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if told.reply.thinking:
        found.append({"text": told.reply.thinking, "thought": True})
    if told.reply.text:
        found.append({"text": told.reply.text})
    for place, call in enumerate(told.calls(_CALLS)):
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
    output = told.reply.output_tokens
    counts = {
        "promptTokenCount": told.tokens,
        "candidatesTokenCount": output,
        "totalTokenCount": told.tokens + output,
    }
    return {**counts, "cachedContentTokenCount": told.read_tokens} if told.read_tokens else counts


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
    parts = _pieces(told) or [{"text": ""}]
    for place, part in enumerate(parts):
        yield _event(_chunk(told, [part], place == len(parts) - 1))


def _pieces(told: Told) -> list[dict[str, Any]]:
    return [piece for part in _parts(told) for piece in _pieces_of(part)]


def _pieces_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A part as a stream delivers it: a text in pieces, anything else, and what is signed, whole."""
    if "text" not in part or "thoughtSignature" in part:
        return [part]
    return [{**part, "text": piece} for piece in pieces(part["text"])]


def _event(chunk: Item) -> str:
    return sent_event(chunk, end="\r\n")


def _error(problem: Problem) -> Item:
    status = _STATUSES.get(problem.status, "INVALID_ARGUMENT")
    return {"error": {"code": problem.status, "message": problem.message, "status": status}}


def _late_error(told: Told, problem: Problem) -> Iterator[str]:
    for part in _pieces(told):
        yield _event(_chunk(told, [part], False))
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
    messages="contents",
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
    too_large=lambda most: Problem(f"Request payload size exceeds the limit: {most} bytes.", page=_FILES),
    max_bytes=100 * 1024 * 1024,
    route=_route,
    prompt=_prompt,
    counted_body=lambda body: body.get("generateContentRequest") or body,
    counted=lambda tokens: {"totalTokens": tokens},
    call_prefix=_CALLS,
    faults={
        "rate_limited": Problem(
            "You exceeded your current quota, please check your plan and billing details.",
            status=429,
            page=_ERRORS,
        ),
        "server_error": Problem("An internal error has occurred. Please retry.", status=500, page=_ERRORS),
        "overloaded": Problem("The model is overloaded. Please try again later.", status=503, page=_ERRORS),
    },
    kinds=_STATUSES,
    places=lambda body: message_places(
        body, "contents", ("model", "tools", "systemInstruction", "system_instruction"), lambda _: None
    ),
    cache=gemini_rules,
)
