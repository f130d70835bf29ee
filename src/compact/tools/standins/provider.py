"""A provider on this machine: it refuses what the real one refuses, remembers every request, and answers by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from compact.messages.cache_marks import is_point
from compact.messages.dialects.wire import begins_with
from compact.tokens import Meter
from compact.tools.standins.anthropic_rules import find_problems as find_counting_problems
from compact.tools.standins.anthropic_wire import ANTHROPIC
from compact.tools.standins.chat_wire import CHAT
from compact.tools.standins.converse_wire import CONVERSE
from compact.tools.standins.gemini_wire import GEMINI
from compact.tools.standins.native_anthropic import Summary, header_problems, is_compacting
from compact.tools.standins.native_openai import COMPACT
from compact.tools.standins.problems import Item, Problem, Rules
from compact.tools.standins.responses_wire import RESPONSES, is_triggered
from compact.tools.standins.script import Answer, Endpoint, Received, Refusal, Reply, Route, Script, Told

ENDPOINTS: tuple[Endpoint, ...] = (ANTHROPIC, CHAT, RESPONSES, GEMINI, CONVERSE)
_BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
_KEYS = frozenset({"x-api-key", "authorization", "x-goog-api-key"})
_COUNT_TOKENS = f"{ANTHROPIC.path}/count_tokens"
_NOT_FOUND = Problem("Not Found", status=404, kind="not_found_error")


def summary_of(request: Received) -> str:
    """The summary that a stand-in writes unless it is told another."""
    return f"Summary of the conversation: {len(request.messages)} messages."


@dataclass
class Provider:
    """A running stand-in: its address, its settings, and what it was asked. Settings may change between requests."""

    url: str
    """For the clients of Anthropic, Google and AWS as it is; OpenAI's needs `/v1` behind it (see `openai_url`)."""
    script: Script
    window: int | Mapping[str, int] = 200_000
    """The largest request in tokens, for all models or by model. Models that are not listed have 200,000."""
    rules: Rules = field(default_factory=lambda: Rules(signing_key=b"stand-in"))
    late_refusals: bool = False
    """Whether a streamed request that is too long is refused inside its stream."""
    counts_output: bool = False
    """Whether the output that a request asks for must fit the window too. Older models refuse what does not."""
    too_long: Callable[[int, int], Problem] | None = None
    """Other words for a request that is too long: a function of its size and the window."""
    count: Callable[[str, Item], int] | None = None
    """How a request is counted: a function of the endpoint's name and the body. By default our own meter counts."""
    summarize: Callable[[Received], Answer] = field(default=summary_of)
    """What the provider's own compaction says of a request that asks for it: a text, a `Summary` or a `Refusal`."""
    requests: list[Received] = field(default_factory=list)
    """Every request so far, in the order of arrival."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._answered = 0

    @property
    def openai_url(self) -> str:
        """The `base_url` of OpenAI's client."""
        return f"{self.url}/v1"

    @property
    def accepted(self) -> list[Received]:
        """The requests that were not refused, without those that only asked for their size or for a summary."""
        return [
            request
            for request in self.requests
            if request.accepted and not request.counting and not request.compacting
        ]

    @property
    def refused(self) -> list[str]:
        """Why requests were refused, one text for each."""
        return [request.problems[0].message for request in self.requests if request.problems]

    def take(
        self,
        endpoint: Endpoint,
        body: Any,
        headers: Mapping[str, str],
        counting: bool = False,
        model: str = "",
    ) -> Received:
        """Judge a request and remember it. `model` is the one that the path names."""
        find = find_counting if counting and endpoint is ANTHROPIC else endpoint.find_problems
        problems = find(body, self.rules)
        found = body if isinstance(body, dict) else {}
        if endpoint is ANTHROPIC:
            problems = [*header_problems(found, headers), *problems]
        tokens = 0
        if not problems:
            model = model or str(found["model"])
            tokens = (self.count or count_request)(endpoint.name, {"model": model, **found})
            window = self._window_of(model)
            output = _output_of(found) if self.counts_output else 0
            if tokens > window and not counting:
                problems = [(self.too_long or endpoint.too_long)(tokens, window)]
            elif tokens + output > window and not counting:
                problems = [endpoint.no_room(tokens, output, window)]
        messages = endpoint.list_messages(found)
        with self._lock:
            request = Received(
                len(self.requests) + 1,
                endpoint.name,
                found,
                headers,
                messages,
                tokens,
                tuple(problems),
                counting,
                model or str(found.get("model")),
                compacting=endpoint is COMPACT or is_compacting(found) or is_triggered(found),
            )
            self.requests.append(request)
        return request

    def answer(self, request: Received) -> Reply | Refusal:
        """What the script says to a request that is in order."""
        if request.compacting:
            asked = self.summarize(request)
            return Summary(asked, output_tokens=len(asked) // 4 + 1) if isinstance(asked, str) else asked
        with self._lock:
            self._answered += 1
            number = self._answered
        said: Answer
        if callable(self.script):
            said = self.script(request)
        else:
            said = self.script[min(number, len(self.script)) - 1]
        return Reply(said) if isinstance(said, str) else said

    def _window_of(self, model: str) -> int:
        return self.window if isinstance(self.window, int) else self.window.get(model, 200_000)


def _output_of(body: Item) -> int:
    keys = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens")
    inner = (body.get("generationConfig"), body.get("inferenceConfig"))
    places = [body, *(each for each in inner if isinstance(each, dict))]
    return next((each[key] for each in places for key in keys if isinstance(each.get(key), int)), 0)


def find_counting(body: Any, rules: Rules) -> list[Problem]:
    """What `count_tokens` refuses: the same as a message, but it needs no `max_tokens`."""
    return find_counting_problems(body, rules, counting=True)


_METERS: dict[str, Meter] = {}


def count_request(endpoint: str, body: Item) -> int:
    """The size of a request by our own meter, in the tokens of its model."""
    model = str(body["model"])
    meter = _METERS.setdefault(model, Meter(model))
    known = _BY_NAME[endpoint]
    messages = body.get("input") if endpoint == "responses" else known.list_messages(body)
    listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages or []
    return meter.estimate(listed, known.tools(body), system=known.prompt(body), dialect=endpoint).total


def prefix_breaks(requests: Sequence[Received]) -> int:
    """How many requests do not begin with the whole request before them, so that the provider's cache is lost.

    Cache marks do not count: hosts move them, and turn a text into a block for them. Pass the requests of one
    conversation.
    """
    lists = [[_plain(message) for message in request.messages] for request in requests]
    return sum(not begins_with(after, before) for before, after in pairwise(lists))


def _plain(value: Any) -> Any:
    """A message without cache marks, and with its text as one block."""
    if isinstance(value, dict):
        found = {key: _plain(entry) for key, entry in value.items() if key != "cache_control"}
        content = found.get("content")
        return (
            {**found, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else found
        )
    return [_plain(entry) for entry in value if not is_point(entry)] if isinstance(value, list) else value


@contextmanager
def serving(script: Script, **settings: Any) -> Iterator[Provider]:
    """Run a stand-in on a free port of 127.0.0.1 until the block ends. `settings` are the fields of `Provider`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}", script, **settings)
    server.provider = provider  # type: ignore[attr-defined]  # how the standard library hands state to handlers
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _find_endpoint(path: str) -> tuple[Endpoint | None, Route]:
    """The endpoint of a path, and what the path says beside that."""
    if path.endswith(_COUNT_TOKENS):
        return ANTHROPIC, Route("", counting=True)
    if path.endswith(COMPACT.path):
        return COMPACT, Route("")
    for endpoint in ENDPOINTS:
        if endpoint.route is None:
            if path.endswith(endpoint.path):
                return endpoint, Route("")
        elif (found := endpoint.route(path)) is not None:
            return endpoint, found
    return None, Route("")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. Connections are not kept, so that none is open when the server stops."""

    def do_POST(self) -> None:
        """Judge the request, then answer it."""
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        path = self.path.split("?")[0].rstrip("/")
        endpoint, route = _find_endpoint(path)
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size)
        headers = {key.lower(): value for key, value in self.headers.items()}
        if endpoint is None:
            self._send_json(404, (ANTHROPIC if "x-api-key" in headers else CHAT).error(_NOT_FOUND))
        elif not headers.keys() & _KEYS:
            self._send_error(endpoint, endpoint.unauthorized)
        elif size > endpoint.max_bytes:
            self._send_error(endpoint, endpoint.too_large)
        else:
            request = provider.take(endpoint, _parse(raw), headers, route.counting, route.model)
            self._respond(provider, endpoint, request, route.streamed)

    def _respond(self, provider: Provider, endpoint: Endpoint, request: Received, streamed: bool) -> None:
        key = provider.rules.signing_key or b""
        told = Told(Reply(), request.number, request.model, request.tokens, key, request.body)
        streamed = streamed or request.body.get("stream") is True
        if request.problems:
            too_long = request.tokens > 0
            self._refuse(
                endpoint, told, request.problems[0], streamed and too_long and provider.late_refusals
            )
            return
        if request.counting:
            self._send_json(200, endpoint.counted(request.tokens))
            return
        said = provider.answer(request)
        if isinstance(said, Refusal):
            self._refuse(endpoint, told, said.problem, streamed and said.late)
        elif streamed:
            self._send_events(endpoint, endpoint.stream(replace(told, reply=said)))
        else:
            self._send_json(200, endpoint.answer(replace(told, reply=said)))

    def _refuse(self, endpoint: Endpoint, told: Told, problem: Problem, late: bool) -> None:
        if late:
            self._send_events(endpoint, endpoint.late_error(told, problem))
        else:
            self._send_error(endpoint, problem)

    def _send_error(self, endpoint: Endpoint, problem: Problem) -> None:
        self._send_json(problem.status, endpoint.error(problem), endpoint.error_headers(problem))

    def _send_json(self, status: int, body: Item, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, endpoint: Endpoint, events: Iterator[str | bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", endpoint.stream_type)
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode() if isinstance(event, str) else event)
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the requests are in `Provider.requests`."""


def _parse(raw: bytes) -> Any:
    """The body, or None if it is not JSON in UTF-8: every endpoint refuses that."""
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
