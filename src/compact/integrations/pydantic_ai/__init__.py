"""pydantic-ai: `Agent(..., capabilities=[CompactHistory(manager)])`."""

from __future__ import annotations

from compact.errors import MissingExtra

try:
    from pydantic_ai.capabilities import AbstractCapability as _Capability

    # Older releases do not ask a capability for a model: requests would pass it by, and nothing would say so.
    _ = _Capability.get_wrapper_model
except (ImportError, AttributeError) as problem:
    raise MissingExtra.named("pydantic-ai", "The integration with pydantic-ai") from problem

from compact.integrations.pydantic_ai.capability import CompactHistory

__all__ = ["CompactHistory"]
