"""A summarizer endpoint gets no key of another host, and its answers are bounded."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
