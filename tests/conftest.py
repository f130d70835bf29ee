"""Settings for every test."""

from __future__ import annotations

from hypothesis import settings

# A deadline measures the machine, not the code; what is slow has a benchmark.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
