"""LiteLLM: `trim_messages` keeps the newest messages that fit and shortens the one at the edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from litellm.utils import trim_messages

from bench.peers import Compaction, Native, Peer, scaled

_MODEL = "gpt-4o"


class Tool(Peer):
    """Chat messages are its own form."""

    TITLE = "LiteLLM trim_messages"
    DISTRIBUTION = "litellm"
    IMPORT = "from litellm.utils import trim_messages"
    CALLED = '`trim_messages(messages, model="gpt-4o", max_tokens=budget)`; for retention with smaller budgets if it misses this one'
    BETTER = "one function without state or settings, for any of its hundred providers"
    EVERY = 4

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        return self.default(100_000_000)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        return lambda native: list(trim_messages(native, model=_MODEL, max_tokens=budget))

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        yield from map(self.default, scaled(budget))
