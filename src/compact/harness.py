"""The stability harness: `stabilize(artifacts, HarnessConfig(budget=8_000))`. See docs/HARNESS.md."""

from __future__ import annotations

from compact.tools.harness import *  # noqa: F403
from compact.tools.harness import __all__ as __all__
