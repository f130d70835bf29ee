"""What is known about models: the table `models.toml`, and the one rule that matches a model's name to its rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from compact.tokens.encodings import ENCODINGS
from compact.tokens.images import Area, Crops, Flat, ImageFormula, Patches, Tiles

_HOUR_S = 3600
_SHORT_NAME = 4
_FORMULAS: Mapping[str, Callable[..., ImageFormula]] = MappingProxyType(
    {"tiles": Tiles, "patches": Patches, "area": Area, "crops": Crops, "flat": Flat}
)
_NO_FORMULA = Flat(1600)
_ANY = "*"
CONFIGURED = "configuration"
"""The source of a field that the configuration's `models` sets."""

Native: TypeAlias = Literal["anthropic", "openai"]
"""Whose API writes a summary of its own in place of history."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model's tokens are counted."""

    encoding: str
    percent: int = 100
    """The margin: 135 counts every 100 tokens of the encoding as 135."""
    exact: bool = True
    """The encoding is the model's own."""
    images: ImageFormula = _NO_FORMULA
    page: int = 2500
    """Tokens of a page of a PDF."""
    call: int | None = None
    """What a call, or a result, costs in place of its id, in the model's own tokens. None: the id counts as text."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What holds for a model's signed thinking blocks."""

    preserved: bool = False
    """Whether a block is valid only behind the very prefix with which it was made."""
    unread: tuple[str, ...] = ()
    """The rows whose blocks this model does not read; `*` is every other row."""


@dataclass(frozen=True, slots=True)
class PromptCache:
    """What a provider's prompt cache takes, and how long it keeps it."""

    min: int | None = None
    """The shortest prefix in tokens; None: not known."""
    lives: tuple[int, ...] = ()
    """Seconds that an entry lives behind its last use, the default first."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What a provider takes in one request, whatever the window. None: not known."""

    images: int | None = None
    documents: int | None = None
    bytes: int | None = None
    """The size of the whole body."""

    def with_most(self, images: int, documents: int) -> RequestLimits:
        """Return these limits, lowered to at most `images` and `documents`."""
        return replace(
            self,
            images=images if self.images is None else min(images, self.images),
            documents=documents if self.documents is None else min(documents, self.documents),
        )


NO_LIMITS = RequestLimits()


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float | None = None
    """Of input that is put into the cache for an hour; None: there is no such price."""
    tiers: tuple[tuple[int, Price], ...] = ()
    """The prices of larger requests, with the input above which they hold, in ascending order."""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Price:
        """The price in a row. A cache price that is missing is that of `input`."""
        own = {key: value for key, value in entry.items() if key != "tiers"}
        prices = {"cache_read": own["input"], "cache_write": own["input"], **own}
        tiers = sorted(
            (tier["above"], cls.of({**own, **_prices_of(tier)})) for tier in entry.get("tiers", ())
        )
        return cls(**prices, tiers=tuple(tiers))

    def at(self, input_tokens: int) -> Price:
        """The prices of a request of this size. A tier holds for the whole request."""
        return next((price for above, price in reversed(self.tiers) if input_tokens > above), self)

    def write(self, life_s: float | None) -> float:
        """The price of input that is put into the cache for this many seconds; None: for the default life."""
        for_an_hour = self.cache_write_1h
        return for_an_hour if for_an_hour is not None and (life_s or 0) >= _HOUR_S else self.cache_write


def _prices_of(tier: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tier.items() if key != "above"}


@dataclass(frozen=True, slots=True)
class Known:
    """One field of the table as it holds for a model."""

    value: Any
    row: str
    """The name of the row that has it."""
    source: str
    """Where the value comes from, in words."""


UNKNOWN = Profile("cl100k_base", 135, exact=False)
"""The profile of a model that no row names."""
FIELDS = (
    "window",
    "output",
    "encoding",
    "percent",
    "images",
    "page",
    "call",
    "thinking",
    "native",
    "cache",
    "request",
    "price",
)
"""The fields of a row, in the order in which they are shown."""


