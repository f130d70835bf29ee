"""Headroom: `compress` makes tool outputs denser by the kind of their content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headroom import compress

from bench.peers import Compaction, Native, Peer


class Tool(Peer):
    """Without its language model for prose, which is a download, as no other tool here has a model either."""

    TITLE = "Headroom compress"
    DISTRIBUTION = "headroom-ai"
    IMPORT = "from headroom import compress"
    CALLED = '`compress(messages, model="gpt-4o", model_limit=budget, kompress_model="disabled")`, without its optional extras; if that misses the budget, with `protect_recent=0, min_tokens_to_compress=50`, then also with `compress_user_messages=True, protect_analysis_context=False, target_ratio=0.2`'
    BETTER = "denser JSON, logs, search results and code by knowing their kind, before the window is full; a proxy for any client"

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        return self.default(100_000_000)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        return _compressed(budget)

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        yield _compressed(budget, protect_recent=0, min_tokens_to_compress=50)
        yield _compressed(
            budget,
            protect_recent=0,
            min_tokens_to_compress=50,
            compress_user_messages=True,
            protect_analysis_context=False,
            target_ratio=0.2,
        )


def _compressed(budget: int, **settings: Any) -> Compaction:
    def compact(native: Native) -> Native:
        result = compress(
            list(native), model="gpt-4o", model_limit=budget, kompress_model="disabled", **settings
        )
        return list(result.messages)

    return compact
