"""Ways in which real sessions break: messages lost, doubled, out of order, cut; ids swapped; calls corrupted."""

from __future__ import annotations

import copy
import random
from typing import Any

Item = dict[str, Any]


def mutated(messages: list[Item], seed: int) -> list[Item]:
    """A copy of a chat session with one to four things wrong; the same for the same seed."""
    chance = random.Random(seed)
    items = copy.deepcopy(messages)
    for _ in range(chance.randint(1, 4)):
        if items:
            chance.choice(MUTATIONS)(items, chance)
    return items


def _drop(items: list[Item], chance: random.Random) -> None:
    del items[chance.randrange(len(items))]


def _duplicate(items: list[Item], chance: random.Random) -> None:
    items.insert(chance.randrange(len(items) + 1), copy.deepcopy(chance.choice(items)))


def _reorder(items: list[Item], chance: random.Random) -> None:
    here, there = chance.randrange(len(items)), chance.randrange(len(items))
    items[here], items[there] = items[there], items[here]


def _truncate(items: list[Item], chance: random.Random) -> None:
    place = chance.randrange(len(items))
    if chance.random() < 0.5:
        del items[place:]
    else:
        del items[:place]


def _swap_ids(items: list[Item], chance: random.Random) -> None:
    results = [item for item in items if item["role"] == "tool"]
    if len(results) > 1:
        one, two = chance.sample(results, 2)
        one["tool_call_id"], two["tool_call_id"] = two["tool_call_id"], one["tool_call_id"]


def _corrupt_call(items: list[Item], chance: random.Random) -> None:
    asking = [item for item in items if item.get("tool_calls")]
    if not asking:
        return
    call = chance.choice(chance.choice(asking)["tool_calls"])
    function = call["function"]
    match chance.randrange(5):
        case 0:
            function["arguments"] = (function["arguments"] or "{}")[:-1]
        case 1:
            function["name"] = chance.choice(["", " read me", "x" * 80, "ok "])
        case 2:
            call["id"] = chance.choice(["", "x" * 100, None, "id with spaces"])
        case 3:
            function["arguments"] = '{"text": "\ud800\x00"}'
        case 4:
            function["arguments"] = None


def _corrupt_text(items: list[Item], chance: random.Random) -> None:
    item = chance.choice(items)
    item["content"] = chance.choice([None, "", "  ", "a\x00b", "half \ud83d", [], ["bare"]])


def _abort(items: list[Item], chance: random.Random) -> None:
    spoken = [item for item in items if item["role"] == "assistant"]
    if spoken:
        chance.choice(spoken)["stop_reason"] = chance.choice(["aborted", "error"])


def _repeat_id(items: list[Item], chance: random.Random) -> None:
    asking = [item for item in items if item.get("tool_calls")]
    if len(asking) > 1:
        one, two = chance.sample(asking, 2)
        two["tool_calls"][0]["id"] = one["tool_calls"][0]["id"]


MUTATIONS = [
    _drop,
    _duplicate,
    _reorder,
    _truncate,
    _swap_ids,
    _corrupt_call,
    _corrupt_text,
    _abort,
    _repeat_id,
]
