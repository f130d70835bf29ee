"""How our count of a request becomes its provider's: the last count that was observed, plus ours of what came since."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from compact.tokens import Estimate

GROWTH_MARGIN = 1.1
"""What came since is rounded up by this much for a model without a public tokenizer: single messages differ more from each
other than whole requests do."""
GROWTH_TOKENS = 60
"""Added for such a model if anything came since: what it puts around messages is not public either."""

_ROUNDING = 2
"""The shares of an estimate are rounded up one by one, before they are corrected."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What turns tokens by our count into the provider's."""

    rate: float = 1.0
    """How many tokens the provider counts for each of ours."""
    unseen: int = 0
    """What the provider counts beside what we see, such as a system prompt that only the host knows."""

    def scale(self, ours: int) -> int:
        """Convert a part of a request, rounded up."""
        return ours if self.rate == 1.0 else _round_up(ours * self.rate)

    def scale_fixed(self, ours: int) -> int:
        """Convert what stands beside the messages: with what is unseen, and with what rounding the rest adds at most."""
        return ours if self == UNCORRECTED else self.scale(ours + _ROUNDING) + self.unseen

    def correct(self, estimate: Estimate) -> Estimate:
        """Convert a whole request. What is unseen is among the messages."""
        if self == UNCORRECTED:
            return estimate
        total = self.scale(estimate.total) + self.unseen
        system, developer, tools = (
            int(share * self.rate) for share in (estimate.system, estimate.developer, estimate.tools_schema)
        )
        return replace(
            estimate,
            total=total,
            system=system,
            developer=developer,
            tools_schema=tools,
            messages=total - system - developer - tools,
            usage_pct=total / estimate.max_tokens,
        )


UNCORRECTED = Correction()


@dataclass(frozen=True, slots=True)
class Observed:
    """The provider's count of one request, and ours of the same one."""

    step: int
    """The session's newest step when it was sent."""
    counted: int
    ours: int
    refused: bool = False
    """It was refused as too long. No reply may ever tell more, so all that is sent is taken to count as much as it did."""


def correction_of(
    ours: int, step: int, observed: Observed | None, *, rate: float = 1.0, is_exact: bool = True
) -> Correction:
    """The correction for a request of `ours` tokens by our count, behind `step`.

    In the step in which a reply was observed, its count is the basis, and only what changed since is ours: growth is rounded up
    unless our counts are exact, and a smaller request is rounded up too. Behind a later step that count says nothing of the request
    any more, but what it told of the session stands: what the provider counted beyond our count stays, and a lower count
    lowers the rate.
    """
    if observed is None:
        return Correction(rate)
    if observed.refused:
        return Correction(observed.counted / observed.ours)
    known = _round_up(observed.ours * rate)
    if step != observed.step:
        if observed.counted >= known:
            return Correction(rate, observed.counted - known)
        return Correction(observed.counted / observed.ours)
    since = (ours - observed.ours) * rate
    if since and not is_exact:
        since = since * GROWTH_MARGIN + GROWTH_TOKENS if since > 0 else since / GROWTH_MARGIN
    total = observed.counted + _round_up(since)
    mine = _round_up(ours * rate)
    return Correction(rate, total - mine) if total >= mine else Correction(max(total, 0) / max(ours, 1))


def _round_up(tokens: float) -> int:
    # Floating point must not turn 117 into 117.00000000000001.
    return math.ceil(round(tokens, 6))
