"""Tokens of known vendors are masked in every surrounding."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
