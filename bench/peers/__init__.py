"""Other packages that do part of what compact does, on the same transcripts: `make bench-peers`.

One file per package. A peer gets the messages as its own objects, as a host of that package would hold them; the conversion
is not timed. It is called as its documentation shows (`default`). If it has no budget, misses it, or returns a list that a
provider would refuse, `tuned` tries other settings, starting with the one that keeps most. Retention is scored on the first
result that is legal and fits, so no peer is judged by a setting that a user could have changed.
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
    """The tool raised an error that says the list cannot be made to fit, instead of returning one that does not."""


class Peer:
    """The interface of a measured tool."""

    TITLE: ClassVar[str]
    DISTRIBUTION: ClassVar[str]
    IMPORT: ClassVar[str]
    """What a user's program imports."""
    CALLED: ClassVar[str]
    """What is called, with which settings."""
    BETTER: ClassVar[str]
    """What it does better than compact."""
    DEFAULT_KEEPS_MOST: ClassVar[bool] = True
    """Whether `tuned` is skipped if the default result fits."""
    EVERY: ClassVar[int] = 1
    """Use only every n-th recorded list, for a slow tool."""

    def __init__(self) -> None:
        self.not_its_own_s = 0.0
        """Processor seconds within its calls that belong to the measurement."""

    def load(self, messages: list[Item]) -> Native:
        """Chat messages as the tool's own objects, one for each."""
        return messages

    def back(self, native: Native) -> list[Item]:
        """The tool's objects as chat messages."""
        return native

    def below(self, native: Native) -> Callable[[Native], Any]:
        """What a host calls before each model call, with room for everything."""
        raise NotImplementedError

    def default(self, budget: int) -> Compaction:
        """One compaction to a budget, as documented. It may change the list, but not the messages in it."""
        raise NotImplementedError

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """Other settings for the same budget, the one that keeps most first."""
        yield from ()

    def close(self) -> None:
        """Release what was opened."""


def peer_named(name: str) -> Peer:
    """Return the adapter of that name. Imports its package."""
    made: Peer = import_module(f"bench.peers.{name}").Tool()
    return made


def scaled(budget: int) -> Iterator[int]:
    """Budgets to try if the tool's own count is an estimate, so that its result may exceed the real budget."""
    yield from (budget * twentieths // 20 for twentieths in (18, 16, 14, 12, 10, 8))


class Excluded:
    """Time spent inside `with Excluded(peer):` does not count as the peer's."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self._peer.not_its_own_s += time.process_time() - self._began
