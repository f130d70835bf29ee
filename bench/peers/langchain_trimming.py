"""LangChain: `trim_messages` keeps the newest messages that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately, trim_messages

from bench.peers import Compaction, Item, Native, Peer, _langchain, scaled
from bench.retention import tokens_in


class Tool(Peer):
    """As its guide to short-term memory shows it, but that a list may end with a model's message, as the sessions are cut."""

    TITLE = "LangChain trim_messages"
    DISTRIBUTION = "langchain-core"
    IMPORT = "from langchain_core.messages.utils import count_tokens_approximately, trim_messages"
    CALLED = (
        '`trim_messages(messages, strategy="last", token_counter=count_tokens_approximately, max_tokens=budget, '
        'start_on="human", end_on=("human", "tool", "ai"), include_system=True)`; for retention first with an exact counter and '
        '`start_on=None`, `("human", "ai")` and `"human"`, then with smaller budgets'
    )
    BETTER = (
        "a pure function over typed messages; the counter, the strategy and both ends are yours to choose"
    )
    DEFAULT_KEEPS_MOST = False

    def load(self, messages: list[Item]) -> Native:
        """See `Peer.load`."""
        return _langchain.load(messages)

    def back(self, native: Native) -> list[Item]:
        """See `Peer.back`."""
        return _langchain.back(native)

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        return self.default(100_000_000)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        return _trimmed(budget, count_tokens_approximately, "human")

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        for start_on in (None, ("human", "ai"), "human"):
            yield _trimmed(budget, _exactly, start_on)
        yield from map(self.default, scaled(budget))


def _trimmed(budget: int, counter: Callable[..., int], start_on: str | tuple[str, ...] | None) -> Compaction:
    return lambda native: trim_messages(
        native,
        strategy="last",
        token_counter=counter,
        max_tokens=budget,
        start_on=start_on,
        end_on=("human", "tool", "ai"),
        include_system=True,
    )


def _exactly(messages: list[BaseMessage]) -> int:
    return tokens_in(_langchain.back(messages))
