"""What a pass did, for the line and for hosts. Apart from the ladder, which is loaded when the first pass begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compact.engine.context import Row

if TYPE_CHECKING:
    from compact.summaries.ledger import Entry


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass did. `rows` is the context as it now stands."""

    rows: Sequence[Row]
    tokens_before: int
    tokens_after: int
    """Of the messages, in the model's own tokens."""
    step: int | None = None
    """The step that was committed; None if the pass changed nothing."""
    saved: dict[str, int] = field(default_factory=dict)
    """Tokens saved, by stage: offload, compact, summarize, truncate, thinking, and those of the host's own stages."""
    summaries: frozenset[str] = frozenset()
    """Hashes of the summaries that are now in the context."""
    lost_race: bool = False
    """Another worker committed this step first: its state is the session's."""
    overtaken: bool = False
    """Another worker had made newer steps before this pass began, so it did nothing."""
    ledger: tuple[Entry, ...] = ()
    """What people said, up to this pass."""
    pins: int = 0
    """How many of the host's pins and unpins are in the ledger."""
    extract: str = ""
    """The summary behind a block of the provider that stands in the rows."""
