"""Hostile sizes cost time and memory in proportion."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
