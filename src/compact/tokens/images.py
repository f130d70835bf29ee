"""What an image costs: by the provider's formula if its size is known, else a flat number; never by its base64 length.

The formulas are published by the providers; docs/TOKENS.md lists them. Sizes are in pixels.
"""

from __future__ import annotations

import binascii
import math
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

from compact.messages import Image, Sealed

_HEADER_CHARS = 400_000
"""How much of an inline image is decoded to find its size: enough to skip a JPEG's embedded thumbnail."""

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"GIF8", b"RIFF")
"""PNG, JPEG, GIF, WebP, which the providers accept. No other parser is run on untrusted bytes."""


class ImageFormula(Protocol):
    """How a provider charges for an image."""

    @property
    def flat(self) -> int:
        """Tokens of an image of unknown size."""
        ...

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """Tokens of an image of this size."""
        ...


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI, by tiles of 512 px: scaled to fit 2048 px, shorter side to 768 px; `base` plus `tile` for each."""

    base: int
    tile: int

    @property
    def flat(self) -> int:
        """The maximum: eight tiles."""
        return self.base + 8 * self.tile

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """Low detail costs `base` alone; "auto" counts as high."""
        if detail == "low":
            return self.base
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        return self.base + self.tile * _cells(width * scale, 512) * _cells(height * scale, 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI, by patches of 32 px: at most `budget` of them, times `percent`/100."""

    percent: int
    budget: int = 1536
    high_budget: int = 1536

    @property
    def flat(self) -> int:
        """The maximum for high detail."""
        return self._charged(self.high_budget)

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """Low detail counts as high, because its price is not published for these models."""
        budget = self.high_budget if detail in ("low", "high") else self.budget
        patches = _cells(width, 32) * _cells(height, 32)
        if patches > budget:
            # Scaled down to the area of the budget, then again so that whole patches fit one side.
            scale = math.sqrt(budget * 32 * 32 / (width * height)) / 32
            columns, rows = max(1.0, width * scale), max(1.0, height * scale)
            scale = min(math.floor(columns) / columns, math.floor(rows) / rows)
            patches = min(budget, _cells(columns * scale, 1) * _cells(rows * scale, 1))
        return self._charged(patches)

    def _charged(self, patches: int) -> int:
        return -(-patches * self.percent // 100)


@dataclass(frozen=True, slots=True)
class Area:
    """Anthropic: longer side scaled to `edge` px, then width * height / 750, at most `most`."""

    edge: int
    most: int

    @property
    def flat(self) -> int:
        """The maximum."""
        return self.most

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - no levels of detail here
        """See the class."""
        scale = min(1.0, self.edge / max(width, height))
        return min(self.most, math.ceil(width * scale * height * scale / 750))


@dataclass(frozen=True, slots=True)
class Crops:
    """Gemini up to 2.5: 258 for a small image, else 258 for each crop of two thirds of the shorter side."""

    flat: int = 12 * 258

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - no levels of detail here
        """See the class."""
        if max(width, height) <= 384:
            return 258
        unit = min(768, max(256, min(width, height) * 2 // 3))
        return 258 * _cells(width, unit) * _cells(height, unit)


@dataclass(frozen=True, slots=True)
class Flat:
    """The same price for every image, or no published formula."""

    flat: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - one price
        """See the class."""
        return self.flat


def image_tokens(image: Image, formula: ImageFormula) -> int:
    """Tokens of an image. If its size is neither given nor readable, it costs the formula's flat number."""
    size = _size(image)
    return formula.flat if size is None else formula.tokens(*size, image.detail)


def sealed_tokens(sealed: Sealed) -> int:
    """Tokens of an encrypted block, rounded up: base64 has 3/4 as many bytes, and text about 4 bytes per token."""
    return -(-sealed.chars * 3 // 16)


def _size(image: Image) -> tuple[int, int] | None:
    if image.width and image.height and min(image.width, image.height) > 0:
        return image.width, image.height
    header = _header(image.source)
    if not header.startswith(_MAGIC):
        return None
    # Imports urllib and more; most sessions have no images.
    import imagesize  # type: ignore[import-untyped]

    try:
        width, height = imagesize.get(BytesIO(header))
    except Exception:  # damaged; older versions raise where newer ones return -1
        return None
    return (width, height) if width > 0 and height > 0 else None


def _header(source: str) -> bytes:
    if source.startswith("data:"):
        source = source[source.find(",", 0, 256) + 1 :]
    elif "://" in source[:32]:
        return b""
    encoded = source[:_HEADER_CHARS].encode("ascii", "ignore")
    try:
        return binascii.a2b_base64(encoded[: len(encoded) // 4 * 4])
    except binascii.Error:
        return b""


def _cells(length: float, side: int) -> int:
    # Floating point must not turn a side of 768 px into 768.0000001.
    return max(1, math.ceil(round(length, 6) / side))
