"""The settings of a call as numbers, and the decisions that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from compact.errors import InsufficientBudget
from compact.events import PolicyInForce, Reason
from compact.messages.dialects import Dialect
from compact.tokens import Estimate, Meter
from compact.tokens.meter import REPLY_TOKENS

Layout: TypeAlias = Literal["layered", "selective"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a call may take and what a pass must keep.

    Tokens are the model's own. A pass works with `for_messages`, where they are raw tokens of messages alone.
    """

    window: int
    budget: int
    """The most that a request may take."""
    trigger: int
    """A pass is due at this size."""
    target: int
    """A pass goes down to this size."""
    summarize_above: int | None
    """Nothing is summarized up to this size. None: summarize as soon as the reversible stages are not enough."""
    recent_tokens: int | None
    """Tokens for the recent part. None: turns and pairs decide what is recent."""
    has_thresholds: bool
    """Whether any of the next three is set."""
    token_threshold: int | None
    message_threshold: int | None
    turn_threshold: int | None
    regrow: int
    """How much a session must grow before a pass that did not help is tried again."""
    least_room: int
    """What system, developer, tools and protected messages must leave of the budget."""
    keep_turns: int
    keep_pairs: int
    keep_up_to: int
    """Turns and pairs are kept whole up to this size, then fewer of them."""
    calls_between: int
    """A pass that the budget forces after fewer replies than this may fold more, so that the next one comes later."""
    never_prune: frozenset[str]
    layout: Layout
    retention_window: int
    max_turns: int | None
    strategy: str
    summary_tokens: int
    ledger_tokens: int
    """The most that the ledger may take, beside a summary."""
    ineffective_passes: int
    in_force: PolicyInForce
    fixed: int = 0
    """What tools and a system prompt outside the list take; known once a pass begins."""
    request_budget: int = 0
    """The budget of the whole request in the model's own tokens, for what people are told."""
    fold_all: bool = False
    """Fold everything that may go, not only what must."""
    background: int | None = None
    """A pass that asks a model may begin in the background at this size. None: never."""
    aside: int = 0
    """What was taken off the target for the ledger."""

    def fit(self, tokens: int) -> Rules:
        """The rules for a request that may take `tokens` and no more, whatever is kept free otherwise."""
        above = self.summarize_above
        return replace(
            self,
            budget=tokens,
            trigger=min(self.trigger, tokens),
            target=min(self.target, tokens),
            keep_up_to=min(self.keep_up_to, tokens),
            summarize_above=None if above is None else min(above, tokens),
            least_room=0,
        )

    def without_budget(self) -> Rules:
        """The rules of a call that only climbs the reversible stages: whatever is left over is fine."""
        return replace(self, budget=_UNBOUNDED, keep_up_to=_UNBOUNDED, summarize_above=_UNBOUNDED)

    def hurry(self) -> Rules:
        """The rules of a pass that comes soon after the last one: more may be folded. Recent turns and pairs still hold."""
        up_to = self.target if self.layout == "selective" else self.keep_up_to
        return replace(self, keep_up_to=up_to, summarize_above=None)

    def set_aside(self, tokens: int, in_budget: int) -> Rules:
        """The rules of a stage that must leave room: `tokens` below the target, `in_budget` below the budget."""
        return replace(
            self,
            budget=max(0, self.budget - in_budget),
            target=max(0, self.target - tokens),
            keep_up_to=max(0, self.keep_up_to - tokens),
            aside=self.aside + min(tokens, self.target),
        )

    def for_messages(self, fixed: int, factor: float, *, fold_all: bool) -> Rules:
        """The rules of a pass, in raw tokens of messages.

        `fixed` is what is sent beside the messages, `factor` the meter's margin.
        """
        # The shares of an estimate are rounded up one by one, so with a margin three of them may cost 2 tokens more.
        rounding = 0 if factor == 1.0 else 2

        def raw(tokens: int) -> int:
            return max(0, int((tokens - rounding) / factor) - REPLY_TOKENS)

        above, recent = self.summarize_above, self.recent_tokens
        return replace(
            self,
            budget=raw(self.budget - fixed),
            target=raw(min(self.target, self.budget) - fixed),
            keep_up_to=raw(min(self.keep_up_to, self.budget) - fixed),
            summarize_above=0 if above is None else raw(above - fixed) - 1,  # reaching it is enough
            recent_tokens=None if recent is None else raw(recent),
            ledger_tokens=int(self.ledger_tokens / factor),
            fixed=fixed,
            request_budget=self.budget,
            fold_all=fold_all,
        )


_UNBOUNDED = 10**12


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to act, and which setting decided."""

    triggered: bool
    reason: Reason
    due: Reason | None = None
    """What a pass that begins in the background is made for."""

    @property
    def is_by_count(self) -> bool:
        """Whether the number of messages or turns decided, not their size."""
        return (self.due or self.reason) in ("messages", "turns")


def decide(rules: Rules, *, tokens: int, messages: int, turns: int) -> Decision:
    """Return whether any threshold is reached. The most urgent one gives the reason.

    A request over the budget is always acted upon: no threshold lies above it.
    """
    if tokens > rules.budget:
        return Decision(True, "budget")
    if tokens >= rules.trigger:
        return Decision(True, "trigger")
    if rules.token_threshold is not None and tokens >= rules.token_threshold:
        return Decision(True, "tokens")
    if rules.message_threshold is not None and messages >= rules.message_threshold:
        return Decision(True, "messages")
    if rules.turn_threshold is not None and turns >= rules.turn_threshold:
        return Decision(True, "turns")
    return Decision(False, "below")


def measure_fixed(
    estimate: Estimate, items: Sequence[Any], dialect: Dialect, meter: Meter, never_prune: Collection[str]
) -> dict[str, int]:
    """Return what can never leave a request, in the model's own tokens, by what it is."""
    protected = 0
    for item in items:
        message = dialect.read(item)
        if message.role in ("system", "developer"):
            continue  # they have their own shares
        if message.protected or message.role in never_prune:
            protected += meter.count_item(item, dialect)
    return {
        "system": estimate.system,
        "developer": estimate.developer,
        "tools schema": estimate.tools_schema,
        "protected messages": meter.scale(protected),
    }


def no_room(shares: Mapping[str, int], rules: Rules) -> InsufficientBudget:
    """The error for a fixed part that fits the budget and leaves too little of it."""
    fixed = sum(shares.values())
    table = ", ".join(f"{what} {tokens:,}" for what, tokens in shares.items() if tokens)
    return InsufficientBudget(
        f"the fixed part of the request takes {fixed:,} of {rules.budget:,} tokens ({table}; window {rules.window:,}): "
        f"{rules.budget - fixed:,} tokens are left to work in, the least is {rules.least_room:,}",
        hint="Shorten the system prompt or the tools, protect less, use a model with a larger context window, or lower "
        "guard.min_room_share",
        needed=fixed + rules.least_room,
        budget=rules.budget,
        shares=dict(shares),
    )
