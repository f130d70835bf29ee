"""Prices by model: those of the model table, or of a file of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.errors import ConfigError
from compact.messages.settings_text import load_yaml, read_settings
from compact.tokens.models import Price, match_model, model_table

__all__ = ["Price", "Prices", "built_in", "read_prices"]

_REQUIRED = {"input", "output"}
_KNOWN = _REQUIRED | {"cache_read", "cache_write"}


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model."""

    by_model: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of a model, or None if it is not known."""
        name = match_model(model, self.by_model)
        return None if name is None else self.by_model[name]


def built_in() -> Prices:
    """The prices of the model table."""
    return Prices(model_table().prices)


def read_prices(path: Path) -> Prices:
    """Read a YAML file of prices by model: `gpt-4o: {input: 2.50, output: 10.00, cache_read: 1.25}`.

    Raises:
        ConfigError: the file cannot be read, or a price is not a number; names the model.
    """
    try:
        data = load_yaml(read_settings(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except ValueError as error:
        words = " ".join(str(error).split())[:200]
        raise ConfigError(f"cannot read {path}: it is not YAML: {words}", path=str(path)) from None
    if not isinstance(data, dict) or not data:
        raise ConfigError(
            f"cannot read {path}: expected model names with prices",
            hint="For example: gpt-4o: {input: 2.50, output: 10.00, cache_read: 1.25}",
        )
    return Prices({str(model): _price(str(model), entry, path) for model, entry in data.items()})


def _price(model: str, entry: Any, path: Path) -> Price:
    if not isinstance(entry, dict) or not _REQUIRED <= entry.keys() <= _KNOWN:
        raise ConfigError(
            f"{path}: {model} must have input and output, and may have cache_read and cache_write",
            path=model,
        )
    for key, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(
                f"{path}: {model}.{key} must be a number of dollars >= 0, got {value!r:.40}", path=model
            )
    return Price.of(entry)
