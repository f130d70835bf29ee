"""Make a list legal again: `clean(messages)`, or one step of it."""

from __future__ import annotations

from compact.messages.hygiene import *  # noqa: F403
from compact.messages.hygiene import __all__ as __all__
