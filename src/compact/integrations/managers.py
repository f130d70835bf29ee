"""What an integration with a framework accepts in place of a manager."""

from __future__ import annotations

from compact.config import CompactConfig
from compact.integrations.calls import check_manager
from compact.runtime.manager import CompactManager


def take_manager(given: CompactManager | CompactConfig | None, taker: str) -> CompactManager:
    """Return a manager: the given one, or a new one for a configuration, or for the configuration that is found.

    Raises:
        ConfigError: it is something else; names `taker` and what to pass.
    """
    if given is None:
        return CompactManager()
    return CompactManager(given) if isinstance(given, CompactConfig) else check_manager(given, taker)
