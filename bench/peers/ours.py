"""compact, without a model and with an archive on the filesystem; the budget is its window, and nothing is held back of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.peers import Compaction, Native, Peer, Refused
from compact import CompactConfig, CompactManager, InsufficientBudget


class Tool(Peer):
    """A new session for each compaction; the whole transcript is durable on the disk before anything goes."""

    TITLE = "compact"
    DISTRIBUTION = "compact-context"
    IMPORT = "from compact import CompactConfig, CompactManager"
    CALLED = (
        '`CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=budget, policy={"hard_cap_buffer": 0, '
        '"trigger_pct": 1.0, "target_pct": 1.0}, guard={"min_context_tokens": 1, "warn_context_tokens": 1}, '
        'archive={"root": folder})).preflight("s", messages)`, no model; the preflight of the first table has only '
        "`model`, `max_context_tokens` and `archive`. A pass goes down to a tenth below what triggers it, and the others fill "
        "the budget, so for retention `max_context_tokens=budget / 0.9` is tried first, and scored if it is within the budget"
    )
    BETTER = ""
    DEFAULT_KEEPS_MOST = False

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._managers: list[CompactManager] = []

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        made = self._manager(100_000_000)
        made.preflight("s", native)
        return lambda grown: made.preflight("s", grown)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        made = self._manager(
            budget,
            policy={"hard_cap_buffer": 0, "trigger_pct": 1.0, "target_pct": 1.0},
            guard={"min_context_tokens": 1, "warn_context_tokens": 1},
        )

        def compact(native: Native) -> Native:
            try:
                return list(made.preflight("s", native))
            except InsufficientBudget as problem:
                raise Refused from problem

        return compact

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`: as `bench.retention.ours_within` does."""
        yield self.default(int(budget / 0.9))

    def close(self) -> None:
        """See `Peer.close`."""
        for made in self._managers:
            made.close()
        self._folder.cleanup()

    def _manager(self, window: int, **settings: Any) -> CompactManager:
        root = Path(self._folder.name) / str(len(self._managers))
        config = CompactConfig(
            model="gpt-4o", max_context_tokens=window, archive={"root": str(root)}, **settings
        )
        self._managers.append(CompactManager(config))
        return self._managers[-1]
