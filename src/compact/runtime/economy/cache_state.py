"""What a provider's prompt cache probably holds of a session: from observed usage, else from the time since its last call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

_LEAST_EXPECTED = 1_024
"""Tokens. A reading of a shorter prefix says nothing: caches do not take it."""
_HOUR_S = 3600.0
_MISSES = 2
"""Readings in a row that have to be cold. One alone is noise: another server answered, or the host changed its prompt."""


@dataclass(slots=True)
class CacheState:
    """The cache of one session. Only the run that holds its lane, and the observer of its replies, change it."""

    called_at: datetime | None = None
    """When the session was last called, as far as this process knows."""
    life_s: float = 0.0
    """How long the cache keeps the session: as the model's prices say, or longer if usage has proved that, by a prefix that
    was served after so long, or was written for so long."""
    misses: int = 0
    """How often in a row the cache did not serve a prefix within its life."""
    _expected: int = 0
    """The prefix in tokens that the last request repeated; 0: there is nothing to read from its usage."""
    _gap_s: float | None = None
    """The time between the last two calls."""
    _within_life: bool = False
    _is_used: bool = False
    """Whether the current run of misses has had its pass."""

    def note_call(self, at: datetime, repeated: int) -> None:
        """Take that a request goes out now whose first `repeated` tokens are those of the one before."""
        before, self.called_at = self.called_at, at
        self._gap_s = None if before is None else (at - before).total_seconds()
        self._within_life = self._gap_s is not None and 0 <= self._gap_s <= self.life_s
        self._expected = repeated if before is not None and repeated >= _LEAST_EXPECTED else 0

    def observe(self, read: int | None, *, for_an_hour: bool = False) -> None:
        """Take how many tokens of the last request the cache served; None: its usage does not say.

        With `for_an_hour`, the rest was put into the cache for so long.
        """
        if for_an_hour:
            self.life_s = max(self.life_s, _HOUR_S)
        if read is None or not self._expected:
            return
        expected, self._expected = self._expected, 0  # a stream reports its usage more than once
        if read * 2 >= expected:
            self.misses, self._is_used = 0, False
            self.life_s = max(self.life_s, self._gap_s or 0.0)
        elif self._within_life:
            self.misses += 1

    @property
    def holds_nothing(self) -> bool:
        """Whether usage shows, more than once in a row, that the cache serves nothing, and no pass was made for that yet."""
        return self.misses >= _MISSES and not self._is_used

    def use_up(self) -> None:
        """Take that a pass is made now. The next one needs another cold moment."""
        self._is_used = True

    def is_past(
        self, now: datetime, called_at: datetime, margin_s: float, marked_life_s: float = 0.0
    ) -> bool:
        """Whether everything that a call at that time left in the cache is gone."""
        return now - called_at > timedelta(seconds=max(self.life_s, marked_life_s) + margin_s)
