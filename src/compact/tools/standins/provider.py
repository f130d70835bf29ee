"""A provider on this machine: it refuses what the real one refuses, remembers every request, and answers by a script."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from compact.messages.cache_marks import as_unmarked
from compact.messages.dialects.wire import begins_with
from compact.tokens import Meter
from compact.tools.standins.anthropic_rules import find_problems as find_counting_problems
from compact.tools.standins.anthropic_wire import ANTHROPIC
from compact.tools.standins.caching import Looked, PromptCache
from compact.tools.standins.chat_wire import CHAT
from compact.tools.standins.converse_wire import CONVERSE
from compact.tools.standins.gemini_wire import GEMINI
from compact.tools.standins.native_anthropic import Summary, header_problems, is_compacting
from compact.tools.standins.native_openai import COMPACT
from compact.tools.standins.problems import Item, Problem, Rules
from compact.tools.standins.responses_wire import RESPONSES, is_triggered
from compact.tools.standins.script import (
    Answer,
    Endpoint,
    Fault,
    Received,
    Refusal,
    Reply,
    Script,
    name_calls,
)

ENDPOINTS: tuple[Endpoint, ...] = (ANTHROPIC, CHAT, RESPONSES, GEMINI, CONVERSE)
_BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


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
    clock: Callable[[], float] = time.monotonic
    """The seconds by which the prompt cache forgets."""
    max_bytes: int | None = None
    """The largest body; None: the provider's own limit."""
    compresses: bool = False
    """Whether answers go out in gzip to clients that take it."""
    keeps_bodies: bool = True
    """Whether `requests` holds bodies and messages. Without them, sessions of any length take little memory."""
    on_answer: Callable[[Received, Answer | None], None] | None = None
    """Told of every request and its answer; None: it was refused, or only asked for its size."""
    requests: list[Received] = field(default_factory=list)
    """Every request so far, in the order of arrival."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._answered = 0
        self._turns: dict[str, int] = {}
        self._cache = PromptCache(self.clock)
        self.ended = threading.Event()
        """Set when the stand-in ends, so that what hangs ends too."""

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
        if counting and isinstance(body, dict):
            body = endpoint.counted_body(body)
        find = find_counting if counting and endpoint is ANTHROPIC else endpoint.find_problems
        problems = find(body, self.rules)
        found = body if isinstance(body, dict) else {}
        if endpoint is ANTHROPIC:
            problems = [*header_problems(found, headers), *problems]
        named = {"model": model or str(found.get("model")), **found}
        tokens = 0
        if not problems:
            tokens = self._count(endpoint, named)
            window = self._window_of(str(named["model"]))
            output = _output_of(found) if self.counts_output else 0
            if tokens > window and not counting:
                problems = [(self.too_long or endpoint.too_long)(tokens, window)]
            elif tokens + output > window and not counting:
                problems = [endpoint.no_room(tokens, output, window)]
        messages = endpoint.list_messages(found)
        looked = Looked() if problems or counting else self._look(endpoint, named)
        with self._lock:
            request = Received(
                number=len(self.requests) + 1,
                endpoint=endpoint.name,
                body=found,
                headers=headers,
                messages=messages,
                tokens=tokens,
                problems=tuple(problems),
                counting=counting,
                model=model or str(found.get("model")),
                compacting=endpoint is COMPACT or is_compacting(found) or is_triggered(found),
                turn=0 if problems else self._turn_of(messages),
                has_tools=bool(endpoint.tools(found)),
                looked=looked,
            )
            kept = request if self.keeps_bodies else replace(request, body={}, messages=(), looked=Looked())
            self.requests.append(kept)
        if self.on_answer is not None and (problems or counting):
            self.on_answer(request, None)
        return request

    def answer(self, request: Received) -> Reply | Refusal | Fault:
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
        if isinstance(said, str):
            said = Reply(said)
        if isinstance(said, Reply):
            calls = name_calls(said, _BY_NAME[request.endpoint].call_prefix, request.number)
            with self._lock:
                self._cache.keep(request.looked)
                self._turns |= {call.id: request.turn for call in calls}
        if self.on_answer is not None:
            self.on_answer(request, said)
        return said

    def _count(self, endpoint: Endpoint, body: Item) -> int:
        return (self.count or count_request)(endpoint.name, body)

    def _look(self, endpoint: Endpoint, body: Item) -> Looked:
        places, rules = endpoint.places(body), endpoint.cache(body)
        with self._lock:
            return self._cache.look(
                str(body["model"]), places, rules, lambda begun: self._count(endpoint, begun)
            )

    def _turn_of(self, messages: Sequence[Any]) -> int:
        """How many replies a conversation has had: by its newest call that is ours, and the replies behind that."""
        replies = 0
        for message in reversed(messages):
            if not _is_reply(message):
                continue
            turns = [self._turns[each] for each in _ids_in(message) if each in self._turns]
            if turns:
                return max(turns) + 1 + replies
            replies += 1
        return replies

    def _window_of(self, model: str) -> int:
        return self.window if isinstance(self.window, int) else self.window.get(model, 200_000)


def _output_of(body: Item) -> int:
    keys = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens")
    inner = (body.get("generationConfig"), body.get("inferenceConfig"))
    places = [body, *(each for each in inner if isinstance(each, dict))]
    return next((each[key] for each in places for key in keys if isinstance(each.get(key), int)), 0)


def _is_reply(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return message.get("role") in ("assistant", "model") or message.get("type") in (
        "function_call",
        "custom_tool_call",
    )


def _ids_in(value: Any) -> Iterator[str]:
    """The ids of the calls in a reply."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("id", "call_id", "toolUseId") and isinstance(each, str):
                yield each
            elif key not in ("input", "args", "arguments"):
                yield from _ids_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _ids_in(each)


def find_counting(body: Any, rules: Rules) -> list[Problem]:
    """What `count_tokens` refuses: the same as a message, but it needs no `max_tokens`."""
    return find_counting_problems(body, rules, counting=True)


_METERS: dict[str, Meter] = {}


def count_request(endpoint: str, body: Item) -> int:
    """The size of a request by our own meter, in the tokens of its model."""
    model = str(body["model"])
    meter = _METERS.setdefault(model, Meter(model))
    known = _BY_NAME[endpoint]
    listed = known.list_messages(body)
    return meter.estimate(listed, known.tools(body), system=known.prompt(body), dialect=endpoint).total


def prefix_breaks(requests: Sequence[Received]) -> int:
    """How many requests do not begin with the whole request before them, so that the provider's cache is lost.

    Cache marks do not count: hosts move them, and turn a text into a block for them. Pass the requests of one
    conversation.
    """
    lists = [[as_unmarked(message) for message in request.messages] for request in requests]
    return sum(not begins_with(after, before) for before, after in pairwise(lists))
