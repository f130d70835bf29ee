"""The stability harness: artifacts in, a stable context and a report out.

stable = stabilize(artifacts, HarnessConfig(budget=8_000))
stable.artifacts    what may be sent: masked, within the budget, system and task first
stable.report       every check, what was kept, what was dropped and why
"""

from __future__ import annotations

from compact.tools.harness.artifacts import AUTHORITY, Choice, Entry, as_artifacts
from compact.tools.harness.checks import Context
from compact.tools.harness.config import HarnessConfig, register_check, register_heuristic, register_rule
from compact.tools.harness.control import control_changes
from compact.tools.harness.live import SessionValidator
from compact.tools.harness.report import Report
from compact.tools.harness.requests import to_request
from compact.tools.harness.stabilizing import Stabilized, stabilize, validate, validate_turns

__all__ = [
    "AUTHORITY",
    "Choice",
    "Context",
    "Entry",
    "HarnessConfig",
    "Report",
    "SessionValidator",
    "Stabilized",
    "as_artifacts",
    "control_changes",
    "register_check",
    "register_heuristic",
    "register_rule",
    "stabilize",
    "to_request",
    "validate",
    "validate_turns",
]
