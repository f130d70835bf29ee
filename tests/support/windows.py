"""Models that enforce their window: as a plain function, and as an HTTP server with the providers' own error bodies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.engine import pair, says, user

from compact.tokens.counter import counter_for

Item = dict[str, Any]


def tool_session(calls: int = 40, words: int = 120) -> list[Item]:
    """A person's order, many calls with results, and a last word of the person's."""
    found = [user("Fix the totals in src/cart.py. Never touch the database.")]
    for n in range(calls):
        found += [*pair(f"c{n}", f"row {n} of the report " * (words // 5)), says(f"Step {n} is done.")]
    return [*found, user("Go on, please.")]


class Refused(Exception):
    """What a model raises that was sent too much."""


@dataclass
class Model:
    """Answers up to `limit` tokens, and refuses more in the given words. Remembers every request."""

    limit: int
    words: str = "prompt is too long: {n} tokens > {limit} maximum"
    factor: float = 1.0
    """Its tokenizer counts so many times what a plain one does."""
    requests: list[list[Item]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, messages: Any) -> Item:
        size = int(_count(json.dumps(list(messages), ensure_ascii=False)) * self.factor)
        self.requests.append(list(messages))
        self.sizes.append(size)
        if size > self.limit:
            raise Refused(self.words.format(n=size, limit=self.limit))
        return {"role": "assistant", "content": f"reply {len(self.requests)}"}

    async def acall(self, messages: Any) -> Item:
        return self(messages)

    @property
    def refusals(self) -> int:
        return sum(size > self.limit for size in self.sizes)


def _count(text: str) -> int:
    return int(_counter().count(text))


@cache
def _counter() -> Any:
    return counter_for("o200k_base", fast=False)


@dataclass
class Server:
    """An HTTP server on a free port that speaks OpenAI chat, OpenAI Responses and Anthropic, with one window for all."""

    limit: int
    address: str = ""
    answered: int = 0
    refused: int = 0

    def reply(self, path: str, request: Item) -> tuple[int, Item]:
        size = _count(json.dumps([request.get(key) for key in ("system", "tools", "messages", "input")]))
        output = request.get("max_tokens") or 0
        if "anthropic" in path:
            return self._anthropic(size, output)
        if size + output > self.limit:
            self.refused += 1
            if path.endswith("/responses"):
                said = "Your input exceeds the context window of this model. Please adjust your input and try again."
            else:
                said = (
                    f"This model's maximum context length is {self.limit} tokens. However, you requested {size + output} "
                    f"tokens ({size} in the messages, {output} in the completion). Please reduce the length of the "
                    "messages or completion."
                )
            return 400, {"error": {"message": said, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}  # fmt: skip
        self.answered += 1
        if path.endswith("/responses"):
            return 200, _response(self.answered, size)
        message = {"role": "assistant", "content": f"reply {self.answered}"}
        usage = {"prompt_tokens": size, "completion_tokens": 3, "total_tokens": size + 3}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}  # fmt: skip

    def _anthropic(self, size: int, output: int) -> tuple[int, Item]:
        if size + output > self.limit:
            self.refused += 1
            said = f"prompt is too long: {size} tokens > {self.limit} maximum"
            if size <= self.limit:
                said = (
                    f"input length and `max_tokens` exceed context limit: {size} + {output} > {self.limit}, decrease "
                    "input length or `max_tokens` and try again"
                )
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
        self.answered += 1
        content = [{"type": "text", "text": f"reply {self.answered}"}]
        usage = {"input_tokens": size - 7, "cache_read_input_tokens": 7, "output_tokens": 3}
        return 200, {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip


def _response(number: int, size: int) -> Item:
    content = [{"type": "output_text", "text": f"reply {number}", "annotations": []}]
    item = {"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": size, "output_tokens": 3, "total_tokens": size + 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "error": None, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}  # fmt: skip


@contextmanager
def enforcing(limit: int) -> Iterator[Server]:
    """The server, as long as it is needed."""
    found = Server(limit)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = found.reply(self.path, request)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
