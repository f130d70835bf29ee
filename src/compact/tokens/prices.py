"""Prices by model: those of the model table, or of a file of the user's; and cards, which add the rules of a prompt cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.errors import ConfigError
from compact.messages.settings_text import load_yaml, read_settings
from compact.tokens.models import ModelTable, Price, is_price, match_model, model_table

__all__ = ["Card", "Price", "Prices", "Rates", "built_in", "card_named", "card_names", "read_prices"]

_OPTIONAL = ("cache_read", "cache_write", "cache_write_1h")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for one token of a request of a certain size."""

    fresh: float
    """Of input that the cache neither serves nor takes."""
    read: float
    """Of input that the cache serves."""
    write: float
    """Of input that is put into the cache."""
    output: float


@dataclass(frozen=True, slots=True)
class Card:
    """What a session is billed by: the prices of a model, and the rules of its prompt cache."""

    name: str
    price: Price
    life_s: float | None = None
    """Seconds that the cache keeps a prefix behind its last use; None: not known."""
    min_tokens: int = 0
    """The shortest prefix that the cache takes."""

    def rates(self, input_tokens: int) -> Rates:
        """The dollars for each token of a request with so much input. A tier holds for the whole request."""
        price = self.price.at(input_tokens)
        each = (price.input, price.cache_read, price.write(self.life_s), price.output)
        return Rates(*(dollars / _MILLION for dollars in each))


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model."""

    by_model: Mapping[str, Price]
    table: ModelTable
    """Where the rules of prompt caches stand."""

    def of(self, model: str) -> Price | None:
        """The price of a model, or None if it is not known."""
        name = match_model(model, self.by_model)
        return None if name is None else self.by_model[name]

    def card(self, model: str) -> Card | None:
        """The price of a model with the rules of its cache, or None if its price is not known."""
        price, cache = self.of(model), self.table.prompt_cache(model)
        if price is None:
            return None
        if cache is None:
            return Card(model, price)
        return Card(model, price, next(iter(cache.lives), None), cache.min or 0)


def built_in(table: ModelTable | None = None) -> Prices:
    """The prices of the model table, or of a table with rows of the user's."""
    found = table or model_table()
    return Prices(found.prices, found)


def card_names() -> tuple[str, ...]:
    """The names of the price cards."""
    return tuple(model_table().cards)


def card_named(name: str) -> Card:
    """Return a price card of the model table.

    Raises:
        ConfigError: there is no such card; lists them.
    """
    table = model_table()
    if name not in table.cards:
        raise ConfigError(f"there is no price card {name!r}; there are {', '.join(table.cards)}", path="card")
    row, life_s = table.cards[name]["row"], table.cards[name]["life"]
    cache = table.prompt_cache(row)
    return Card(name, table.prices[row], life_s, (cache.min if cache else None) or 0)


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
    prices = {str(model): _price(str(model), entry, path) for model, entry in data.items()}
    return Prices(prices, model_table())


def _price(model: str, entry: Any, path: Path) -> Price:
    if not is_price(entry):
        raise ConfigError(
            f"{path}: {model} must have input and output, and may have {', '.join(_OPTIONAL)} and tiers, each a number of "
            f"dollars >= 0, got {entry!r:.80}",
            path=model,
        )
    return Price.of(entry)
