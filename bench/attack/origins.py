"""What a tool says never changes what people, the host or the provider said."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
