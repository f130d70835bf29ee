"""For tests of agents: fakes, an assertion on what an agent would send, and strict stand-ins for the providers."""

from __future__ import annotations

from compact.tools.fakes import CapturingExporter, FailingArchive, ScriptedSummarizer
from compact.tools.pytest_plugin import assert_stable
from compact.tools.standins import Call, Fault, Provider, Received, Refusal, Reply, Rules, by_turn, serving

__all__ = [
    "Call", "CapturingExporter", "FailingArchive", "Fault", "Provider", "Received", "Refusal", "Reply", "Rules",
    "ScriptedSummarizer", "assert_stable", "by_turn", "serving",
]  # fmt: skip
