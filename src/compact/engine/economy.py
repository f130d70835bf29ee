"""What the line asks before a pass: does it pay? The answer comes from outside, because it needs prices and a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from compact.engine.effects import Asking
from compact.events import Economics


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
    """What the pass costs, and whether it is made before it is due."""

    economics: Economics
    early_target: int | None = None
    """What an early pass goes down to; None: none is made."""


class Economy(Protocol):
    """Weighs the passes of one session."""

    @property
    def least(self) -> int:
        """Smaller requests are not looked at."""

    def note_call(self, at: datetime, repeated: int) -> None:
        """Take that a request goes out now whose first `repeated` tokens are those of the one before."""

    def weigh(self, weighing: Weighing) -> Asking[Weighed]:
        """Weigh a pass. May ask when the session was last called."""
