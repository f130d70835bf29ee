"""The stability harness: artifacts in, a stable context and a report out.

stable = stabilize(artifacts, HarnessConfig(budget=8_000))
stable.artifacts    what may be sent: masked, within the budget, system and task first
stable.report       every check, what was kept, what was dropped and why
"""

from __future__ import annotations

from compact.harness.artifacts import AUTHORITY, as_artifacts
from compact.harness.checks import Context
from compact.harness.config import HarnessConfig, register_check, register_heuristic, register_rule
from compact.harness.control import control_changes
from compact.harness.entries import Choice, Entry
from compact.harness.report import Report
from compact.harness.stabilizing import Stabilized, stabilize, validate
from compact.harness.turns import validate_turns

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
