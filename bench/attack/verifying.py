"""verify reports whatever was changed in an archive."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
