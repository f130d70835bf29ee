"""What a picture costs: the provider's formula when its size is known, else a flat figure; never its base64 length.

The formulas are the providers' published ones; docs/TOKENS.md has the table. Size is in pixels.
"""

from __future__ import annotations

import binascii
import math
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

from compact.messages import Image, Sealed

_HEADER_CHARS = 400_000
"""How much of an inline picture is decoded to find its size: enough to pass a JPEG's embedded thumbnail."""

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"GIF8", b"RIFF")
"""PNG, JPEG, GIF, WebP: what the providers take. No other parser is let near bytes that anybody may have sent."""


class ImageFormula(Protocol):
    """One provider's way to charge for a picture."""

    @property
    def flat(self) -> int:
        """Tokens of a picture whose size is unknown."""
        ...

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """Tokens of a picture of this size."""
        ...


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI, by tiles of 512 px: fit into 2048 px, shorter side to 768 px, `base` plus `tile` for each."""

    base: int
    tile: int

    @property
    def flat(self) -> int:
        """The most it can be: eight tiles."""
        return self.base + 8 * self.tile

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """The base alone at low detail; "auto" counts as high."""
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
        """The most that high detail can be."""
        return self._charged(self.high_budget)

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        """Low detail is counted as high: its price is not published for these models."""
        budget = self.high_budget if detail in ("low", "high") else self.budget
        patches = _cells(width, 32) * _cells(height, 32)
        if patches > budget:
            # Shrunk to the budget's area, then once more so that whole patches fit one side.
            scale = math.sqrt(budget * 32 * 32 / (width * height)) / 32
            columns, rows = max(1.0, width * scale), max(1.0, height * scale)
            scale = min(math.floor(columns) / columns, math.floor(rows) / rows)
            patches = min(budget, _cells(columns * scale, 1) * _cells(rows * scale, 1))
        return self._charged(patches)

    def _charged(self, patches: int) -> int:
        return -(-patches * self.percent // 100)


@dataclass(frozen=True, slots=True)
class Area:
    """Anthropic: longer side to `edge` px, then width * height / 750, at most `most`."""

    edge: int
    most: int

    @property
    def flat(self) -> int:
        """The most it can be."""
        return self.most

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - no levels of detail here
        """See the class."""
        scale = min(1.0, self.edge / max(width, height))
        return min(self.most, math.ceil(width * scale * height * scale / 750))


@dataclass(frozen=True, slots=True)
class Crops:
    """Gemini up to 2.5: 258 for a small picture, else 258 for each crop of two thirds of the shorter side."""

    flat: int = 12 * 258

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - no levels of detail here
        """See the class."""
        if max(width, height) <= 384:
            return 258
        unit = min(768, max(256, min(width, height) * 2 // 3))
        return 258 * _cells(width, unit) * _cells(height, unit)


@dataclass(frozen=True, slots=True)
class Flat:
    """One price for every picture, or no published formula."""

    flat: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:  # noqa: ARG002 - one price
        """See the class."""
        return self.flat


def image_tokens(image: Image, formula: ImageFormula) -> int:
    """Tokens of a picture. One whose size is neither given nor readable costs the formula's flat figure."""
    size = _size(image)
    return formula.flat if size is None else formula.tokens(*size, image.detail)


def sealed_tokens(sealed: Sealed) -> int:
    """Tokens of an encrypted block: base64 is 3/4 as many bytes, and text has about 4 bytes a token; rounded up."""
    return -(-sealed.chars * 3 // 16)


def _size(image: Image) -> tuple[int, int] | None:
    if image.width and image.height and min(image.width, image.height) > 0:
        return image.width, image.height
    header = _header(image.source)
    if not header.startswith(_MAGIC):
        return None
    # Brings urllib and its kin along; most sessions never see a picture.
    import imagesize  # type: ignore[import-untyped]

    try:
        width, height = imagesize.get(BytesIO(header))
    except Exception:  # damaged in whatever way; older versions raise what newer ones answer with -1
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
    # Scaling in floating point must not make a 768 px side 768.0000001.
    return max(1, math.ceil(round(length, 6) / side))
