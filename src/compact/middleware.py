"""The progressive compaction addendum's names."""

from __future__ import annotations

from compact.integrations.progressive import CompactionResult, ContextConfig, ContextManagementMiddleware

__all__ = ["CompactionResult", "ContextConfig", "ContextManagementMiddleware"]
