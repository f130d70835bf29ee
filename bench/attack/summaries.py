"""A summary quotes tools; it never gives their orders in its own voice."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
