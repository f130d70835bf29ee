"""Splits text into search terms: words, identifiers and their parts, and characters in scripts without spaces.

Stored texts and queries are split by the same function, so the two always agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

_NAME = re.compile(r"\w+(?:[-./:\\]\w+)*")
"""A word, a path, a dotted name, a name with hyphens."""
_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\[nrt](\w+)")
"""In JSON text a line break is `\\n`, and its letter would stick to the next word."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Terminal colours, which would stick to the next word."""
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: scripts whose words are not separated by spaces, or carry endings."""

_LONGEST_NAME = 120
_MOST_HUMPS = 6
"""A word with more changes of case is encoded data, and its parts mean nothing."""


def terms(text: str) -> list[str]:
    """Return the terms of a text, as often as they occur. Their ASCII characters are letters and digits only."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "\x1b" in text:
        text = _COLOUR.sub(" ", text)
    found: list[str] = []
    for name in _NAME.findall(text):
        found.extend(_of_name(name))
    for word in _ESCAPED.findall(text):
        found.extend(_of_word(word))
    return found


@lru_cache(maxsize=1 << 14)
def _of_name(name: str) -> tuple[str, ...]:
    words = _WORD.findall(name)
    parts = [part for word in words for part in _of_word(word)]
    if len(words) > 1 and len(name) <= _LONGEST_NAME:
        parts.append(_whole("".join(words)))
    return tuple(parts)


def _of_word(word: str) -> Iterator[str]:
    if not word.isascii():
        for piece in word.split("_"):
            yield from _of_foreign(piece)
        return
    parts = [hump for piece in word.split("_") for hump in _humps(piece)]
    yield from parts
    if len(parts) > 1:
        yield _whole(word)


def _whole(word: str) -> str:
    """Return the one spelling of `readFile`, `read_file`, `read-file` and `readfile`."""
    return word.replace("_", "").casefold()


def _humps(piece: str) -> list[str]:
    if piece.islower() or piece.isdigit():
        return [piece]
    humps = _HUMP.findall(piece)
    return [hump.lower() for hump in humps] if len(humps) <= _MOST_HUMPS else [piece.lower()]


def _of_foreign(piece: str) -> Iterator[str]:
    """Return characters and pairs of adjacent characters of unspaced scripts; other letters as words."""
    end = 0
    for run in _UNSPACED.finditer(piece):
        if run.start() > end:
            yield piece[end : run.start()].casefold()
        characters = run.group()
        yield from characters
        yield from map("".join, pairwise(characters))
        end = run.end()
    if end < len(piece):
        yield piece[end:].casefold()
