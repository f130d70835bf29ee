"""How OpenAI's chat completions write answers, streams and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compact.tools.standins.chat_rules import find_problems
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.script import Endpoint, Told, pieces

UNAUTHORIZED = Problem(
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
    status=401,
)


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


def _list_messages(body: Item) -> list[Any]:
    found = body.get("messages")
    return found if isinstance(found, list) else []


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
    return {
        "prompt_tokens": told.tokens,
        "completion_tokens": told.reply.output_tokens,
        "total_tokens": told.tokens + told.reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": told.reply.cached_tokens},
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
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _reason(told)}]})
    yield _event({**head, "choices": [], "usage": _usage(told)})
    yield "data: [DONE]\n\n"


def _late_error(told: Told, problem: Problem) -> Iterator[str]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    yield _event({**_head(told), "object": "chat.completion.chunk", "choices": [choice]})
    yield _event(openai_error(problem))


def _event(chunk: Item) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def _too_long(tokens: int, window: int) -> Problem:
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return Problem(message, "messages", "context_length_exceeded")


def _no_room(tokens: int, output: int, window: int) -> Problem:
    message = (
        f"This model's maximum context length is {window} tokens. However, you requested {tokens + output} tokens "
        f"({tokens} in the messages, {output} in the completion). Please reduce the length of the messages or completion."
    )
    return Problem(message, "messages", "context_length_exceeded")


CHAT = Endpoint(
    name="chat",
    path="/v1/chat/completions",
    find_problems=find_problems,
    list_messages=_list_messages,
    answer=_answer,
    stream=_stream,
    error=openai_error,
    late_error=_late_error,
    too_long=_too_long,
    no_room=_no_room,
    unauthorized=UNAUTHORIZED,
)
