"""Splits text into search terms: words, identifiers and their parts, and characters in scripts without spaces.

Stored texts and queries are split by the same function, so the two always agree. English endings are the index's business
(`porter`). Elsewhere accents are dropped, and a long word also counts by its beginning, which its endings do not change.
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

_ACCENTED = re.compile("[\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff]")
"""Letters of Latin, Greek and Cyrillic that may carry an accent. Marks of other scripts are vowels, and stay."""
_MARKS = re.compile("[\u0300-\u036f]")
_BEGINNING = 5
"""Letters of a word's beginning. A word of another script counts by it if it is longer."""

_LONGEST_NAME = 120
_MOST_HUMPS = 6
"""A word with more changes of case is encoded data, and its parts mean nothing."""


_IN_ANY_TEXT = """
a about above after again all also am an and any are as at be because been before being between both but by can could did do
does doing down during each either few for from further had has have having he her here hers him his how i if in into is it
its itself just let me more most my myself no nor not of off on once only or other ought our ours out over own per please same
shall she should so some such than that the their theirs them then there these they this those through to too under until up
upon us very was we were what when where whether which while who whom whose why will with would you your yours
s t d m ll re ve don doesn didn isn wasn won
"""
_ABOUT_TALK = """
say says said tell told mention mentioned mentions discuss discussed talk talked ask asked conversation conversations chat
chats session sessions recall remember remind list order across throughout aspects different bring brought
"""
_STOPS = frozenset(_IN_ANY_TEXT.split())
"""Words that say nothing about what is asked for."""
_TALK = frozenset(_ABOUT_TALK.split())
"""Words by which people ask what was said. They rarely stand where it was said."""
_WEIGHT_OF_TALK = 0.3
_LASTING = """
always never prefer whenever immer nie niemals lieber toujours jamais prefere siempre nunca prefiero sempre prefiro preferisco
altijd nooit liever zawsze nigdy wole asla всегда никогда 总是 从不 以后 今後 必ず 항상
"""
LASTING = tuple(_LASTING.split())
"""Terms by which people say how something is to be from then on, in several languages."""
_MOST_TERMS = 64


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
            yield from _of_letters(piece[end : run.start()])
        characters = run.group()
        yield from characters
        yield from map("".join, pairwise(characters))
        end = run.end()
    if end < len(piece):
        yield from _of_letters(piece[end:])


def _of_letters(word: str) -> Iterator[str]:
    word = word.casefold()
    if _ACCENTED.search(word):
        word = _MARKS.sub("", unicodedata.normalize("NFD", word))
    yield word
    if len(word) > _BEGINNING and not word.isascii():
        yield word[:_BEGINNING]


def query_terms(query: str) -> dict[str, float]:
    """Return the terms of a query with their weights. A query of nothing but stop words is taken at its word."""
    wanted = list(dict.fromkeys(terms(query)))
    telling = [term for term in wanted if term not in _STOPS] or wanted
    return {term: _WEIGHT_OF_TALK if term in _TALK else 1.0 for term in telling[:_MOST_TERMS]}
