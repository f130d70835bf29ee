"""How many pictures a request has, and how large they are."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import imagesize  # type: ignore[import-untyped]


def find_blocks(value: Any, kind: str, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every block of a type in a list of messages, inside tool results too, with its path."""
    for place, block in enumerate(value if isinstance(value, list) else ()):
        if isinstance(block, Mapping):
            if block.get("type") == kind:
                yield f"{where}.{place}", block
            for key in ("content", "output"):
                yield from find_blocks(block.get(key), kind, f"{where}.{place}.{key}")


def longest_side(encoded: str) -> int:
    """The longer side of a picture in base64, in pixels; 0 if it cannot be read."""
    try:
        width, height = imagesize.get(BytesIO(binascii.a2b_base64(encoded)))
    except Exception:  # what is damaged raises in some versions, and is -1 in others
        return 0
    return int(max(width, height, 0))
