"""Whether a session gets a pass before it is due: on a cold cache, if that pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from compact.engine.economy import Weighed, Weighing
from compact.engine.effects import Asking, LastCalled
from compact.errors import ArchiveError
from compact.events import CacheVerdict, Economics
from compact.runtime.economy.cache_state import CacheState
from compact.runtime.economy.worth import Worth, worth_it
from compact.tokens.prices import Card, Rates

MARGIN_S = 60.0
"""Seconds behind the life of a cache after which it is known to be cold. Providers keep entries a little longer."""
_SHARE = 0.5
"""What an early pass keeps of what stands."""
_DIGITS = 6


def early_target(tokens: int, min_tokens: int) -> int:
    """What an early pass goes down to: half of what stands, never below `min_tokens`."""
    return max(min_tokens, int(tokens * _SHARE))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEconomy:
    """Weighs the passes of one session at the prices of one model."""

    card: Card
    cache: CacheState
    least: int
    """No early pass is made in a smaller session, and none goes below this."""
    summary_tokens: int
    """About what a pass writes in place of what goes."""
    asks_model: bool
    """Whether a model writes it."""
    warn_of_clock: Callable[[float], None]
    """Called with the seconds by which the session's last call lies ahead of the clock."""

    def weigh(self, weighing: Weighing) -> Asking[Weighed]:
        """See `Economy`."""
        cache = yield from self._state(weighing)
        if weighing.is_due:
            return Weighed(self._report(cache, self._worth(weighing, weighing.target, cache)))
        target = early_target(weighing.tokens, self.least)
        worth = self._worth(weighing, target, cache)
        report = self._report(cache, worth)
        if cache != "cold" or not worth.worth:
            return Weighed(report)
        self.cache.use_up()
        return Weighed(report, target)

    def _state(self, weighing: Weighing) -> Asking[CacheVerdict]:
        cache, now = self.cache, weighing.called_at
        if cache.holds_nothing:
            return "cold"
        if self.card.life_s is None:
            return "unknown"
        marked_s = 0.0
        if cache.called_at is not None:
            if not cache.is_past(now, cache.called_at, MARGIN_S):
                return self._known(now, cache.called_at)
            marked_s = weighing.marked_life_s()
            if not cache.is_past(now, cache.called_at, MARGIN_S, marked_s):
                return "warm"
        # Another worker, or this one before it was restarted, may have called since.
        try:
            logged = yield LastCalled()
        except ArchiveError:
            return "unknown"
        called = max((each for each in (logged, cache.called_at) if each is not None), default=None)
        if called is None:
            return "unknown"  # the session's first call
        is_cold = cache.is_past(now, called, MARGIN_S, marked_s or weighing.marked_life_s())
        return "cold" if is_cold else self._known(now, called)

    def _known(self, now: datetime, called_at: datetime) -> CacheVerdict:
        ahead_s = (called_at - now).total_seconds()
        if ahead_s <= MARGIN_S:
            return "warm"
        self.warn_of_clock(ahead_s)
        return "unknown"

    def _worth(self, weighing: Weighing, target: int, cache: CacheVerdict) -> Worth:
        before, after = weighing.tokens, min(target, weighing.tokens)
        rates, rates_after = self._rates(before), self._rates(after)
        fixed = min(weighing.fixed, after)
        written = min(self.summary_tokens, after - fixed)
        goes = before - after + written
        asks = self.asks_model and weighing.is_due  # an early pass waits for no model, so it asks none
        return worth_it(
            P=fixed,
            H=goes,
            I=after - fixed - written,
            S=written,
            C=goes * rates.fresh + written * rates.output if asks else 0.0,
            r=rates.read,
            w=rates.write,
            cold=cache == "cold",
            r_after=rates_after.read,
            w_after=rates_after.write,
        )

    def _rates(self, tokens: int) -> Rates:
        rates = self.card.rates(tokens)
        if tokens >= self.card.min_tokens:
            return rates
        return Rates(rates.fresh, rates.fresh, rates.fresh, rates.output)  # too short for the cache

    @staticmethod
    def _report(cache: CacheVerdict, worth: Worth) -> Economics:
        calls = worth.calls_to_repay
        return Economics(
            cache=cache,
            worth=worth.worth,
            calls_to_repay=None if calls is None else round(calls, 1),
            cost=round(worth.cost, _DIGITS),
        )
