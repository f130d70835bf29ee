"""Generated attacks on every rule of docs/SECURITY.md: `make attack`, or `python -m bench.attack [family ...]`.

An attack draws its inputs from a seed, so that another seed gives inputs that nobody has looked at. It reports each try as a `Trial`
and each measured share as a `bench.Figure`. The test run makes every attack at a small size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from bench import Figure


@dataclass(frozen=True, slots=True)
class Trial:
    """One try: what was attempted, and whether the rule held."""

    what: str
    """Enough to find the case again. It never quotes a secret."""
    held: bool


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack on one rule."""

    name: str
    rule: str
    """The rule under attack, as one sentence."""
    make: Callable[[Random, int], Iterable[Trial | Figure]]
    """Makes about `size` tries from the seed. Servers and folders that it needs are its own, and it removes them."""
    may_fail: float = 0.0
    """The share of tries that may fail. Zero wherever the rule is absolute."""
