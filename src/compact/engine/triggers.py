"""Act now? Pure: numbers in, a decision out."""

from __future__ import annotations

from dataclasses import dataclass

from compact.events import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The numbers that a session is held against. Each acts when it is reached; None never does."""

    window_share: int
    """Tokens at `trigger_pct` of the window."""
    budget: int
    """Tokens that a request may take at most."""
    tokens: int | None = None
    messages: int | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to act, and which setting said so."""

    triggered: bool
    reason: Reason


def decide(thresholds: Thresholds, *, tokens: int, messages: int, turns: int) -> Decision:
    """Whether any threshold is reached, the most urgent named first.

    A request that exceeds the budget is always acted upon, whatever the percentage says: no threshold lies above it.
    """
    if tokens > thresholds.budget:
        return Decision(True, "budget")
    if tokens >= thresholds.window_share:
        return Decision(True, "trigger_pct")
    if thresholds.tokens is not None and tokens >= thresholds.tokens:
        return Decision(True, "token_threshold")
    if thresholds.messages is not None and messages >= thresholds.messages:
        return Decision(True, "message_threshold")
    if thresholds.turns is not None and turns >= thresholds.turns:
        return Decision(True, "turn_threshold")
    return Decision(False, "below_threshold")
