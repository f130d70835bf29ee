"""What an error repeats of the request that it refuses. A tool can have written that, so it is no evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compact.messages import to_json

_WORD = re.compile(r"\w+")
_RUN = 5
"""Words in a row. An error and a conversation share fewer by chance."""


def without_echoes(texts: Sequence[str], sent: Any) -> list[str]:
    """Return an error's texts without the runs of words that stand in `sent`.

    A text that is nothing but such a run stays: a conversation may speak of an overflow that its provider then reports in
    the same words.
    """
    wanted = {run for text in texts for run in _runs(_words(text))}
    if not wanted:
        return list(texts)
    known = wanted.intersection(_runs(_words(text_of(sent))))
    return [_strip(text, known) for text in texts] if known else list(texts)


def _strip(text: str, known: set[tuple[str, ...]]) -> str:
    found = list(_WORD.finditer(text))
    words = [match.group().casefold() for match in found]
    echoed = {n + k for n, run in enumerate(_runs(words)) if run in known for k in range(_RUN)}
    if not echoed or len(echoed) == len(words):
        return text
    pieces, start = [], 0
    for n in sorted(echoed):
        pieces.append(text[start : found[n].start()])
        start = found[n].end()
    return " ".join([*pieces, text[start:]])


def contains(sent: Any, texts: Sequence[str]) -> bool:
    """Whether one of the texts, however short, stands in `sent` as a whole."""
    within = f" {' '.join(_words(text_of(sent)))} "
    return any(f" {' '.join(words)} " in within for text in texts if (words := _words(text)))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _runs(words: Sequence[str]) -> zip[tuple[str, ...]]:
    return zip(*(words[n:] for n in range(_RUN)), strict=False)


def text_of(sent: Any) -> str:
    """The text of a request, in which an escaped line break separates words."""
    return re.sub(r"\\[nrt]", " ", to_json(sent)).replace("\\", "")
