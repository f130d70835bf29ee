"""The simulator: what a provider bills for requests that follow each other, with a cache that forgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from compact.tokens.prices import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request."""

    tokens: int
    unchanged: int
    """Its first tokens that are those of the request before: what a warm cache serves. Of the first request: what it found."""
    output: int = 0
    fresh: int = 0
    """Tokens behind the last cache mark, which the cache neither serves nor takes."""
    at_s: float | None = None
    """When it was sent; None: not known, so no time passes."""
    life_s: float | None = None
    """How long what it leaves in the cache lives; None: as the card says."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Tokens by their price, and the dollars for them."""

    cache_read: int = 0
    cache_write: int = 0
    fresh: int = 0
    output: int = 0
    read_cost: float = 0.0
    write_cost: float = 0.0
    fresh_cost: float = 0.0
    output_cost: float = 0.0

    @property
    def cost(self) -> float:
        """Dollars for everything."""
        return self.read_cost + self.write_cost + self.fresh_cost + self.output_cost

    def __add__(self, other: Bill) -> Bill:
        return Bill(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def bill(requests: Iterable[Sent], card: Card) -> Bill:
    """Bill requests by a card.

    The cache keeps what a request leaves there for its life behind the start of the request. Within that time, the next
    request reads its unchanged beginning and writes the rest; later it writes everything. A prefix below the card's least
    is never cached. A tier of the card holds for the whole request.
    """
    found = Bill()
    before: Sent | None = None
    for each in requests:
        is_warm = before is None or not _is_gone(before, each, card)
        found += charge(each, each.unchanged if is_warm else 0, card)
        before = each
    return found


def charge(sent: Sent, served: int, card: Card) -> Bill:
    """Bill one request. The cache serves `served` of its tokens."""
    fresh = min(sent.fresh, sent.tokens)
    cacheable = sent.tokens - fresh
    if cacheable < card.min_tokens:
        fresh, cacheable = sent.tokens, 0
    read = min(served, cacheable) if served >= card.min_tokens else 0
    return price_tokens(read, cacheable - read, fresh, sent.output, card)


def price_tokens(read: int, written: int, fresh: int, output: int, card: Card) -> Bill:
    """Bill the tokens of one request."""
    rates = card.rates(read + written + fresh)
    costs = (read * rates.read, written * rates.write, fresh * rates.fresh, output * rates.output)
    return Bill(read, written, fresh, output, *costs)


def _is_gone(before: Sent, now: Sent, card: Card) -> bool:
    life_s = card.life_s if before.life_s is None else before.life_s
    if before.at_s is None or now.at_s is None or life_s is None:
        return False
    return now.at_s - before.at_s > life_s
