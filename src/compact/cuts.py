"""Where a session may be cut: `compressible_run(messages, retention_window)`."""

from __future__ import annotations

from compact.messages.units import compressible_run

__all__ = ["compressible_run"]
