"""For tests of agents that use compact: fakes, and an assertion on what an agent would send."""

from __future__ import annotations

from compact.tools.fakes import CapturingExporter, FailingArchive, ScriptedSummarizer
from compact.tools.pytest_plugin import assert_stable

__all__ = ["CapturingExporter", "FailingArchive", "ScriptedSummarizer", "assert_stable"]
