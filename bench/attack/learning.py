"""What one text teaches the redactor stays cheap, bounded and within its session."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
