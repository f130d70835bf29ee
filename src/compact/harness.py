"""The stability harness."""

from __future__ import annotations

from compact.tools.harness import (
    AUTHORITY,
    Choice,
    Context,
    Entry,
    HarnessConfig,
    Report,
    Stabilized,
    as_artifacts,
    control_changes,
    register_check,
    register_heuristic,
    register_rule,
    stabilize,
    validate,
    validate_turns,
)

__all__ = [
    "AUTHORITY",
    "Choice",
    "Context",
    "Entry",
    "HarnessConfig",
    "Report",
    "Stabilized",
    "as_artifacts",
    "control_changes",
    "register_check",
    "register_heuristic",
    "register_rule",
    "stabilize",
    "validate",
    "validate_turns",
]
