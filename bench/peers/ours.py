"""compact, with its default settings and an archive on the filesystem."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers import Compaction, Native, Peer, Refused
from compact import CompactConfig, CompactManager, InsufficientBudget


class Tool(Peer):
    """A new session for each compaction; the whole transcript is durable on the disk before anything goes."""

    TITLE = "compact"
    DISTRIBUTION = "compact-context"
    IMPORT = "from compact import CompactConfig, CompactManager"
    CALLED = "`CompactManager(CompactConfig(...)).preflight(...)`, no model, archive on the filesystem"
    BETTER = ""

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
