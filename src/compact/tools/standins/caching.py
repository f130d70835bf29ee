"""The prompt cache of a stand-in: what of a request is read from it, what is written to it, and for how long.

Anthropic and Bedrock cache up to marks: the `tools`, the `system` prompt and the `messages`, in this order, up to and with a marked
block. A mark reads back the longest prefix that was marked before, at most 20 blocks behind it. OpenAI's models from GPT-5.6 on
mark the newest message automatically. OpenAI's older models and Gemini match any beginning that was sent before; here a beginning
ends with a message.

Pages: Claude docs build-with-claude/prompt-caching, Bedrock userguide/prompt-caching, OpenAI docs guides/prompt-caching, Gemini API
docs/caching. Google does not say how long its implicit cache lives; here it is as long as OpenAI's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from compact.messages.cache_marks import is_point, without_any_mark
from compact.tools.standins.problems import Item

Life: TypeAlias = Literal["5m", "30m", "1h", "24h"]
LIFE_S: Mapping[Life, float] = {"5m": 300, "30m": 1_800, "1h": 3_600, "24h": 86_400}


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a part of a request: up to here a request may be cached."""

    value: Any
    """The part that ends here: a tool, a block or a message, and what else decides whether it is the same."""
    begin: Callable[[], Item]
    """The request up to here, to count it."""
    mark: Life | None = None
    """How long what ends here is kept, if the request marks it."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How the cache of one model works."""

    min_tokens: int
    lookback: int | None = None
    """How many places a mark looks back for an earlier one; None: all of them."""
    life: Life | None = None
    """How long every beginning is kept, without marks and free of charge. None: only what is marked is cached."""
    step_tokens: int = 1
    """Tokens are read in multiples of this."""


@dataclass(frozen=True, slots=True)
class Billed:
    """What a provider bills for the input of a request, beside what it reads anew."""

    read: int = 0
    """Tokens that came from the cache."""
    written: Mapping[Life, int] = field(default_factory=dict)
    """Tokens that were written to it, by how long they are kept."""

    @property
    def written_tokens(self) -> int:
        """All tokens that were written."""
        return sum(self.written.values())


@dataclass(frozen=True, slots=True)
class Looked:
    """What a request finds in the cache, and what it leaves there once it is answered."""

    billed: Billed = field(default_factory=Billed)
    kept: Mapping[bytes, Life] = field(default_factory=dict)


