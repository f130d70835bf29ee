"""A tenant reads and changes nothing of another tenant."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
