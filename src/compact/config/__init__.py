"""Typed settings: file, environment, keyword arguments, and where each value came from."""

from __future__ import annotations

from compact.config.root import CompactConfig, Setting, Settings, share_of
from compact.config.sections import (
    ArchiveConfig,
    GuardConfig,
    MeterConfig,
    OffloadConfig,
    PolicyConfig,
    RecoveryConfig,
    RedactionConfig,
    SummaryConfig,
    TracingConfig,
)

__all__ = [
    "ArchiveConfig",
    "CompactConfig",
    "GuardConfig",
    "MeterConfig",
    "OffloadConfig",
    "PolicyConfig",
    "RecoveryConfig",
    "RedactionConfig",
    "Setting",
    "Settings",
    "SummaryConfig",
    "TracingConfig",
    "share_of",
]
