"""What compact did in a run, as its archive tells."""

from __future__ import annotations

from collections import Counter

from compact import CompactManager
from compact.events import PrunedMessages, SummaryCreated


def print_outcome(manager: CompactManager) -> None:
    """Print how often the manager compacted, how many summaries it made, and how many tokens it took out."""
    archive, counts = manager.archive, Counter[str]()
    for session_id in archive.sessions():
        for event in archive.events(session_id):
            match event.properties:
                case PrunedMessages() as pruned:
                    counts["compactions"] += 1
                    counts["tokens taken out"] += pruned.tokens_before - pruned.tokens_after
                case SummaryCreated():
                    counts["summaries"] += 1
    for what in ("compactions", "summaries", "tokens taken out"):
        print(f"{what}: {counts[what]}")
