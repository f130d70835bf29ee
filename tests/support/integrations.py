"""A provider on this machine: it speaks chat completions, Responses and Anthropic messages over HTTP, refuses what a real
one would refuse (illegal lists, requests over its window), remembers every request, and answers by a script.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.engine import Clock

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.messages import Message
from compact.messages.dialects import get
from compact.testing import CapturingExporter
from compact.tokens import Meter

Item = dict[str, Any]
WINDOW = 8_000


@dataclass(frozen=True)
class Reply:
    """What the model says: words, or calls as (id, tool, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Request:
    """What arrived."""

    kind: str
    """chat, responses or anthropic: the dialect of its messages."""
    body: Item
    tokens: int
    refused: str = ""

    @property
    def messages(self) -> list[Item]:
        found = self.body["input" if self.kind == "responses" else "messages"]
        return [{"role": "user", "content": found}] if isinstance(found, str) else found

    @property
    def neutral(self) -> list[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]]:
        """The conversation without what differs between dialects: who said what, called what, and got what."""
        return neutral(self.messages, self.kind)


@dataclass
class Provider:
    """The provider's address, its window, and what it was asked."""

    url: str
    window: int
    script: Callable[[int], Reply]
    requests: list[Request] = field(default_factory=list)
    late_refusals: bool = False
    """Whether a streamed request that is too long is refused inside its stream."""
    error: str = ""
    """What it answers to everything, if anything."""
    counts: float = 1.0
    """By how much it counts more than we do."""
    _answered: int = 0

    @property
    def accepted(self) -> list[Request]:
        return [request for request in self.requests if not request.refused]

    @property
    def refused(self) -> list[str]:
        return [request.refused for request in self.requests if request.refused]

    def take(self, kind: str, body: Item) -> Request:
        messages = body["input" if kind == "responses" else "messages"]
        listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        system = body.get("instructions") or body.get("system")
        shape = (body.get("text") or {}).get("format", {"type": "text"})
        schemas = [*(body.get("tools") or ()), *([shape] if shape["type"] == "json_schema" else [])]
        tokens = _METER.estimate(listed, schemas, system=system, dialect=kind).total
        refused = ""
        if body.get("previous_response_id") is None and body.get("conversation") is None:
            refused = "; ".join(str(v) for v in violations(listed, kind, in_flight=False))
        if tokens > self.window:
            refused = "too long"
        request = Request(kind, body, tokens, refused)
        self.requests.append(request)
        return request

    def reply(self) -> Reply:
        self._answered += 1
        return self.script(self._answered)


_METER = Meter("gpt-4o")


