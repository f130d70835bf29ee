"""compact: long LLM-agent sessions that stay inside the context window.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.engine.ladder import DEFAULT_STAGES
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
    from compact.runtime.manager import CompactManager

__version__: str

__all__ = [
    "DEFAULT_STAGES",
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

_HOMES = {
    "CompactConfig": "compact.config",
    "CompactManager": "compact.runtime.manager",
    "DEFAULT_STAGES": "compact.engine.ladder",
}
_MODULES = frozenset(
    [
        "archive",
        "checks",
        "config",
        "cuts",
        "engine",
        "errors",
        "events",
        "harness",
        "hygiene",
        "integrations",
        "messages",
        "middleware",
        "redaction",
        "runtime",
        "summaries",
        "testing",
        "tokens",
        "tools",
        "tracing",
        "windows",
    ]
)


def __getattr__(name: str) -> Any:
    if name == "__version__":  # read on demand: `importlib.metadata` is slow to import
        return import_module("compact._version").read_version()
    if name == "CompactManager":
        import compact.integrations.clients  # noqa: F401  # registers the clients that `wrap` takes; loads no SDK
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "compact.errors")), name)
    # `compact.hygiene.clean(...)` works after a plain `import compact`, like any attribute of the package.
    if name in _MODULES:
        return import_module(f"compact.{name}")
    raise AttributeError(f"module 'compact' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
