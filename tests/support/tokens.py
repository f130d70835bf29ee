"""What the token tests share: tiktoken as it is published, generated strings, and the shared transcripts."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken_ext.openai_public as published  # type: ignore[import-untyped]

from compact.tokens.encodings import ENCODINGS

NAMES = tuple(ENCODINGS)
_TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"

_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFghijklMNOPqrst",
    "0123456789.,-+eE",
    " \t\n\r",
    " \u00a0\u3000\u2003\u2028\x85\x0b\x0c\x1c\x1f",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "'sStTdDmMlLvVrReE ",
    "的一是不了人我在有他这中大来上国",
    "あいうえおカキクケコ漢字ー",
    "가나다라마바사아자차",
    "абвгдеЁЖЗИ",
    "مرحبابالعالم١٢٣",
    "नमस्तेदुनिया१२३",
    "สวัสดีชาวโลก",
    "😀👍🏽👨\u200d👩\u200d👧🇩🇪❤️🔥",
    "e\u0301n\u0303a\u0308\u0301\u0327",
    "ǅʰªßÄöﬁΣςὈ",
    "\x00\x01\x7f\ufeff\u200b\u200d\ufffd",
    "\ud800\udbff\udc00\udfff\ud83d\ude00",
    "𝒳𝓎𐍈𠜎½ⅷ①²",
)
_WORDS = (
    "the quick brown fox",
    "<|endoftext|>",
    "<|im_start|>",
    "<|fim_prefix|>",
    "def main(argv):\n    return None\n",
    '{"path": "a/b.py", "n": 12}',
    "https://example.org/?q=1",
    "don't they'LL",
    "\r\n\r\n",
    "        ",
    "/usr/local/lib",
    "HTTPServerError",
)


@cache
def published_encoding(name: str) -> tiktoken.Encoding:
    """The encoding as tiktoken defines it, special tokens and all, with the ranks from our file."""
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(published, "load_tiktoken_bpe", lambda *_, **__: ENCODINGS[name].ranks())
        return tiktoken.Encoding(**published.ENCODING_CONSTRUCTORS[name]())


def generated(count: int, seed: int = 1) -> Iterator[str]:
    """Strings made to be hard on a tokenizer; the same ones for the same seed."""
    source = random.Random(seed)
    for _ in range(count):
        parts = []
        for _ in range(source.randint(1, 6)):
            kind = source.random()
            if kind < 0.2:
                parts.append(source.choice(_WORDS))
            elif kind < 0.3:
                parts.append(source.choice(source.choice(_ALPHABETS)) * source.randint(1, 300))
            elif kind < 0.35:
                parts.append("".join(chr(source.randrange(0x110000)) for _ in range(source.randint(1, 12))))
            else:
                alphabet = source.choice(_ALPHABETS)
                parts.append("".join(source.choices(alphabet, k=source.randint(1, 20))))
        yield "".join(parts)


def transcripts() -> Iterator[list[dict[str, Any]]]:
    """The shared sessions; the test is skipped where they are not."""
    if not _TRANSCRIPTS.is_dir():
        pytest.skip(f"no shared transcripts in {_TRANSCRIPTS}")
    for path in sorted(_TRANSCRIPTS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["messages"]
