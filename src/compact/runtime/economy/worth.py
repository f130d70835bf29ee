"""The arithmetic of a pass, in one pure function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Worth:
    """What a pass costs and what it saves, in the unit of the prices."""

    worth: bool
    """Whether it has paid for itself after the calls that are expected to follow."""
    calls_to_repay: float | None
    """After how many later calls it has; 0.0: in this one. None: never."""
    cost: float
    """What it adds to the bill of this call. Negative: it saves that much at once."""


def worth_it(
    *,
    P: float,  # noqa: N803  (the letters of the formula)
    H: float,  # noqa: N803
    I: float,  # noqa: E741, N803
    S: float,  # noqa: N803
    C: float = 0.0,  # noqa: N803
    r: float,
    w: float,
    cold: bool,
    calls: float = 0.0,
    r_after: float | None = None,
    w_after: float | None = None,
) -> Worth:
    """Weigh a pass: what it costs now against what every later call saves.

    The request is P + H + I tokens long and would be P + S + I:

        P  the prefix that the pass leaves as it is, such as the system prompt and the tools
        H  what goes
        I  what is kept behind it
        S  what is written in its place
        C  what writing S costs, in the unit of the prices; 0 without a model
        r  the price of a token that the cache serves
        w  the price of a token that is put into the cache

    Warm, the pass costs `w(I + S) - r(H + I) + C` in this call, because what stands behind the first change is written
    again. Each later call saves `r(H - S)`. So it repays after

        (w(I + S) - r(H + I) + C) / (r(H - S))    calls.

    Cold, everything is written in this call with or without the pass, so it costs `C - w(H - S)`: it repays at once if
    `C < w(H - S)`.

    A provider may charge less for a smaller request. `r_after` and `w_after` are the prices at P + S + I tokens, and the
    savings of `r(P + H + I) - r_after(P + S + I)` for each later call include that. `calls` says how many calls are
    expected to follow; by default only what repays at once is worth it.
    """
    r_after = r if r_after is None else r_after
    w_after = w if w_after is None else w_after
    if cold:
        cost = w_after * (P + S + I) + C - w * (P + H + I)
    else:
        cost = r_after * P + w_after * (S + I) + C - r * (P + H + I)
    saves = r * (P + H + I) - r_after * (P + S + I)
    if H <= S or (cost > 0 and saves <= 0):
        return Worth(False, None, cost)
    after = max(0.0, cost / saves) if cost > 0 else 0.0
    return Worth(after <= calls, after, cost)