@dataclass(frozen=True)
class ModelTable:
    """Rows of models, and what holds for a model by them."""

    rows: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, str]
    """Sources in words, by the short names that rows use."""
    cards: Mapping[str, Mapping[str, Any]]
    """Price cards by name: the row that has the prices, and the life of what the cache keeps."""

    @cached_property
    def windows(self) -> Mapping[str, int]:
        """Context windows by row."""
        return self._column("window")

    @cached_property
    def profiles(self) -> Mapping[str, Profile]:
        """How tokens are counted, by row."""
        return {name: _profile(row) for name, row in self.rows.items() if "encoding" in row}

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """Prices by row."""
        return {name: Price.of(price) for name, price in self._column("price").items()}

    def with_rows(self, more: Mapping[str, Mapping[str, Any]]) -> ModelTable:
        """This table with rows of the user's: their fields replace those of a row of the same name."""
        if not more:
            return self
        rows = dict(self.rows)
        for name, fields in more.items():
            own = rows.get(name, {})
            origins = {**own.get("from", {}), **dict.fromkeys(fields, CONFIGURED)}
            rows[name] = {**own, **fields, "from": origins}
        return ModelTable(rows, self.sources, self.cards)

    def row_of(self, model: str) -> str | None:
        """The name of the row that describes a model; None if no row does."""
        return match_model(model, self.rows)

    def find(self, model: str, field: str) -> Known | None:
        """A field of a model with its origin; None if no row has it."""
        # What belongs to an encoding is that of the row with the encoding.
        column = self._column("encoding" if field in ("percent", "images") else field)
        name = match_model(model, column)
        if name is None or field not in self.rows[name]:
            return None
        source = self.rows[name].get("from", {}).get(field, "")
        return Known(self.rows[name][field], name, self.sources.get(source, source))

    def profile(self, model: str) -> Profile:
        """How a model's tokens are counted; an unknown name gets `UNKNOWN`."""
        name = match_model(model, self.profiles)
        profile = UNKNOWN if name is None else self.profiles[name]
        known = {field: found.value for field in ("page", "call") if (found := self.find(model, field))}
        return replace(profile, **known) if known else profile

    def output(self, model: str) -> int | None:
        """The most tokens of one reply; None: not known."""
        found = self.find(model, "output")
        return None if found is None else int(found.value)

    def thinking(self, model: str) -> Thinking:
        """What holds for a model's thinking blocks. Those of a model that no row names are taken for unbound."""
        found = self.find(model, "thinking")
        if found is None:
            return Thinking()
        return Thinking(bool(found.value.get("preserved", False)), tuple(found.value.get("unread", ())))

    def reads(self, model: str, maker: str) -> bool:
        """Whether a model reads the thinking blocks of another one, as far as that is documented."""
        own, other = self.row_of(model), self.row_of(maker)
        unread = self.thinking(model).unread
        return own == other or not (other in unread or _ANY in unread)

    def native(self, model: str) -> Native | None:
        """Whose API compacts a session of this model; None: nobody's, as far as is known."""
        found = self.find(model, "native")
        return None if found is None else found.value

    def prompt_cache(self, model: str) -> PromptCache | None:
        """The rules of a model's prompt cache; None: not known."""
        found = self.find(model, "cache")
        if found is None:
            return None
        return PromptCache(found.value.get("min"), tuple(found.value.get("lives", ())))

    def request(self, model: str) -> RequestLimits:
        """How many images and documents a request to this model may hold, and how large it may be."""
        found = self.find(model, "request")
        return NO_LIMITS if found is None else RequestLimits(**found.value)

    def _column(self, field: str) -> dict[str, Any]:
        return {name: row[field] for name, row in self.rows.items() if field in row}


@cache
def model_table() -> ModelTable:
    """Read `models.toml`, once per process."""
    import tomllib  # only needed here, and not cheap to import

    found = tomllib.loads((files("compact.tokens") / "models.toml").read_text(encoding="utf-8"))
    return ModelTable(found["models"], found["sources"], found["cards"])


