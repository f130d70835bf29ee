"""LangChain: `trim_messages` keeps the newest messages that fit, from a human message on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately, trim_messages

from bench.peers import Compaction, Item, Native, Peer, _langchain, scaled


class Tool(Peer):
    """With the settings that its guide to short-term memory shows."""

    TITLE = "LangChain trim_messages"
    DISTRIBUTION = "langchain-core"
    IMPORT = "from langchain_core.messages.utils import count_tokens_approximately, trim_messages"
    CALLED = (
        '`trim_messages(..., strategy="last", token_counter=count_tokens_approximately, start_on="human")`'
    )
    BETTER = (
        "a pure function over typed messages; the counter, the strategy and both ends are yours to choose"
    )

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
        return lambda native: trim_messages(
            native,
            strategy="last",
            token_counter=count_tokens_approximately,
            max_tokens=budget,
            start_on="human",
            end_on=("human", "tool", "ai"),
            include_system=True,
        )

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        yield from map(self.default, scaled(budget))
