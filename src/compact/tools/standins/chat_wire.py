"""How OpenAI's chat completions write answers, streams and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from compact.tools.standins.caching import openai_places, openai_rules
from compact.tools.standins.chat_rules import find_problems
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, FaultKind, Told, pieces, sent_event

_ERRORS = "OpenAI docs: guides/error-codes"
_LENGTH = "OpenAI docs: guides/conversation-state#managing-the-context-window"
UNAUTHORIZED = Problem(
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
    status=401,
    page=_ERRORS,
)
MAX_BYTES = 512 * 1024 * 1024
"""Of the images guide: 512 MB of payload in a request."""
FAULTS: Mapping[FaultKind, Problem] = {
    "rate_limited": Problem(
        "Rate limit reached in organization org-standin on tokens per min (TPM): Limit 30000, Used 30000, Requested 1. "
        "Please try again in 1s.",
        status=429,
        kind="tokens",
        code="rate_limit_exceeded",
        page=_ERRORS,
    ),
    "server_error": Problem(
        "The server had an error while processing your request. Sorry about that!",
        status=500,
        kind="server_error",
        page=_ERRORS,
    ),
    "overloaded": Problem(
        "The engine is currently overloaded, please try again later",
        status=503,
        kind="server_error",
        page=_ERRORS,
    ),
}
KINDS = {429: "requests", 500: "server_error", 503: "server_error"}


def openai_error(problem: Problem) -> Item:
    """The body of an error of OpenAI."""
    return {
        "error": {
            "message": problem.message,
            "type": problem.kind,
            "param": problem.param,
            "code": problem.code,
        }
    }


def openai_too_large(most: int) -> Problem:
    """The refusal of a body of more than `most` bytes."""
    return Problem(
        f"Request payload too large: the maximum is {most} bytes.",
        status=413,
        page="OpenAI docs: guides/images-vision#image-input-requirements",
    )


def _head(told: Told) -> dict[str, Any]:
    return {"id": f"chatcmpl-{told.number:04}", "created": 0, "model": told.model}


def _calls(told: Told) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in told.calls("call")
    ]


def _usage(told: Told) -> Item:
    details = {"cached_tokens": told.read_tokens, "audio_tokens": 0}
    if told.written_tokens:
        details["cache_write_tokens"] = told.written_tokens
    return {
        "prompt_tokens": told.tokens,
        "completion_tokens": told.reply.output_tokens,
        "total_tokens": told.tokens + told.reply.output_tokens,
        "prompt_tokens_details": details,
    }


def _reason(told: Told) -> str:
    return "tool_calls" if told.reply.calls else "stop"


def _answer(told: Told) -> Item:
    message: dict[str, Any] = {"role": "assistant", "content": told.reply.text or None, "refusal": None}
    if told.reply.calls:
        message["tool_calls"] = _calls(told)
    elif not told.reply.text:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(told)}
    return {**_head(told), "object": "chat.completion", "choices": [choice], "usage": _usage(told)}


def _stream(told: Told) -> Iterator[str]:
    head = {**_head(told), "object": "chat.completion.chunk"}
    yield from _beginning(told)
    yield sent_event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _reason(told)}]})
    yield sent_event({**head, "choices": [], "usage": _usage(told)})
    yield "data: [DONE]\n\n"


def _beginning(told: Told) -> Iterator[str]:
    head = {**_head(told), "object": "chat.completion.chunk"}
    deltas: list[Item] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": part} for part in pieces(told.reply.text)]
    for place, call in enumerate(_calls(told)):
        arguments = call["function"]["arguments"]
        deltas.append(
            {"tool_calls": [{"index": place, **call, "function": {**call["function"], "arguments": ""}}]}
        )
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": part}}]} for part in pieces(arguments)
        ]
    for delta in deltas:
        yield sent_event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _late_error(told: Told, problem: Problem) -> Iterator[str]:
    yield from _beginning(told)
    yield sent_event(openai_error(problem))


def _too_long(tokens: int, window: int) -> Problem:
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return Problem(message, "messages", "context_length_exceeded", page=_LENGTH)


def _no_room(tokens: int, output: int, window: int) -> Problem:
    message = (
        f"This model's maximum context length is {window} tokens. However, you requested {tokens + output} tokens "
        f"({tokens} in the messages, {output} in the completion). Please reduce the length of the messages or completion."
    )
    return Problem(message, "messages", "context_length_exceeded", page=_LENGTH)


CHAT = Endpoint(
    name="chat",
    path="/v1/chat/completions",
    find_problems=find_problems,
    messages="messages",
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
    places=lambda body: openai_places(body, "messages", ("tools", "response_format")),
    cache=openai_rules,
)