class PromptCache:
    """What requests left behind, by the hash of each beginning. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends: dict[bytes, float] = {}

    def look(
        self, model: str, places: Sequence[Place], rules: CacheRules, count: Callable[[Item], int]
    ) -> Looked:
        """Find what of a request is cached. Changes nothing: a request that is not answered leaves nothing behind.

        Args:
            model: The model that is asked. Models share nothing.
            places: Where the request may be cut, in order.
            rules: How the model's cache works.
            count: The tokens of a request.
        """
        marks = [(n, place.mark or rules.life) for n, place in enumerate(places)]
        ends = [(n, life) for n, life in marks if life is not None]
        if not ends:
            return Looked()
        digests = _chain(model, places)
        now = self._clock()
        live = [n for n, each in enumerate(digests) if self._ends.get(each, now) > now]
        hit = max((n for n in live if any(_reaches(end, n, rules) for end, _ in ends)), default=-1)
        read = count(places[hit].begin()) // rules.step_tokens * rules.step_tokens if hit >= 0 else 0
        if read < rules.min_tokens:
            hit, read = -1, 0
        kept: dict[bytes, Life] = {digests[n]: life for n, life in ends}
        if rules.life is not None:
            return Looked(Billed(read), kept)
        written: dict[Life, int] = {}
        reached = read
        for n, life in ends:
            size = count(places[n].begin()) if n > hit else 0
            if n > hit and size < rules.min_tokens:
                del kept[digests[n]]
            elif size > reached:
                written[life] = written.get(life, 0) + size - reached
                reached = size
        return Looked(Billed(read, written), kept)

    def keep(self, looked: Looked) -> None:
        """Keep what an answered request leaves behind. What is used again lives on from now."""
        now = self._clock()
        for digest, life in looked.kept.items():
            self._ends[digest] = now + LIFE_S[life]
        if len(self._ends) > _MOST:
            self._ends = {digest: end for digest, end in self._ends.items() if end > now}


_MOST = 100_000
"""Beginnings that are kept before those that ended are looked for."""


def _reaches(end: int, place: int, rules: CacheRules) -> bool:
    return place <= end and (rules.lookback is None or end - place < rules.lookback)


def _chain(model: str, places: Sequence[Place]) -> list[bytes]:
    """A hash for each place: of the model and of everything up to there, without marks."""
    found, before = [], hashlib.sha256(model.encode()).digest()
    for place in places:
        text = json.dumps(without_any_mark(place.value), sort_keys=True, ensure_ascii=False)
        before = hashlib.sha256(before + text.encode("utf-8", "surrogatepass")).digest()
        found.append(before)
    return found


# --- where requests may be cut


def message_places(
    body: Item, key: str, first: Sequence[str], mark: Callable[[Any], Life | None]
) -> list[Place]:
    """The places of a request that is cached by whole messages: what stands beside them, then each message."""
    beside = {name: body[name] for name in first if body.get(name) is not None}
    listed = body.get(key)
    messages = listed if isinstance(listed, list) else [{"role": "user", "content": listed}]
    places = [Place(beside, lambda: {**body, key: []})] if beside else []
    for n, message in enumerate(messages):
        begin = partial(lambda n: {**body, key: messages[: n + 1]}, n)
        places.append(Place(message, begin, mark(message)))
    return places


def block_places(
    body: Item,
    tools: Sequence[Any],
    with_tools: Callable[[Sequence[Any]], Item],
    settings: Sequence[str],
    mark: Callable[[Any], Life | None],
) -> list[Place]:
    """The places of a request that is cached by blocks: each tool, each block of the system prompt and of the messages.

    Args:
        body: The request.
        tools: Its tools.
        with_tools: The request with these tools in the place of its own.
        settings: The fields that decide, beside the messages, whether these are the same.
        mark: How long a block wants to be kept, or a cache point what stands before it.
    """
    places: list[Place] = []

    def add(block: Any, value: Any, begin: Callable[[], Item]) -> None:
        if is_point(block) and places:
            places[-1] = replace(places[-1], mark=mark(block))
        else:
            places.append(Place(value, begin, mark(block)))

    none: Item = {"system": [], "messages": []}
    for n, tool in enumerate(tools):
        add(tool, tool, partial(lambda n: {**with_tools(tools[: n + 1]), **none}, n))
    system = _blocks_of(body.get("system"))
    for n, block in enumerate(system):
        add(block, block, partial(lambda n: {**body, "messages": [], "system": system[: n + 1]}, n))
    chosen: Any = {name: body[name] for name in settings if body.get(name) is not None}
    messages = body["messages"]
    for n, message in enumerate(messages):
        content = _blocks_of(message["content"])
        for m, block in enumerate(content):
            cut = {**message, "content": content[: m + 1]}
            value = [chosen, message["role"] if m == 0 else None, block]
            add(block, value, partial(lambda n, cut: {**body, "messages": [*messages[:n], cut]}, n, cut))
            chosen = None
    return places


def _blocks_of(content: Any) -> Sequence[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or ()


# --- what is cached for which model


_SMALLEST = (
    (512, ("fable", "mythos", "opus-5")),
    (2_048, ("opus-4-7", "haiku-3", "3-haiku", "3-5-haiku")),
    (4_096, ("opus-4-6", "opus-4-5", "haiku-4-5")),
)


def claude_rules(model: str) -> CacheRules:
    """The cache of a Claude model, at Anthropic or on Bedrock."""
    name = model.replace(".", "-")
    found = next((tokens for tokens, names in _SMALLEST if any(each in name for each in names)), 1_024)
    return CacheRules(found, lookback=20)


def openai_rules(body: Item) -> CacheRules:
    """The cache of a model of OpenAI."""
    if marks_itself(body):
        return CacheRules(1_024)
    return CacheRules(
        1_024, life="24h" if body.get("prompt_cache_retention") == "24h" else "5m", step_tokens=128
    )


def marks_itself(body: Item) -> bool:
    """Whether OpenAI marks the newest message of a request for this model: from GPT-5.6 on."""
    found = re.search(r"gpt-(\d+)(?:[.-](\d{1,2})\b)?", str(body.get("model")))
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)


def openai_mark(message: Any) -> Life | None:
    """The mark of a message of OpenAI: on one of its blocks."""
    content = message.get("content", message.get("output")) if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else []
    marked = any(isinstance(block, Mapping) and block.get("prompt_cache_breakpoint") for block in blocks)
    return "30m" if marked else None


def openai_places(body: Item, key: str, first: Sequence[str]) -> list[Place]:
    """The places of a request to OpenAI. The newest message is marked, unless the request wants to mark by itself alone."""
    marks = marks_itself(body)
    places = message_places(body, key, first, openai_mark if marks else lambda _: None)
    options = body.get("prompt_cache_options") or {}
    if marks and places and options.get("mode") != "explicit":
        places[-1] = replace(places[-1], mark="30m")
    return places


def gemini_rules(body: Item) -> CacheRules:
    """The implicit cache of a Gemini model."""
    name = str(body.get("model"))
    if "2.5" in name:
        return CacheRules(2_048, life="5m")
    return CacheRules(4_096, life="5m") if re.search(r"gemini-\d", name) else CacheRules(1_024, life="5m")