@contextmanager
def serving(script: Callable[[int], Reply], window: int = WINDOW, **settings: Any) -> Iterator[Provider]:
    """A provider on a free port. `script` gives the n-th answer, from 1."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kind = "anthropic" if self.path.endswith("/messages") else self.path.rsplit("/", 1)[-1]
            kind = "chat" if kind == "completions" else kind
            request = found.take(kind, body)
            streamed = bool(body.get("stream"))
            if request.refused or found.error:
                late = streamed and kind == "responses" and found.late_refusals
                self._send(*(_late_refusal(found.error) if late else _refusal(request, found)))
                return
            reply, number = found.reply(), len(found.requests)
            writer = (_STREAMS if streamed else _WHOLE)[kind]
            answer = writer(reply, number, round(request.tokens * found.counts))
            self._send(200, answer, "text/event-stream" if streamed else "application/json")

        def _send(self, status: int, text: str, content_type: str = "application/json") -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Provider(f"http://127.0.0.1:{server.server_address[1]}", window, script, **settings)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _refusal(request: Request, provider: Provider) -> tuple[int, str, str]:
    window = provider.window
    if provider.error:
        error: Item = {"type": "authentication_error", "message": provider.error, "code": "invalid_api_key"}
    elif request.refused != "too long":
        error = {"type": "invalid_request_error", "message": request.refused, "code": None}
    elif request.kind == "anthropic":
        message = f"prompt is too long: {request.tokens} tokens > {window} maximum"
        error = {"type": "invalid_request_error", "message": message}
    else:
        message = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in "
            f"{request.tokens} tokens. Please reduce the length of the messages."
        )
        error = {
            "type": "invalid_request_error",
            "message": message,
            "code": "context_length_exceeded",
            "param": "messages",
        }
    body = {"type": "error", "error": error} if request.kind == "anthropic" else {"error": error}
    return 401 if provider.error else 400, json.dumps(body), "application/json"


def _late_refusal(other: str) -> tuple[int, str, str]:
    message = (
        other
        or "Your input exceeds the context window of this model. Please adjust your input and try again."
    )
    failed = {
        **_response([], 0, 0),
        "status": "failed",
        "error": {"code": "server_error" if other else "context_length_exceeded", "message": message},
    }
    events = [
        {"type": "response.created", "response": {**_response([], 0, 0), "status": "in_progress"}},
        {"type": "response.failed", "response": failed},
    ]
    return 200, _sse(events), "text/event-stream"


# --- chat completions


def _chat(reply: Reply, number: int, tokens: int) -> str:
    message: Item = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
    return json.dumps(
        {**_chat_head(number), "object": "chat.completion", "choices": [choice], "usage": _chat_usage(tokens)}
    )


def _chat_stream(reply: Reply, number: int, tokens: int) -> str:
    head = {**_chat_head(number), "object": "chat.completion.chunk"}
    deltas: list[Item] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _words(reply.text)]
    for place, (call_id, name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": place, "id": call_id, "type": "function", "function": function}]}
        )
        deltas.append({"tool_calls": [{"index": place, "function": {"arguments": json.dumps(arguments)}}]})
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if reply.calls else "stop"
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**head, "choices": [], "usage": _chat_usage(tokens)})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _chat_head(number: int) -> Item:
    return {"id": f"chatcmpl-{number}", "created": 0, "model": "gpt-4o"}


def _chat_usage(tokens: int) -> Item:
    return {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}


def _words(text: str) -> list[str]:
    return [text[:3], text[3:]] if len(text) > 3 else [text] if text else []


# --- Responses


def _output(reply: Reply, number: int) -> list[Item]:
    found: list[Item] = []
    if reply.text:
        block = {"type": "output_text", "text": reply.text, "annotations": []}
        found.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [block],
            }
        )
    for call_id, name, arguments in reply.calls:
        call = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "status": "completed",
        }
        found.append({**call, "arguments": json.dumps(arguments)})
    return found


def _response(output: list[Item], number: int, tokens: int) -> Item:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": "gpt-4o",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": tokens,
            "output_tokens": 5,
            "total_tokens": tokens + 5,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _responses(reply: Reply, number: int, tokens: int) -> str:
    return json.dumps(_response(_output(reply, number), number, tokens))


def _responses_stream(reply: Reply, number: int, tokens: int) -> str:
    output = _output(reply, number)
    started = {**_response([], number, tokens), "status": "in_progress", "usage": None}
    events: list[Item] = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
    ]
    for place, item in enumerate(output):
        at = {"output_index": place, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": place, "item": _empty(item)})
        if item["type"] == "message":
            (block,) = item["content"]
            inside = {**at, "content_index": 0}
            events.append({"type": "response.content_part.added", **inside, "part": {**block, "text": ""}})
            events += [
                {"type": "response.output_text.delta", **inside, "delta": word, "logprobs": []}
                for word in _words(block["text"])
            ]
            events.append(
                {"type": "response.output_text.done", **inside, "text": block["text"], "logprobs": []}
            )
            events.append({"type": "response.content_part.done", **inside, "part": block})
        else:
            events.append(
                {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
            )
            events.append(
                {
                    "type": "response.function_call_arguments.done",
                    **at,
                    "name": item["name"],
                    "arguments": item["arguments"],
                }
            )
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": _response(output, number, tokens)})
    return _sse(events)


def _empty(item: Item) -> Item:
    return {
        **item,
        "status": "in_progress",
        **({"content": []} if item["type"] == "message" else {"arguments": ""}),
    }


def _sse(events: list[Item]) -> str:
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': n})}\n\n"
        for n, event in enumerate(events)
    )


# --- Anthropic


def _blocks(reply: Reply) -> list[Item]:
    found: list[Item] = [{"type": "text", "text": reply.text}] if reply.text else []
    return found + [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in reply.calls]


def _anthropic_message(reply: Reply, number: int, tokens: int) -> Item:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": _blocks(reply),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 5},
    }


def _anthropic(reply: Reply, number: int, tokens: int) -> str:
    return json.dumps(_anthropic_message(reply, number, tokens))


def _anthropic_stream(reply: Reply, number: int, tokens: int) -> str:
    message = _anthropic_message(reply, number, tokens)
    events: list[Item] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for place, block in enumerate(message["content"]):
        if block["type"] == "text":
            start: Item
            start, deltas = (
                {"type": "text", "text": ""},
                [{"type": "text_delta", "text": w} for w in _words(block["text"])],
            )
        else:
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": place, "content_block": start})
        events += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": place})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


_WHOLE = {"chat": _chat, "responses": _responses, "anthropic": _anthropic}
_STREAMS = {"chat": _chat_stream, "responses": _responses_stream, "anthropic": _anthropic_stream}


# --- sessions


def neutral(messages: Sequence[Any], kind: str) -> list[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]]:
    """Who said what, called what and got what; neighbouring parts of one reply as one."""
    found: list[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]] = []
    for message in map(get(kind).read, messages):
        if message.role in ("system", "developer"):
            continue
        entry = _entry(message)
        if found and entry[0] == found[-1][0] == "assistant" and not found[-1][2]:
            last = found.pop()
            entry = ("assistant", last[1] + entry[1], last[2] + entry[2], ())
        elif found and entry[0] == "assistant" == found[-1][0] and not entry[1]:
            last = found.pop()
            entry = ("assistant", last[1], last[2] + entry[2], ())
        if entry[0] == "tool" and found and found[-1][0] == "tool":
            last = found.pop()
            entry = ("tool", last[1] + entry[1], (), last[3] + entry[3])
        found.append(entry)
    return found


def _entry(message: Message) -> tuple[str, str, tuple[Any, ...], tuple[Any, ...]]:
    calls = tuple((c.id, c.name, json.dumps(c.parsed_arguments(), sort_keys=True)) for c in message.calls)
    results = tuple((r.call_id, r.text) for r in message.results)
    return ("tool" if results else message.role, message.text, calls, results)


def agent_manager(window: int = WINDOW, **settings: Any) -> tuple[CompactManager, CapturingExporter]:
    """A manager with an archive in memory, and its events. Its passes go far down, so that short runs need summaries too.

    Excerpts fill what room is left, and dialects differ by a few tokens in that: without them all hosts decide alike.
    """
    seen = CapturingExporter()
    settings.setdefault("archive", {"adapter": "memory"})
    settings.setdefault("offload", {"excerpt_share": 0.0})
    settings.setdefault("policy", {"target_pct": 0.1, "keep_tool_io_pairs": 2})
    settings.setdefault("summary", {"max_tokens": 400})
    settings.setdefault("windows", {"claude": window})  # other models bring their own window
    config = CompactConfig(model="gpt-4o", max_context_tokens=window, **settings)
    return CompactManager(config, exporters=[seen], clock=Clock()), seen


def report(n: int) -> str:
    """What a tool of the tests gives back: about 760 tokens, each different."""
    lines = [
        f"row {n}.{k}: value_{n * 31 + k} measured by probe_{k * 7 + n} at station_{n % 13}"
        for k in range(40)
    ]
    return f"report {n}\n" + "\n".join(lines)


def calls_then_text(calls: int, *, parallel: int = 1) -> Callable[[int], Reply]:
    """A model that asks for a report in each of its first replies, and then says that it is done."""

    def script(n: int) -> Reply:
        if n > calls:
            return Reply(f"Done after {calls} reports.")
        asked = tuple((f"call_{n}_{k}", "get_report", {"number": n * 10 + k}) for k in range(parallel))
        return Reply(f"Reading report {n}." if n % 3 == 0 else "", asked)

    return script
