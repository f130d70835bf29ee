"""compact: long LLM-agent sessions that stay inside the context window.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.errors import (
        ArchiveError,
        CompactError,
        ConfigError,
        ContextOverflow,
        InsufficientBudget,
        MessageError,
        MissingExtra,
        RedactionError,
        TranscriptError,
        WindowTooSmall,
    )
    from compact.manager import CompactManager

__version__ = "0.1.0"

__all__ = [
    "ArchiveError",
    "CompactConfig",
    "CompactError",
    "CompactManager",
    "ConfigError",
    "ContextOverflow",
    "InsufficientBudget",
    "MessageError",
    "MissingExtra",
    "RedactionError",
    "TranscriptError",
    "WindowTooSmall",
]

_HOMES = {"CompactConfig": "compact.config", "CompactManager": "compact.manager"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "compact.errors")), name)
    # `compact.hygiene.clean(...)` works after a plain `import compact`, like any attribute of the package.
    if name in _ROOMS:
        return import_module(f"compact.{name}")
    raise AttributeError(f"module 'compact' has no attribute {name!r}")


_ROOMS = frozenset({"checks", "config", "cuts", "dialects", "errors", "events", "hygiene", "messages"}) | {
    "overflow",
    "redaction",
    "testing",
    "tokens",
    "transcripts",
    "windows",
}


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
