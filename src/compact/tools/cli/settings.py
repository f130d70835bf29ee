"""The settings of a command, and a word about the file that they came from."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from compact.config import CompactConfig, ConfigArguments
from compact.tools.cli.printing import say


def load_settings(
    file: Path | None, *, agent: str | None = None, **overrides: Unpack[ConfigArguments]
) -> CompactConfig:
    """Load the settings. If a file was found that nobody named, say so on stderr.

    Raises:
        ConfigError: as `CompactConfig.load` does.
    """
    config = CompactConfig.load(file, agent=agent, **overrides)
    if config.source is not None and not config.source.was_named:
        say(f"settings are read from {config.source.path.resolve()}")
    return config
