"""Prices by model: those of the model table, or of a file of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.errors import ConfigError
from compact.messages.settings_text import load_yaml, read_settings
from compact.tokens.models import ModelTable, Price, is_price, match_model, model_table

__all__ = ["Price", "Prices", "built_in", "read_prices"]

_OPTIONAL = ("cache_read", "cache_write", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model."""

    by_model: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of a model, or None if it is not known."""
        name = match_model(model, self.by_model)
        return None if name is None else self.by_model[name]


def built_in(table: ModelTable | None = None) -> Prices:
    """The prices of the model table, or of a table with rows of the user's."""
    return Prices((table or model_table()).prices)


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
    if not is_price(entry):
        raise ConfigError(
            f"{path}: {model} must have input and output, and may have {', '.join(_OPTIONAL)} and tiers, each a number of "
            f"dollars >= 0, got {entry!r:.80}",
            path=model,
        )
    return Price.of(entry)
