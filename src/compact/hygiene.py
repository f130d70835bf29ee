"""Makes a list legal again."""

from __future__ import annotations

from compact.messages.hygiene import (
    Cleaned,
    Removed,
    Repair,
    clean,
    clean_report,
    limit_turns,
    repair_tool_pairs,
    sanitize,
    sendable,
)

__all__ = [
    "Cleaned",
    "Removed",
    "Repair",
    "clean",
    "clean_report",
    "limit_turns",
    "repair_tool_pairs",
    "sanitize",
    "sendable",
]
