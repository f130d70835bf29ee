"""Real packages that do a part of what compact does, on the same transcripts: `make bench-peers`.

One file for each package. A peer gets the messages as objects of its own kind, since a host of that package holds them so;
neither the way there nor the way back is timed. It is called as its documentation shows (`default`). Where it has no budget,
or misses it, or gives a list that a provider would refuse, `tuned` tries other settings, the one that keeps most first: what
is scored for retention is the first result that is legal and fits, so a peer is never judged by a setting that somebody could have turned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, ClassVar

Item = dict[str, Any]
Native = list[Any]
Compaction = Callable[[Native], Native]

NAMES = (
    "ours",
    "litellm",
    "langchain_trimming",
    "langchain_editing",
    "strands",
    "openai_agents",
    "pydantic_harness",
    "headroom",
)
"""The modules of this folder that hold a `Tool`."""


class Refused(Exception):
    """The tool raised an error that says the list cannot be made to fit, instead of giving one that does not."""


class Peer:
    """What a tool offers to be measured."""

    TITLE: ClassVar[str]
    DISTRIBUTION: ClassVar[str]
    IMPORT: ClassVar[str]
    """What a user's program imports."""
    CALLED: ClassVar[str]
    """What is called, with which settings."""
    BETTER: ClassVar[str]
    """What it does better than compact."""
    DEFAULT_KEEPS_MOST: ClassVar[bool] = True
    """Whether a default result that fits needs no look at `tuned`."""
    EVERY: ClassVar[int] = 1
    """Of the recorded lists only each so many, for a tool that takes long for one."""

    def __init__(self) -> None:
        self.not_its_own_s = 0.0
        """Processor seconds inside of its calls that are the measurement's, not its own."""

    def load(self, messages: list[Item]) -> Native:
        """Chat messages as the tool's own objects, one for each."""
        return messages

    def back(self, native: Native) -> list[Item]:
        """The tool's objects as chat messages."""
        return native

    def below(self, native: Native) -> Callable[[Native], Any]:
        """What a host calls before each model call; here there is room for everything."""
        raise NotImplementedError

    def default(self, budget: int) -> Compaction:
        """One compaction to a budget, as documented. It may change the list that it gets, not the messages in it."""
        raise NotImplementedError

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """Other settings for the same budget, the one that keeps most first."""
        yield from ()

    def close(self) -> None:
        """Give back what was opened."""


def peer_named(name: str) -> Peer:
    """The adapter of that name; imports its package."""
    made: Peer = import_module(f"bench.peers.{name}").Tool()
    return made


def scaled(budget: int) -> Iterator[int]:
    """Budgets to try where the tool's own count is an estimate, so that its result may be over the real one."""
    yield from (budget * twentieths // 20 for twentieths in (18, 16, 14, 12, 10, 8))


class Excluded:
    """`with Excluded(peer):` the time spent inside is not counted as the peer's."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self._peer.not_its_own_s += time.process_time() - self._began
