"""What arrived while a pass was made in the background loses its signed thinking at the swap; what follows keeps its own."""

from __future__ import annotations

import copy
from typing import Any

from support.background import await_ready
from support.engine import Clock, Item, manager
from support.running import GOOD

from bench.thinking import KEY
from compact import CompactConfig, CompactManager
from compact.tools.standins import Rules, anthropic_problems, sign_block

MODEL = "claude-opus-5-5"


def body_of(messages: list[Any]) -> Item:
    return {"model": MODEL, "max_tokens": 9, "messages": messages}


def asked(text: str) -> Item:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def reply(sent: list[Any], text: str) -> Item:
    """A reply with a block that is bound to what was sent."""
    thought = f"About {text}. " * 12
    block = {"type": "thinking", "thinking": thought, "signature": sign_block(thought, body_of(sent), KEY)}
    return {"role": "assistant", "content": [block, {"type": "text", "text": f"{text} " * 30}]}


def thinking_in(messages: list[Any]) -> list[int]:
    return [
        n
        for n, message in enumerate(messages)
        if message["role"] == "assistant"
        and not isinstance(message["content"], str)
        and any(block["type"] == "thinking" for block in message["content"])
    ]


def worker(**more: Any) -> CompactManager:
    config = CompactConfig(model=MODEL, max_context_tokens=12_000)
    return CompactManager(config, summarizer=lambda _: GOOD, clock=Clock(), **more)


def test_nothing_that_is_sent_around_a_swap_is_refused() -> None:
    made = worker(archive=manager().archive)
    session = made.sessions.get("s")
    history: list[Any] = [asked("Begin.")]
    rules = Rules(signing_key=KEY)

    def take_turn(number: int, by: CompactManager = made) -> list[Any]:
        """One call of a host that passes its full history, and the reply to it."""
        sent = list(by.preflight("s", copy.deepcopy(history)))
        assert anthropic_problems(body_of(sent), rules) == []
        history.extend([reply(sent, f"Reply {number}"), asked(f"Question {number}?")])
        return sent

    number = 0
    while session.background is None:
        take_turn(number := number + 1)
    await_ready(made)
    count = len(history)  # the list that began the pass, with one reply that arrived since
    out = take_turn(number + 1)
    assert made.archive.steps("s") == [1]
    first = next(n for n, message in enumerate(out) if message["role"] == "assistant")
    assert all(place < first for place in thinking_in(out)), "no block stands behind the first edit"
    assert out[-1]["content"] == history[count - 1]["content"]
    assert made.archive.step("s", 1).state["replaced"] == count
    later = take_turn(number + 2)
    assert later[: len(out)] == out
    assert thinking_in(later)[-1:] == [len(out)], "the reply to the swapped request keeps its block"
    other = worker(archive=made.archive)
    assert other.preflight("s", copy.deepcopy(history[: count + 2])) == later, "a new process sends the same"
    assert take_turn(number + 3, other)[: len(later)] == later
