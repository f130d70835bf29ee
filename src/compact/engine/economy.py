"""What the line asks before a pass: does it pay? The answer comes from outside, because it needs prices and a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from compact.engine.effects import Asking
from compact.engine.limits import Decision, Rules
from compact.events import Economics
from compact.tokens import Estimate

EARLY = Decision(True, "cold_cache")
"""The decision for a pass that is not due and pays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """A request before a pass, in the model's own tokens."""

    called_at: datetime
    tokens: int
    fixed: int
    """What a pass leaves as it is: system prompt, developer messages and tools."""
    target: int
    """What a pass that is due goes down to."""
    is_due: bool
    """Whether a threshold is reached. If not, only a pass on a cold cache comes into question."""
    marked_life_s: Callable[[], float]
    """The longest life that the host's own cache marks ask for; 0: they ask for none."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a pass costs, and whether it is made before it is due."""

    economics: Economics | None = None
    """None: nobody weighed it."""
    early_target: int | None = None
    """What an early pass goes down to; None: none is made."""


NOTHING = Weighed()


class Economy(Protocol):
    """Weighs the passes of one session."""

    @property
    def least(self) -> int:
        """Smaller requests are not looked at."""

    def weigh(self, weighing: Weighing) -> Asking[Weighed]:
        """Weigh a pass. May ask when the session was last called."""


def weigh(
    economy: Economy,
    called_at: datetime | None,
    estimate: Estimate,
    rules: Rules,
    decision: Decision,
    marked_life_s: Callable[[], float],
) -> Asking[Weighed]:
    """Weigh the pass that a call may get."""
    if called_at is None or decision.reason == "ineffective":
        return NOTHING  # what did not help a moment ago does not pay either
    weighing = Weighing(
        called_at=called_at,
        tokens=estimate.total,
        fixed=estimate.system + estimate.developer + estimate.tools_schema,
        target=min(rules.target, rules.budget),
        is_due=decision.triggered,
        marked_life_s=marked_life_s,
    )
    return (yield from economy.weigh(weighing))
