"""Whether a list is legal for its provider: `violations(messages)`."""

from __future__ import annotations

from compact.engine.check import Violation, violations

__all__ = ["Violation", "violations"]
