"""What is known about models: the table `models.toml`, and the one rule that matches a model's name to its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from compact.tokens.images import Area, Crops, Flat, ImageFormula, Patches, Tiles

_MILLION = 1_000_000
_SHORT_NAME = 4
_FORMULAS: Mapping[str, Callable[..., ImageFormula]] = MappingProxyType(
    {"tiles": Tiles, "patches": Patches, "area": Area, "crops": Crops, "flat": Flat}
)
_NO_FORMULA = Flat(1600)


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model's tokens are counted."""

    encoding: str
    percent: int = 100
    """The margin: 135 counts every 100 tokens of the encoding as 135."""
    exact: bool = True
    """The encoding is the model's own."""
    images: ImageFormula = _NO_FORMULA


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    @classmethod
    def of(cls, entry: Mapping[str, float]) -> Price:
        """The price in a row. A cache price that is missing is that of `input`."""
        return cls(**{"cache_read": entry["input"], "cache_write": entry["input"], **entry})

    def plain(self, input_tokens: int, output_tokens: int) -> float:
        """The cost when nothing is cached."""
        return (input_tokens * self.input + output_tokens * self.output) / _MILLION

    def cached(self, input_tokens: int, reused_tokens: int, output_tokens: int) -> float:
        """The cost when the cache serves the unchanged beginning and the rest is written to it."""
        fresh = (input_tokens - reused_tokens) * self.cache_write
        return (fresh + reused_tokens * self.cache_read + output_tokens * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The rows of `models.toml`, one mapping for each field that is looked up on its own."""

    windows: Mapping[str, int]
    profiles: Mapping[str, Profile]
    prices: Mapping[str, Price]


UNKNOWN = Profile("cl100k_base", 135, exact=False)
"""The profile of a model that no row names."""


@cache
def model_table() -> ModelTable:
    """Read `models.toml`, once per process."""
    import tomllib  # only needed here, and not cheap to import

    rows = tomllib.loads((files("compact.tokens") / "models.toml").read_text(encoding="utf-8"))
    return ModelTable(
        windows={name: row["window"] for name, row in rows.items() if "window" in row},
        profiles={name: _profile(row) for name, row in rows.items() if "encoding" in row},
        prices={name: Price.of(row["price"]) for name, row in rows.items() if "price" in row},
    )


def _profile(row: Mapping[str, Any]) -> Profile:
    counted = {key: row[key] for key in ("encoding", "percent") if key in row}
    for formula, numbers in row.get("images", {}).items():
        counted["images"] = _FORMULAS[formula](*numbers)
    return Profile(**counted, exact="percent" not in row)


@lru_cache(maxsize=256)
def profile_of(model: str) -> Profile:
    """How a model's tokens are counted; an unknown name gets `UNKNOWN`."""
    profiles = model_table().profiles
    name = match_model(model, profiles)
    return UNKNOWN if name is None else profiles[name]


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: they are equal, or the table has one row for both, as for a dated name."""
    return one == other or (row_of(one) is not None and row_of(one) == row_of(other))


@lru_cache(maxsize=256)
def row_of(model: str) -> str | None:
    """The name of the row that describes a model; None if no row does."""
    table = model_table()
    return match_model(model, {**table.windows, **table.profiles, **table.prices})


def match_model(model: str, names: Iterable[str]) -> str | None:
    """Return the longest of `names` that is a whole part of a model's name, or None.

    Names may be dated, prefixed by a provider or region, fine-tuned, and written with dots or dashes:
    `openrouter/openai/gpt-4.1-mini`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0` and `ft:gpt-4o:org::id` match
    `gpt-4.1`, `claude-sonnet-4-5` and `gpt-4o`. `gpt-4` does not match `gpt-4o`.
    """
    wanted = _canonical(model)
    found: str | None = None
    length = 0
    for name in names:
        key = _canonical(name)
        if len(key) > length and _contains(wanted, key):
            found, length = name, len(key)
    return found


@lru_cache(maxsize=2048)
def _canonical(name: str) -> str:
    """One spelling for all variants: `Llama-v3p1`, `llama-3.1` and `llama3.1` are the same model."""
    text = name.strip().lower().replace("_", "-")
    if text.startswith("ft:"):  # what follows the base model is the customer's own wording
        text = text.split(":")[1]
    text = re.sub(r"(?<=\d)[.p](?=\d)", "-", text)
    return re.sub(r"(?<=[a-z])-v?(?=\d)", "", text)


def _contains(wanted: str, key: str) -> bool:
    start = wanted.find(key)
    while start >= 0:
        if _starts_part(wanted, start, len(key)) and _ends_part(wanted, start + len(key)):
            return True
        start = wanted.find(key, start + 1)
    return False


def _starts_part(wanted: str, start: int, length: int) -> bool:
    if start == 0:
        return True
    # After a dash, "o1" is part of another maker's name ("marco-o1"); after a slash it is a model.
    return wanted[start - 1] in ("/:.@" if length < _SHORT_NAME else "/:.@-")


def _ends_part(wanted: str, end: int) -> bool:
    following = wanted[end : end + 1]
    if following.isdigit():
        return not wanted[end - 1].isdigit()
    return not following.isalpha()
