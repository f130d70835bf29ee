"""Generated passwords are masked wherever they are stored or shown."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
