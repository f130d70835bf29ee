"""Whether a list is legal for its provider."""

from __future__ import annotations

from compact.messages.legality import (
    Violation,
    violations,
)

__all__ = [
    "Violation",
    "violations",
]
