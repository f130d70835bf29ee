"""Typed settings from a file, the environment and keyword arguments, each with its origin."""

from __future__ import annotations

from compact.config.root import (
    CompactConfig,
    ConfigArguments,
    Setting,
    SettingArguments,
    share_of,
    yaml_text,
)
from compact.config.sections import (
    ArchiveConfig,
    EconomyConfig,
    GuardConfig,
    MeterConfig,
    OffloadConfig,
    PolicyConfig,
    ProxyConfig,
    RecoveryConfig,
    RedactionConfig,
    SummaryConfig,
    TracingConfig,
)

__all__ = [
    "ArchiveConfig",
    "CompactConfig",
    "ConfigArguments",
    "EconomyConfig",
    "GuardConfig",
    "MeterConfig",
    "OffloadConfig",
    "PolicyConfig",
    "ProxyConfig",
    "RecoveryConfig",
    "RedactionConfig",
    "Setting",
    "SettingArguments",
    "SummaryConfig",
    "TracingConfig",
    "share_of",
    "yaml_text",
]
