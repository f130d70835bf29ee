"""pydantic-ai: `Agent(..., capabilities=[CompactHistory(manager)])`."""

from __future__ import annotations

from compact.errors import MissingExtra

try:
    import pydantic_ai.capabilities as _capabilities  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("pydantic-ai", "The integration with pydantic-ai") from problem

from compact.integrations.pydantic_ai.capability import CompactHistory

__all__ = ["CompactHistory"]
