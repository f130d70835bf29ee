"""What an integration accepts in place of a manager."""

from __future__ import annotations

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.runtime.manager import CompactManager


def take_manager(given: CompactManager | CompactConfig | None, taker: str) -> CompactManager:
    """Return a manager: the given one, or a new one for a configuration, or for the configuration that is found.

    Raises:
        ConfigError: it is something else; names `taker` and what it takes.
    """
    if isinstance(given, CompactManager):
        return given
    if given is None:
        return CompactManager()
    if isinstance(given, CompactConfig):
        return CompactManager(given)
    raise ConfigError(
        f"{taker} takes a CompactManager or a CompactConfig, got {type(given).__name__}",
        hint=f'{taker}(CompactManager(CompactConfig(model="...")))',
        path="manager",
    )


def require_manager(given: object, taker: str) -> CompactManager:
    """Return a manager that must be the one of other parts.

    Raises:
        ConfigError: it is something else; names `taker`.
    """
    if isinstance(given, CompactManager):
        return given
    raise ConfigError(
        f"{taker} takes a CompactManager, got {type(given).__name__}",
        hint="Pass the manager that compacts the session",
        path="manager",
    )
