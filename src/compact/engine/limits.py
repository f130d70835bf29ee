"""The numbers of a call, and the refusal of a request whose fixed part leaves nothing to work in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.engine.triggers import Thresholds
from compact.errors import InsufficientBudget
from compact.messages.dialects import Dialect
from compact.tokens import Estimate, Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The numbers of a call, in the model's own tokens."""

    window: int
    budget: int
    goal: int
    summarize_above: int | None
    recent_tokens: int | None
    thresholds: Thresholds
    regrow: int
    """How much a session must have grown before a pass is tried again that did not help."""
    least_room: int = 0
    """What system, developer, tools and protected messages must leave of the budget."""

    def fitting(self, tokens: int) -> Limits:
        """The limits for a request that may take so many tokens and no more, whatever is kept free otherwise."""
        thresholds = self.thresholds
        above = self.summarize_above
        return replace(
            self,
            budget=tokens,
            goal=min(self.goal, tokens),
            summarize_above=None if above is None else min(above, tokens),
            least_room=0,
            thresholds=replace(
                thresholds,
                budget=tokens,
                window_share=min(thresholds.window_share, tokens),
            ),
        )


def fixed_shares(
    estimate: Estimate, items: Sequence[Any], dialect: Dialect, meter: Meter, never_prune: Collection[str]
) -> dict[str, int]:
    """What of a request can never leave it, in the model's own tokens, by what it is."""
    protected = 0
    for item in items:
        message = dialect.read(item)
        if message.role in ("system", "developer"):
            continue  # they have shares of their own
        if message.protected or message.role in never_prune:
            protected += meter.count_item(item, dialect)
    return {
        "system": estimate.system,
        "developer": estimate.developer,
        "tools schema": estimate.tools_schema,
        "protected messages": meter.scale(protected),
    }


def no_room(shares: Mapping[str, int], limits: Limits) -> InsufficientBudget:
    """The error for a fixed part that fits its budget and leaves too little of it."""
    fixed = sum(shares.values())
    table = ", ".join(f"{what} {tokens:,}" for what, tokens in shares.items() if tokens)
    return InsufficientBudget(
        f"the fixed part of the request takes {fixed:,} of {limits.budget:,} tokens ({table}; window {limits.window:,}): "
        f"{limits.budget - fixed:,} tokens are left to work in, the least is {limits.least_room:,}",
        hint="Shorten the system prompt or the tools, protect less, use a model with a larger context window, or lower "
        "guard.min_room_share",
        needed=fixed + limits.least_room,
        budget=limits.budget,
        shares=dict(shares),
    )
