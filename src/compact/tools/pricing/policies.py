"""What a policy would have sent in a recorded session: the same growth at the same times, with its own passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from compact.config import CompactConfig, EconomyConfig
from compact.engine.economy import Weighed, Weighing
from compact.engine.effects import drive
from compact.runtime.economy import CacheState, SessionEconomy
from compact.runtime.model_rules import rules_for
from compact.tokens.prices import Card
from compact.tools.pricing.billing import Bill, Sent, bill, price_tokens
from compact.tools.pricing.timelines import Timeline

KEPT = 0.99
"""The share of its target that the ladder fills, measured (docs/ECONOMY.md)."""
_DEFAULTS: Mapping[str, Any] = MappingProxyType({"trigger_pct": 0.85, "target_pct": 0.5, "economy": "off"})
_ECONOMY = EconomyConfig()
"""As compact has them by default, whatever the environment of the command says."""
_START = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PricePolicy:
    """A named policy: what happened, or settings."""

    name: str
    says: str
    settings: Mapping[str, Any] | None = None
    """What its user writes under `policy` in the configuration; None: no passes."""


RECORDED = PricePolicy("recorded", "the bill as the provider reported it")
REPLAYED = PricePolicy("replayed", "the same requests, with the cache as the simulator plays it")
UNCOMPACTED = PricePolicy("uncompacted", "no passes, however large the session grows")
TRIGGER_85 = PricePolicy("trigger_85", "a pass at 85% of the window", {"economy": "off"})
AUTO = PricePolicy("auto", "the same, and on a cold cache where that pays", {"economy": "auto"})
TRIGGER_40 = PricePolicy(
    "trigger_40",
    "a pass at 40% of the window; remembers less",
    {"economy": "off", "trigger_pct": 0.4, "target_pct": 0.2},
)
POLICIES: Mapping[str, PricePolicy] = MappingProxyType(
    {each.name: each for each in (RECORDED, REPLAYED, UNCOMPACTED, TRIGGER_85, AUTO, TRIGGER_40)}
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A session under one policy."""

    bill: Bill
    passes: int = 0
    forced: int = 0
    """Those of them that a threshold forced; the others were made because they pay."""
    removed: int = 0
    """Tokens that passes took out of the context."""


def play(timeline: Timeline, policy: PricePolicy, card: Card, window: int) -> Outcome:
    """Play a recorded session under a policy and bill it."""
    if policy is RECORDED and all(each.usage is not None for each in timeline.requests):
        return Outcome(_recorded(timeline, card), len(timeline.shrunk))
    if policy is RECORDED or policy is REPLAYED:
        return Outcome(bill(_as_it_was(timeline), card), len(timeline.shrunk))
    player = _Player(timeline, card)
    if policy.settings is not None:
        config = CompactConfig(
            max_context_tokens=window, policy={**_DEFAULTS, **policy.settings}, economy=_ECONOMY
        )
        rules = rules_for(config, window)
        player.trigger, player.target, player.limit = rules.trigger, rules.target, rules.budget
        if config.policy.economy == "auto":
            player.economy = SessionEconomy(
                card=card,
                cache=CacheState(life_s=card.life_s or 0.0),
                least=config.economy.min_tokens,
                summary_tokens=rules.summary_tokens + rules.ledger_tokens,
                asks_model=False,
                warn_of_clock=lambda _: None,
            )
    return player.play()


def _recorded(timeline: Timeline, card: Card) -> Bill:
    found = Bill()
    for each in timeline.requests:
        usage = each.usage
        assert usage is not None
        found += price_tokens(usage.cache_read, usage.cache_write, usage.fresh, each.output, card)
    return found


def _as_it_was(timeline: Timeline) -> list[Sent]:
    """The requests as they were sent. What the cache served is left to the simulator, but for the first and for losses."""
    found: list[Sent] = []
    before = 0
    for n, each in enumerate(timeline.requests):
        unchanged = timeline.head if n in timeline.shrunk or n in timeline.lost else before
        usage = each.usage
        found.append(
            Sent(
                tokens=each.tokens,
                unchanged=_found_by_first(timeline) if n == 0 else min(unchanged, each.tokens),
                output=each.output,
                fresh=0 if usage is None else usage.fresh,
                at_s=each.start_s,
                life_s=None if usage is None else usage.life_s,
            )
        )
        before = each.tokens
    return found


def _found_by_first(timeline: Timeline) -> int:
    """What the first request found in the cache: left there by an earlier session."""
    usage = timeline.requests[0].usage
    return 0 if usage is None else usage.cache_read


@dataclass(slots=True)
class _Player:
    """Plays one session: its size grows as recorded, and a pass takes it down to what the ladder keeps.

    A host's own compaction in the recording adds nothing and takes nothing. No pass is made before the first request, and
    none goes below the head. The head is what a pass leaves unchanged.
    """

    timeline: Timeline
    card: Card
    trigger: int | None = None
    target: int = 0
    limit: int = 0
    economy: SessionEconomy | None = None
    passes: int = field(default=0, init=False)
    forced: int = field(default=0, init=False)
    removed: int = field(default=0, init=False)

    def play(self) -> Outcome:
        sent: list[Sent] = []
        size = recorded = 0
        for n, each in enumerate(self.timeline.requests):
            grown = size + max(0, each.tokens - recorded) if n else each.tokens
            size, recorded = self._compact(grown, each.start_s) if n else grown, each.tokens
            is_changed = size < grown or n in self.timeline.lost
            before = sent[-1].tokens if sent else _found_by_first(self.timeline)
            unchanged = min(before, self.timeline.head, size) if is_changed else min(before, size)
            usage = each.usage
            fresh = 0 if usage is None else usage.fresh
            sent.append(
                Sent(tokens=size, unchanged=unchanged, output=each.output, fresh=fresh, at_s=each.start_s)
            )
            if self.economy is not None and each.start_s is not None:
                self.economy.cache.note_call(_time(each.start_s), unchanged)
        return Outcome(bill(sent, self.card), self.passes, self.forced, self.removed)

    def _compact(self, size: int, at_s: float | None) -> int:
        """The size that is sent."""
        if self.trigger is None:
            return size
        if size >= self.trigger:
            return self._pass(size, self.target, is_forced=True)
        early = self._weigh(size, at_s)
        return size if early is None else self._pass(size, early, is_forced=False)

    def _weigh(self, size: int, at_s: float | None) -> int | None:
        economy = self.economy
        if economy is None or at_s is None or size < economy.least:
            return None
        weighing = Weighing(
            called_at=_time(at_s),
            tokens=size,
            fixed=self.timeline.head,
            target=self.target,
            is_due=False,
            marked_life_s=lambda: 0.0,
        )
        called_at = economy.cache.called_at
        weighed: Weighed = drive(economy.weigh(weighing), lambda _: called_at)
        return weighed.early_target

    def _pass(self, size: int, target: int, *, is_forced: bool) -> int:
        after = max(self.timeline.head, round(target * KEPT))
        if after >= size:
            return size
        self.passes += 1
        self.forced += is_forced
        self.removed += size - after
        return after


def _time(seconds: float) -> datetime:
    return _START + timedelta(seconds=seconds)
