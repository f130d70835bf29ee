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
