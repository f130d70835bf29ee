"""A PDF costs by its pages, in every dialect, and never by its length."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from compact.messages import Pdf
from compact.tokens import Meter, profile_of
from compact.tokens.documents import count_pages


def pdf(pages: int, *, packed: bool = False, padding: int = 0) -> bytes:
    """A PDF of so many pages; since version 1.5 they may stand in a packed object."""
    objects = b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(pages))
    tree = b"<< /Type /Pages /Count %d >>\n" % pages
    if packed:
        data = zlib.compress(objects + tree)
        objects = b"5 0 obj << /Type /ObjStm /Filter /FlateDecode /Length %d >> stream\n%s\nendstream\n" % (
            len(data),
            data,
        )
        tree = b""
    return b"%PDF-1.5\n" + objects + tree + b"x" * padding + b"\n%%EOF"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("prefix", ["", "data:application/pdf;base64,"])
@pytest.mark.parametrize("pages", [1, 30])
def test_pages_are_counted(pages: int, prefix: str, packed: bool) -> None:
    assert count_pages(Pdf(prefix + encoded(pdf(pages, packed=packed, padding=9_000)))) == pages


@pytest.mark.parametrize(
    "data", [b"%PDF-1.7\n" + b"\x00" * 120_000, b"%PDF-1.7", b"%PDF-1.7 /ObjStm stream\nbroken"]
)
def test_a_damaged_document_is_judged_by_its_size(data: bytes) -> None:
    assert count_pages(Pdf(encoded(data))) == max(1, len(data) // 50_000)


def test_what_is_no_base64_costs_a_page() -> None:
    assert count_pages(Pdf("JVBERi0 is how it begins")) == 1


THIRTY = encoded(pdf(30, padding=40_000))
BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "claude-sonnet-4-5",
        {"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": THIRTY}}]},
    ),
    "chat": (
        "gpt-4o",
        {
            "role": "user",
            "content": [
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{THIRTY}"},
                }
            ],
        },
    ),
    "responses": (
        "gpt-5",
        {
            "role": "user",
            "content": [{"type": "input_file", "file_data": f"data:application/pdf;base64,{THIRTY}"}],
        },
    ),
    "gemini": (
        "gemini-2.5-pro",
        {"role": "user", "parts": [{"inlineData": {"mimeType": "application/pdf", "data": THIRTY}}]},
    ),
    "converse": (
        "claude-sonnet-4-5",
        {
            "role": "user",
            "content": [
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": base64.b64decode(THIRTY)}}}
            ],
        },
    ),
}


@pytest.mark.parametrize("dialect", sorted(BLOCKS))
def test_a_document_of_thirty_pages_costs_thirty_pages(dialect: str) -> None:
    model, message = BLOCKS[dialect]
    found, page = Meter(model).estimate([message], dialect=dialect).total, profile_of(model).page
    assert 30 * page <= found <= 30 * page + 100


def test_a_scan_of_one_page_costs_one_page() -> None:
    block = {"type": "document", "source": {"type": "base64", "data": encoded(pdf(1, padding=900_000))}}
    found = Meter("claude-sonnet-4-5").estimate([{"role": "user", "content": [block]}]).total
    assert 2_500 <= found <= 2_600


PICTURE = "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAIAAADwf7zU" + "A" * 3_000


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": PICTURE, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": PICTURE, "mime_type": "image/png"},
        {"type": "image", "url": f"data:image/png;base64,{PICTURE}"},
    ],
)
def test_a_block_of_langchain_costs_what_the_same_picture_costs_as_a_block_of_its_provider(
    block: dict[str, Any],
) -> None:
    own = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    meter = Meter("gpt-4o")
    assert meter.count_item({"role": "user", "content": [block]}, "chat") == meter.count_item(
        {"role": "user", "content": [own]}, "chat"
    )
