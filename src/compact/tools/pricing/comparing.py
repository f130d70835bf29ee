"""Sessions under every policy and card: sums, the policy that is best for them, and the sessions that a policy makes dearer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from compact.tokens.prices import Card
from compact.tools.pricing.billing import Bill
from compact.tools.pricing.policies import AUTO, POLICIES, TRIGGER_85, UNCOMPACTED, Outcome, play
from compact.tools.pricing.timelines import Timeline

CHOICES = (AUTO, TRIGGER_85)
"""The policies between which `best_policy` chooses. Others forget more, and money alone does not say whether that is worth it."""
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class Priced:
    """One session under each policy, by card."""

    id: str
    requests: int
    is_timed: bool
    """Whether the recording says when its requests were sent. If not, every cache stays warm."""
    cards: Mapping[str, Mapping[str, Outcome]]


@dataclass(frozen=True, slots=True)
class Dearer:
    """A session that a policy makes dearer than another one does."""

    id: str
    card: str
    cost: float
    other: str
    """The policy that is cheaper."""
    other_cost: float
    forced: int
    """Passes that a threshold forced."""

    @property
    def share(self) -> float:
        """By what share it is dearer."""
        return self.cost / self.other_cost - 1 if self.other_cost else 0.0


def price(timelines: Iterable[Timeline], cards: Sequence[Card], window: int) -> list[Priced]:
    """Price sessions under every policy, by every card."""
    return [
        Priced(
            timeline.id,
            len(timeline.requests),
            any(each.start_s is not None for each in timeline.requests),
            {
                card.name: {name: play(timeline, policy, card, window) for name, policy in POLICIES.items()}
                for card in cards
            },
        )
        for timeline in timelines
    ]


def total(sessions: Sequence[Priced], card: str, policy: str) -> Outcome:
    """The sum of all sessions under a policy."""
    found = [each.cards[card][policy] for each in sessions]
    return Outcome(
        reduce(add, (each.bill for each in found), Bill()),
        sum(each.passes for each in found),
        sum(each.forced for each in found),
        sum(each.removed for each in found),
    )


def dearer(sessions: Sequence[Priced], card: str, other: str = UNCOMPACTED.name) -> list[Dearer]:
    """The sessions that `auto` makes dearer than another policy does, the worst first."""
    found = []
    for session in sessions:
        own, cheaper = session.cards[card][AUTO.name], session.cards[card][other]
        if own.bill.cost > cheaper.bill.cost * (1 + 1e-9):
            found.append(Dearer(session.id, card, own.bill.cost, other, cheaper.bill.cost, own.forced))
    return sorted(found, key=lambda each: (-each.share, each.id))


def best_policy(sessions: Sequence[Priced], card: str) -> str:
    """The cheapest of `CHOICES`. Of two that cost the same, the default."""
    costs = {policy.name: total(sessions, card, policy.name).bill.cost for policy in CHOICES}
    least = min(costs.values())
    return next(name for name, cost in costs.items() if cost <= least + _CENT)


def settings_of(policy: str, window: int) -> str:
    """The configuration of a policy, to paste into compact.yaml."""
    lines = [f"max_context_tokens: {window}", "policy:"]
    settings = POLICIES[policy].settings or {}
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in settings.items())])


def as_data(sessions: Sequence[Priced], cards: Sequence[Card], window: int) -> dict[str, Any]:
    """The report for programs."""
    return {
        "window": window,
        "cards": {
            card.name: {name: _numbers(total(sessions, card.name, name)) for name in POLICIES}
            for card in cards
        },
        "sessions": [
            {
                "id": session.id,
                "cards": {
                    card: {name: round(each.bill.cost, 6) for name, each in outcomes.items()}
                    for card, outcomes in session.cards.items()
                },
            }
            for session in sessions
        ],
        "best": {card.name: best_policy(sessions, card.name) for card in cards},
        "dearer": [
            {
                "id": each.id,
                "card": each.card,
                "cost": round(each.cost, 6),
                "than": each.other,
                "other_cost": round(each.other_cost, 6),
                "share": round(each.share, 6),
                "forced": each.forced,
            }
            for card in cards
            for other in (UNCOMPACTED.name, TRIGGER_85.name)
            for each in dearer(sessions, card.name, other)
        ],
    }


def _numbers(outcome: Outcome) -> dict[str, float]:
    found = outcome.bill
    return {
        "cost": round(found.cost, 6),
        "passes": outcome.passes,
        "forced": outcome.forced,
        "cache_read": found.cache_read,
        "cache_write": found.cache_write,
        "fresh": found.fresh,
        "output": found.output,
    }
