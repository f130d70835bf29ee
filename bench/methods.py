"""What retention compares: plain methods, and two controls that a measure must not reward.

A method gets a list of chat messages and a budget in tokens, and gives the list that it leaves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from compact import CompactConfig, CompactManager
from compact.tokens.counter import counter_for
from compact.tools.replay.retention import IDENTIFIER

Item = dict[str, Any]
Method = Callable[[list[Item], int], list[Item]]

_PLACEHOLDER = "[output omitted]"


def last_messages(messages: list[Item], budget: int) -> list[Item]:
    """System messages, and the newest others that fit."""
    return [messages[n] for n in newest(messages, budget)]


def masking(messages: list[Item], budget: int) -> list[Item]:
    """Old outputs become a placeholder, the newest stay whole while they fit; then the oldest messages go."""
    masked = [_with_content(item, _PLACEHOLDER) if item["role"] == "tool" else item for item in messages]
    room = budget - tokens_in(masked)
    if room < 0:
        return last_messages(masked, budget)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] != "tool":
            continue
        cost = cost_of(messages[index]) - cost_of(masked[index])
        if cost <= room:
            masked[index] = messages[index]
            room -= cost
    return masked


def head_and_tail(messages: list[Item], budget: int) -> list[Item]:
    """Every tool output is cut to the same length, head and tail; if that is not enough the oldest messages go."""
    low, high = 0, 1 << 16
    while high - low > 32:
        middle = (low + high) // 2
        if tokens_in(_cut_outputs(messages, middle)) <= budget:
            low = middle
        else:
            high = middle
    return last_messages(_cut_outputs(messages, low), budget)


def identifier_list(messages: list[Item], budget: int) -> list[Item]:
    """Control: the identifiers alone, newest first, as many as fit."""
    names = dict.fromkeys(name for item in reversed(messages) for name in IDENTIFIER.findall(said(item)))
    return _one_message(list(names), budget, "\n".join)


def bag_of_words(messages: list[Item], budget: int) -> list[Item]:
    """Control: every word once, newest first, as many as fit, in alphabetical order."""
    words = dict.fromkeys(
        word for item in reversed(messages) for word in re.findall(r"\S+", said(item)) if len(word) < 80
    )
    return _one_message(list(words), budget, lambda fitting: " ".join(sorted(fitting)))


METHODS: dict[str, Method] = {
    "last N": last_messages,
    "masking": masking,
    "head+tail": head_and_tail,
    "id list": identifier_list,
    "word bag": bag_of_words,
}


def newest(messages: Sequence[Item], budget: int) -> list[int]:
    """The places of the system messages, and of the newest others that fit beside them."""
    kept = {n for n, item in enumerate(messages) if item["role"] == "system"}
    room = budget - tokens_in([messages[n] for n in sorted(kept)])
    for n in range(len(messages) - 1, -1, -1):
        if n in kept:
            continue
        room -= cost_of(messages[n])
        if room < 0:
            break
        kept.add(n)
    return sorted(kept)


def _cut_outputs(messages: list[Item], chars: int) -> list[Item]:
    half = chars // 2
    return [
        _with_content(
            item, f"{content_of(item)[:half]}\n...\n{content_of(item)[len(content_of(item)) - half :]}"
        )
        if item["role"] == "tool" and len(content_of(item)) > chars + 5
        else item
        for item in messages
    ]


def _one_message(pieces: list[str], budget: int, join: Callable[[list[str]], str]) -> list[Item]:
    """A message with as many of the first pieces as fit, found by bisection."""
    count = counter_for("o200k_base").count
    room = budget - tokens_in([{"role": "user", "content": ""}])
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if count(join(pieces[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    return [{"role": "user", "content": join(pieces[:low])}]


# --- sizes and texts


@cache
def _counter() -> CompactManager:
    return CompactManager(
        CompactConfig(model="gpt-4o", max_context_tokens=100_000_000, archive={"adapter": "memory"})
    )


def tokens_in(messages: Sequence[Item]) -> int:
    """Exact tokens of a request with these messages."""
    return _counter().estimate(list(messages)).total


def cost_of(item: Item) -> int:
    """Exact tokens that a message adds to a request."""
    return tokens_in([item]) - _tokens_in_none()


@cache
def _tokens_in_none() -> int:
    return tokens_in([])


def content_of(item: Item) -> str:
    """The words of a message."""
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _with_content(item: Item, text: str) -> Item:
    return {**item, "content": text}


def said(item: Item) -> str:
    """All text of a message: its words, and the arguments of its calls, each with its name."""
    calls = [call["function"] for call in item.get("tool_calls") or []]
    return "\n".join([content_of(item), *(line for call in calls for line in _arguments(call))])


def _arguments(call: Item) -> Iterator[str]:
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        arguments = call["arguments"]
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    for key, value in arguments.items():
        yield f"{call['name']} {key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def text_in(messages: Sequence[Item]) -> str:
    """The text of these messages."""
    return "\n".join(map(said, messages))
