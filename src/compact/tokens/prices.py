"""Prices of models, and the cost of requests with and without a prompt cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from compact.errors import ConfigError
from compact.tokens.windows import match_model

_MILLION = 1_000_000
_REQUIRED = ("input", "output")
_KNOWN = (*_REQUIRED, "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def plain(self, input_tokens: int, output_tokens: int) -> float:
        """The cost if nothing is cached."""
        return (input_tokens * self.input + output_tokens * self.output) / _MILLION

    def cached(self, input_tokens: int, reused_tokens: int, output_tokens: int) -> float:
        """The cost if the cache serves every unchanged prefix and the rest is written to it."""
        fresh = (input_tokens - reused_tokens) * self.cache_write
        return (fresh + reused_tokens * self.cache_read + output_tokens * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model."""

    by_model: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of a model; None if unknown."""
        name = match_model(model, self.by_model)
        return None if name is None else self.by_model[name]


@cache
def built_in() -> Prices:
    """Load the prices that ship with compact."""
    return _parse((files("compact.tokens") / "prices.yaml").read_text(encoding="utf-8"), "prices.yaml")


def read_prices(path: Path) -> Prices:
    """Read prices from a file like `prices.yaml`.

    Raises:
        ConfigError: the file cannot be read, or a price is not a number; names the model.
    """
    try:
        return _parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())[:200]
        raise ConfigError(f"cannot read {path}: it is not YAML: {words}", path=str(path)) from None


def _parse(text: str, where: str) -> Prices:
    data = yaml.safe_load(text)
    if not isinstance(data, dict) or not data:
        raise ConfigError(
            f"cannot read {where}: expected model names with prices",
            hint="For example: gpt-4o: {input: 2.50, output: 10.00, cache_read: 1.25}",
        )
    return Prices({str(model): _price(str(model), entry, where) for model, entry in data.items()})


def _price(model: str, given: Any, where: str) -> Price:
    entry: dict[str, Any] = given if isinstance(given, dict) else {}
    if any(key not in entry for key in _REQUIRED) or set(entry) - set(_KNOWN):
        raise ConfigError(
            f"{where}: {model} must have {' and '.join(_REQUIRED)}, and may have cache_read and cache_write",
            path=model,
        )
    for key, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(
                f"{where}: {model}.{key} must be a number of dollars >= 0, got {value!r:.40}", path=model
            )
    return Price(
        input=entry["input"],
        output=entry["output"],
        cache_read=entry.get("cache_read", entry["input"]),
        cache_write=entry.get("cache_write", entry["input"]),
    )
