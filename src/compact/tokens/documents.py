"""What a PDF costs: by its pages, as the providers bill it; never by its length."""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator

from compact.messages import Pdf

_MOST_CHARS = 64_000_000
"""Of base64. No provider takes a larger document; beyond this its size decides."""
_MOST_UNPACKED = 50_000_000
"""Bytes of packed objects that are looked at."""
_BYTES_PER_PAGE = 50_000
"""Of a document whose pages cannot be counted, because it is damaged or encrypted."""
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PACKED = re.compile(rb"/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)


def count_pages(pdf: Pdf) -> int:
    """Return the pages of a document, at least one. Where they cannot be counted, its size decides."""
    source = pdf.source
    if source.startswith("data:"):
        source = source[source.find(",", 0, 256) + 1 :]
    guessed = max(1, len(source) * 3 // 4 // _BYTES_PER_PAGE)
    if len(source) > _MOST_CHARS:
        return guessed
    encoded = source.encode("ascii", "ignore")
    try:
        data = binascii.a2b_base64(encoded[: len(encoded) // 4 * 4])
    except binascii.Error:
        return guessed
    return sum(len(_PAGE.findall(part)) for part in (data, *_unpacked(data))) or guessed


def _unpacked(data: bytes) -> Iterator[bytes]:
    """The packed objects of a document. Since PDF 1.5 its pages may stand there."""
    left = _MOST_UNPACKED
    for packed in _PACKED.finditer(data):
        try:
            found = zlib.decompressobj().decompress(data[packed.end() :], left)
        except zlib.error:
            continue
        left -= len(found)
        yield found
        if left <= 0:
            return
