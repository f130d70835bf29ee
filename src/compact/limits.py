"""The numbers of a call, and the refusal of a request whose fixed part leaves nothing to work in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compact.errors import InsufficientBudget
from compact.triggers import Thresholds


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

    def at_most(self, tokens: int) -> Limits:
        """The same limits for a request that may take so many tokens and no more."""
        thresholds = self.thresholds
        above = self.summarize_above
        return replace(
            self,
            budget=min(self.budget, tokens),
            goal=min(self.goal, tokens),
            summarize_above=None if above is None else min(above, tokens),
            least_room=0,
            thresholds=replace(
                thresholds,
                budget=min(thresholds.budget, tokens),
                window_share=min(thresholds.window_share, tokens),
            ),
        )


def no_room(
    shares: Mapping[str, int], *, budget: int, window: int, room: int, least: int
) -> InsufficientBudget:
    """The error for a fixed part that fits its budget and leaves too little of it."""
    fixed = sum(shares.values())
    table = ", ".join(f"{what} {tokens:,}" for what, tokens in shares.items() if tokens)
    return InsufficientBudget(
        f"the fixed part of the request takes {fixed:,} of {budget:,} tokens ({table}; window {window:,}): "
        f"{room:,} tokens are left to work in, the least is {least:,}",
        hint="Shorten the system prompt or the tools, protect less, use a model with a larger context window, or lower "
        "guard.min_room_share",
        needed=fixed + least,
        budget=budget,
        shares=dict(shares),
    )
