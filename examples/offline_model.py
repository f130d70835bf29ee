"""A stand-in model, so that the examples run without a key.

If OPENAI_API_KEY is set (ANTHROPIC_API_KEY for the Anthropic example), the examples use the real API. Otherwise they use the local
server below, which speaks the same protocols. It calls the first tool it is offered a given number of times, with a remark each time,
then says that it is done. Like a real provider, it rejects requests that exceed its window.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from compact.tokens import estimate

WINDOW = 12_000
"""The stand-in's window, in tokens. The examples configure compact with the same value, so that it acts within seconds."""


@contextmanager
def model(calls: int = 40, key: str = "OPENAI_API_KEY") -> Iterator[str]:
    """Yield the name of the model to use: a real one if its key is set, else the stand-in, which makes `calls` tool calls."""
    if os.environ.get(key):
        yield os.environ.get(
            "EXAMPLE_MODEL", "gpt-4o-mini" if key.startswith("OPENAI") else "claude-sonnet-5"
        )
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(calls))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    changed = {
        "OPENAI_API_KEY": "offline",
        "OPENAI_BASE_URL": f"{address}/v1",
        "ANTHROPIC_API_KEY": "offline",
        "ANTHROPIC_BASE_URL": address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield "gpt-4o" if key.startswith("OPENAI") else "claude-sonnet-5"
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(calls: int) -> type[BaseHTTPRequestHandler]:
    answered = 0

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            nonlocal answered
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kind = self.path.rsplit("/", 1)[-1]
            tokens = _tokens(request, kind)
            if tokens > WINDOW:
                text = f"This model's maximum context length is {WINDOW} tokens, but {tokens} were sent."
                self._send(400, {"error": {"message": text, "code": "context_length_exceeded"}})
                return
            answered += 1
            number = answered % (calls + 1)  # after the final answer, the next request starts a new round
            said = _REPLIES[kind](request, number, tokens, answered)
            self._send(200, said)

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _tokens(request: dict[str, Any], kind: str) -> int:
    dialect = {"completions": "chat", "responses": "responses", "messages": "anthropic"}[kind]
    messages = request["input" if kind == "responses" else "messages"]
    system = request.get("instructions") or request.get("system")
    return estimate(messages, tools=request.get("tools"), system=system, dialect=dialect).total


def _call(request: dict[str, Any], number: int) -> tuple[str, dict[str, Any]] | None:
    """Return the first tool of the request with arguments that its schema allows, or None for the final answer."""
    tools = request.get("tools")
    if not tools or number == 0:
        return None
    tool = tools[0].get("function", tools[0])
    schema = tool.get("parameters") or tool.get("input_schema") or {}
    kinds = {"integer": number, "number": number, "boolean": True}
    arguments = {
        name: kinds.get(rule.get("type"), f"item-{number}")
        for name, rule in schema.get("properties", {}).items()
    }
    return tool["name"], arguments


_DONE = "I have everything I need: the work is done."


def _remark(number: int) -> str:
    """What a model says beside a call. It makes a session long in words too, not only in tool results."""
    return (
        f"Part {number} follows. So far {number - 1} parts are read, and nothing in them speaks against the first guess. "
        f"I keep the values of part {max(1, number - 1)} in mind, because the later parts may differ from them by more than "
        f"{number % 7 + 1} percent. If part {number} agrees as well, the answer stands."
    )


def _completion(request: dict[str, Any], number: int, tokens: int, answered: int) -> dict[str, Any]:
    called = _call(request, number)
    message: dict[str, Any] = {"role": "assistant", "content": _remark(number) if called else _DONE}
    if called:
        function = {"name": called[0], "arguments": json.dumps(called[1])}
        message["tool_calls"] = [{"id": f"call_{answered}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if called else "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}
    head = {"id": "c", "object": "chat.completion", "created": 0, "model": request["model"]}
    return {**head, "choices": [choice], "usage": usage}


def _response(request: dict[str, Any], number: int, tokens: int, answered: int) -> dict[str, Any]:
    called = _call(request, number)
    block = {"type": "output_text", "text": _remark(number) if called else _DONE, "annotations": []}
    message = {"type": "message", "id": f"msg_{answered}", "role": "assistant", "status": "completed"}
    output: list[dict[str, Any]] = [{**message, "content": [block]}]
    if called:
        call = {"type": "function_call", "id": f"fc_{answered}", "call_id": f"call_{answered}"}
        output.append({**call, "name": called[0], "arguments": json.dumps(called[1]), "status": "completed"})
    usage = {
        "input_tokens": tokens,
        "output_tokens": 9,
        "total_tokens": tokens + 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    head = {"id": f"resp_{answered}", "object": "response", "created_at": 0, "model": request["model"]}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
    return {**head, **rest, "output": output, "usage": usage}


def _message(request: dict[str, Any], number: int, tokens: int, answered: int) -> dict[str, Any]:
    called = _call(request, number)
    blocks: list[dict[str, Any]] = [{"type": "text", "text": _remark(number) if called else _DONE}]
    if called:
        blocks.append({"type": "tool_use", "id": f"call_{answered}", "name": called[0], "input": called[1]})
    head = {"id": f"msg_{answered}", "type": "message", "role": "assistant", "model": request["model"]}
    stop = {"stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None}
    return {**head, **stop, "content": blocks, "usage": {"input_tokens": tokens, "output_tokens": 9}}


_REPLIES = {"completions": _completion, "responses": _response, "messages": _message}