def check_rows(rows: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """The first wrong field of a user's rows, as its path and a sentence; None if all are right."""
    for name, row in rows.items():
        for field, value in row.items():
            expected = _EXPECTED.get(field)
            if expected is None:
                return f"{name}.{field}", f"is not a field of a model; there are {', '.join(FIELDS)}"
            is_right, words = expected
            if not is_right(value):
                return f"{name}.{field}", f"must be {words}"
        if row.keys() & {"percent", "images"} and "encoding" not in row:
            return f"{name}.encoding", "must be set beside percent and images, which belong to it"
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_thinking(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() <= {"preserved", "unread"}
        and isinstance(value.get("preserved", False), bool)
        and isinstance(value.get("unread", []), list | tuple)
        and all(isinstance(name, str) for name in value.get("unread", []))
    )


def _is_cache(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() <= {"min", "lives"}
        and _is_count(value.get("min", 1))
        and isinstance(value.get("lives", []), list | tuple)
        and all(map(_is_count, value.get("lives", [])))
    )


def _is_request(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() <= {"images", "documents", "bytes"}
        and all(map(_is_count, value.values()))
    )


_PRICES = frozenset({"input", "output", "cache_read", "cache_write", "cache_write_1h"})


def is_price(value: Any) -> bool:
    """Whether this is a price as a row has it: `input`, `output`, and perhaps those of the cache and `tiers`."""
    return (
        isinstance(value, Mapping)
        and {"input", "output"} <= value.keys() <= _PRICES | {"tiers"}
        and _are_dollars(value)
        and isinstance(value.get("tiers", []), list | tuple)
        and all(map(_is_tier, value.get("tiers", [])))
    )


def _is_tier(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {"above"} < value.keys() <= _PRICES | {"above"}
        and _is_count(value["above"])
        and _are_dollars(value)
    )


def _are_dollars(value: Mapping[str, Any]) -> bool:
    found = [value[key] for key in _PRICES & value.keys()]
    return all(
        isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each < math.inf
        for each in found
    )


def _is_formula(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= _FORMULAS.keys():
        return False
    try:
        return all(_FORMULAS[name](*numbers) is not None for name, numbers in value.items())
    except TypeError:
        return False


_EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = MappingProxyType(
    {
        "window": (_is_count, "a whole number >= 1"),
        "output": (_is_count, "a whole number >= 1"),
        "encoding": (lambda value: value in ENCODINGS, f"one of {', '.join(ENCODINGS)}"),
        "percent": (_is_count, "a whole number >= 1, such as 135"),
        "images": (_is_formula, f"one formula with its numbers: {', '.join(_FORMULAS)}"),
        "page": (_is_count, "a whole number of tokens >= 1"),
        "call": (_is_count, "a whole number of tokens >= 1"),
        "thinking": (_is_thinking, "a mapping with preserved (true or false) and unread (a list of names)"),
        "native": (lambda value: value in ("anthropic", "openai"), "anthropic or openai"),
        "cache": (_is_cache, "a mapping with min (tokens) and lives (a list of seconds)"),
        "request": (_is_request, "a mapping with images, documents and bytes, each a whole number >= 1"),
        "price": (
            is_price,
            "a mapping with input and output in dollars, and perhaps cache_read, cache_write, cache_write_1h and tiers",
        ),
    }
)


def _profile(row: Mapping[str, Any]) -> Profile:
    counted = {key: row[key] for key in ("encoding", "percent") if key in row}
    for formula, numbers in row.get("images", {}).items():
        counted["images"] = _FORMULAS[formula](*numbers)
    return Profile(**counted, exact="percent" not in row)


@lru_cache(maxsize=256)
def profile_of(model: str) -> Profile:
    """How a model's tokens are counted by the built-in table; an unknown name gets `UNKNOWN`."""
    return model_table().profile(model)


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: they are equal, or the table has one row for both, as for a dated name."""
    return one == other or (row_of(one) is not None and row_of(one) == row_of(other))


@lru_cache(maxsize=256)
def row_of(model: str) -> str | None:
    """The name of the row that describes a model; None if no row does."""
    return model_table().row_of(model)


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
