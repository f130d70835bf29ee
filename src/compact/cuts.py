"""Where a session may be cut."""

from __future__ import annotations

from compact.messages.units import (
    compressible_run,
)

__all__ = [
    "compressible_run",
]
