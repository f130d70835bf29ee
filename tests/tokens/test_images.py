from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.messages import Image, Sealed
from compact.tokens.images import Area, Crops, Flat, ImageFormula, Patches, Tiles, image_tokens, sealed_tokens
from compact.tokens.models import profile_of


def png(width: int, height: int, padding: int = 0) -> str:
    """A real PNG header (no provider would read the rest to know the size)."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk + b"\x00" * padding).decode()


def jpeg(width: int, height: int, before: int) -> str:
    """A JPEG whose size stands behind `before` bytes of other segments, as cameras write them."""
    filler = b"\xff\xe2\xff\xff" + b"\x00" * 65533
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + b"\x01\x11\x00" * 3
    return base64.b64encode(b"\xff\xd8" + filler * (before // 65537) + frame + b"\xff\xd9").decode()


def of(model: str) -> ImageFormula:
    return profile_of(model).images


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        # the examples of OpenAI's own guide
        ("gpt-4o", (1024, 1024), "high", 765),
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        ("gpt-4.1-mini", (1024, 1024), None, 1659),
        ("gpt-4.1-mini", (1800, 2400), None, 2353),
        # by the published constants
        ("gpt-4o", (512, 512), "auto", 255),
        ("gpt-4.1", (100, 50), None, 255),
        ("gpt-4o-mini", (1024, 1024), "high", 25501),
        ("gpt-4o-mini", (1024, 1024), "low", 2833),
        ("o1", (1024, 1024), None, 675),
        ("o3-pro", (1024, 1024), None, 675),
        ("gpt-5", (1024, 1024), None, 630),
        ("gpt-4.1-nano", (1024, 1024), None, 2520),
        ("o4-mini", (1024, 1024), None, 1762),
        ("gpt-5-mini", (1024, 1024), None, 1659),
        ("gpt-5-nano", (32, 32), None, 3),
        ("gpt-5.5", (1024, 1024), None, 1229),
        ("claude-sonnet-4-5", (1000, 750), None, 1000),
        ("claude-sonnet-4-5", (8000, 8000), None, 1600),
        ("claude-3-opus", (3136, 1568), None, 1600),
        ("claude-3-opus", (3136, 392), None, 410),
        ("claude-opus-5", (2000, 1500), None, 4000),
        ("claude-opus-5", (8000, 8000), None, 4784),
        ("gemini-2.5-pro", (384, 384), None, 258),
        ("gemini-2.5-pro", (960, 540), None, 6 * 258),
        ("gemini-1.5-pro", (3072, 3072), None, 16 * 258),
        ("gemini-3-pro-preview", (4000, 3000), None, 1120),
        ("some-model", (4000, 3000), None, 1600),
    ],
)
def test_published_formulas(model: str, size: tuple[int, int], detail: str | None, tokens: int) -> None:
    width, height = size
    image = Image("https://example.org/x.png", detail=detail, width=width, height=height)
    assert image_tokens(image, of(model)) == tokens


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
def test_the_size_is_read_from_the_inline_header(prefix: str) -> None:
    assert image_tokens(Image(prefix + png(1024, 1024)), Tiles(85, 170)) == 765


def test_the_size_is_found_behind_a_thumbnail() -> None:
    assert image_tokens(Image(jpeg(1024, 1024, before=200_000)), Tiles(85, 170)) == 765


def test_never_by_length() -> None:
    """A picture of some megabytes of base64 costs what its size costs."""
    large = Image(png(512, 512, padding=3_000_000))
    assert len(large.source) > 4_000_000
    assert image_tokens(large, Tiles(85, 170)) == 255


@pytest.mark.parametrize(
    "source",
    [
        "",
        "https://example.org/cat.png",
        "http://" + "a" * 100_000,
        "data:",
        "data:image/svg+xml,<svg width='10' height='10'/>",
        base64.b64encode(b"<svg width='10' height='10'/>").decode(),
        base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(),
        base64.b64encode(b"\xff\xd8\xff\xc0\x00").decode(),
        base64.b64encode(b"RIFF\x00\x00\x00\x00WEBPVP8 ").decode(),
        png(0, 0),
        "not base64 at all: \ud800 \x00 ä",
        "A",
        "file_id_1234567890",
    ],
)
def test_an_unknown_size_costs_the_flat_figure(source: str) -> None:
    assert image_tokens(Image(source), Tiles(85, 170)) == 85 + 8 * 170


@given(
    magic=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"GIF89a", b"RIFF", b""]),
    rest=st.binary(max_size=200),
)
def test_no_bytes_break_the_reading_of_a_size(magic: bytes, rest: bytes) -> None:
    assert image_tokens(Image(base64.b64encode(magic + rest).decode()), Tiles(85, 170)) <= 85 + 8 * 170


def test_given_sizes_that_make_no_sense_are_not_believed() -> None:
    assert image_tokens(Image("", width=-5, height=100), Flat(7)) == 7
    assert image_tokens(Image("", width=-5, height=100), Area(1568, 1600)) == 1600


@pytest.mark.parametrize(
    "formula", [Tiles(85, 170), Patches(162), Area(1568, 1600), Patches(120, 10_000, 2_500)]
)
@pytest.mark.parametrize(
    "size", [(1, 1), (1, 100_000), (100_000, 1), (5000, 5000), (10**9, 10**9), (333, 7777)]
)
def test_no_size_costs_more_than_the_flat_figure_at_high_detail(
    formula: ImageFormula, size: tuple[int, int]
) -> None:
    assert 1 <= formula.tokens(*size, "high") <= formula.flat


def test_flat_figures() -> None:
    assert (Crops().flat, Patches(162).flat, Tiles(70, 140).flat) == (3096, 2489, 1190)


@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (16, 3), (17, 4), (1600, 300)])
def test_sealed_blocks_have_a_rate(chars: int, tokens: int) -> None:
    assert sealed_tokens(Sealed(chars)) == tokens
