"""Context windows of models, and the guard that blocks one too small to work in."""

from __future__ import annotations

from compact.tokens.windows import Window, WindowVerdict, check_window, window_of

__all__ = ["Window", "WindowVerdict", "check_window", "window_of"]
