"""A provider error teaches a limit only if it is one."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
