"""A session keeps its own running counts, so a list of any size is counted once."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.tokens import Meter
from compact.tokens.memo import Running

Item = dict[str, Any]


class Words:
    """A tokenizer of a host: a word is a token. Notes what it was asked to count."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def __call__(self, text: str) -> int:
        self.counted.append(text)
        return len(text.split())


def talk(count: int) -> list[Item]:
    return [{"role": "user", "content": f"message {n} says nothing new"} for n in range(count)]


def test_a_session_larger_than_the_shared_memo_is_counted_once() -> None:
    words = Words()
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=1_000_000,
        archive={"adapter": "memory"},
        meter={"memo_bytes": 10_000},
        guard={"min_context_tokens": 1},
    )
    with CompactManager(config, count_tokens=words) as manager:
        session = [
            item
            for n in range(300)
            for item in (
                {"role": "user", "content": f"question {n} " * 9},
                {"role": "assistant", "content": f"answer {n} " * 9},
            )
        ]
        manager.preflight("s", session)
        words.counted.clear()
        session.append({"role": "user", "content": "only this is new"})
        manager.preflight("s", session)
    assert [text for text in words.counted if text not in ("user", "assistant")] == ["only this is new"]


def running(meter: Meter, items: list[Item], counts: Running) -> int:
    return meter.estimate(items, dialect="chat", running=counts).total


def test_running_counts_are_those_of_a_recount() -> None:
    meter, counts, items = Meter("gpt-4o"), Running(), talk(3)
    for change in range(6):
        items.append({"role": "assistant", "content": f"answer {change}"})
        assert running(meter, items, counts) == Meter("gpt-4o").estimate(items).total
    items[1]["content"] = "edited in place by the host"
    assert running(meter, items, counts) == Meter("gpt-4o").estimate(items).total
    del items[2:]
    assert running(meter, items, counts) == Meter("gpt-4o").estimate(items).total


def test_another_model_counts_anew() -> None:
    counts, items = Running(), talk(5)
    assert running(Meter("gpt-4o"), items, counts) == Meter("gpt-4o").estimate(items).total
    assert running(Meter("gpt-4"), items, counts) == Meter("gpt-4").estimate(items).total


@pytest.mark.parametrize("place", [0, 2, 4])
def test_what_cannot_be_compared_is_counted_in_every_call(place: int) -> None:
    class Text(str):
        __slots__ = ()

    words = Words()
    meter, counts, items = Meter("gpt-4o", count=words, memo_bytes=0), Running(), talk(5)
    items[place] = {"role": "user", "content": [{"type": "text", "text": Text("mine")}]}
    first = running(meter, items, counts)
    words.counted.clear()
    assert running(meter, items, counts) == first
    assert "mine" in words.counted
    assert any("message" in text for text in words.counted) == (place < 4)
    assert "message 0 says nothing new" not in words.counted


def test_counts_are_freed_with_their_session() -> None:
    counts, meter = Running(), Meter("gpt-4o")
    running(meter, talk(50), counts)
    gone = weakref.ref(counts)
    del counts
    gc.collect()
    assert gone() is None
