"""A pass ends at its target, in every layout and dialect, whatever the size of the pieces."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from support.dialects import CONVERTERS
from support.engine import Item, manager, pair, says, user

from compact import tokens

WINDOW = 32_000
TARGET = 16_000
WORDS = [
    "deploy",
    "cache",
    "token",
    "queue",
    "shard",
    "index",
    "replica",
    "schema",
    "pipeline",
    "bucket",
    "parser",
    "router",
    "socket",
    "cursor",
]


def words(rng: random.Random, most: int) -> str:
    return " ".join(
        f"{rng.choice(WORDS)}{rng.randrange(90)}" for _ in range(rng.randint(-(-most // 3), most))
    )


def dialogue(rng: random.Random, size: int) -> Iterator[list[Item]]:
    """Turns of two short or long messages. Every third tells something that the ledger keeps."""
    while True:
        told = rng.choice(["I prefer ", "Could you look at ", "I saw "])
        yield [user(f"{told}{words(rng, size)}."), says(f"Here is {words(rng, size)}.")]


def work(rng: random.Random, size: int) -> Iterator[list[Item]]:
    """Turns of five calls."""
    n = 0
    while True:
        calls = [
            m for k in range(n, n + 5) for m in (*pair(f"c{k}", words(rng, size)), says(f"Read part {k}."))
        ]
        yield [user(f"Now look at {words(rng, 6)}."), *calls]
        n += 5


@pytest.mark.parametrize("layout", ["layered", "selective"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize(("kind", "size"), [(dialogue, 60), (dialogue, 300), (work, 60), (work, 300)])
def test_what_a_pass_leaves_is_within_three_hundredths_of_the_target(
    layout: str, dialect: str, kind: Callable[[random.Random, int], Iterator[list[Item]]], size: int
) -> None:
    rng, messages = random.Random(7), list[Item]()
    turns = kind(rng, size)
    while tokens.estimate(messages, model="gpt-4o").total < 1.3 * WINDOW:
        messages += [message for turn, _ in zip(turns, range(9), strict=False) for message in turn]
    messages.append(user("And what now?"))
    made = manager(WINDOW, policy={"layout": layout, "target_pct": TARGET / WINDOW})
    after = made.preflight("s", CONVERTERS[dialect](messages))
    assert tokens.estimate(after, model="gpt-4o").total == pytest.approx(TARGET, rel=0.03)
