"""A file found in the current folder names no address, key, prompt, path or exporter."""

from __future__ import annotations

from bench.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
