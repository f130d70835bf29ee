"""compact: long LLM-agent sessions that stay inside the context window.

The names below are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compact import checks as checks
    from compact import cuts as cuts
    from compact import harness as harness
    from compact import hygiene as hygiene
    from compact import redaction as redaction
    from compact import windows as windows
    from compact.config import CompactConfig
    from compact.engine.ladder import DEFAULT_STAGES
    from compact.errors import (
        ArchiveError,
        CompactError,
        ConfigError,
        ContextOverflow,
        InsufficientBudget,
        MaskingError,
        MessageError,
        MissingExtra,
        OutOfTime,
        RedactionError,
        TranscriptError,
        WindowTooSmall,
    )
    from compact.messages.protecting import mark_protected, unmarked
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
    "MaskingError",
    "MessageError",
    "MissingExtra",
    "OutOfTime",
    "RedactionError",
    "TranscriptError",
    "WindowTooSmall",
    "mark_protected",
    "unmarked",
]

_HOMES = {
    "CompactConfig": "compact.config",
    "CompactManager": "compact.runtime.manager",
    "DEFAULT_STAGES": "compact.engine.ladder",
    "mark_protected": "compact.messages.protecting",
    "unmarked": "compact.messages.protecting",
}

if not TYPE_CHECKING:  # type checkers read the imports above, and still report names that do not exist

    def __getattr__(name: str) -> Any:
        if name == "__version__":  # read on demand: `importlib.metadata` is slow to import
            return import_module("compact._version").read_version()
        if name == "CompactManager":
            # Registers the clients that `CompactManager.wrap` takes. No SDK is imported.
            import compact.integrations.wrappers  # noqa: F401
        if name in __all__:
            return getattr(import_module(_HOMES.get(name, "compact.errors")), name)
        # `compact.hygiene.clean(...)` works after a plain `import compact`.
        if name in _modules():
            return import_module(f"compact.{name}")
        raise AttributeError(f"module 'compact' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_modules(), "__version__"})


def _modules() -> set[str]:
    return {module.name for module in iter_modules(__path__) if not module.name.startswith("_")}
