"""What a recovery tool's answer looks like: the marker first, then notes for the model, then the text, all bounded."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from compact.errors import ConfigError
from compact.markers import RECOVERY_OPENS
from compact.redaction import MASK

FRAME_CHARS = 1500
"""Kept free in every answer for its first line and its notes."""

_JOINER = "\u200d"
_LONGEST_CLUSTER = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large an answer may be.

    Raises:
        ConfigError: a limit is too small to answer anything.
    """

    max_chars: int = 16_000
    """Characters of one answer, all in all."""
    max_lines: int = 400
    """Lines of text in one answer of `read_file`, files in one of `ls`."""
    max_line_chars: int = 2_000
    """Characters of one line among others; a line that is asked for alone may take the whole answer."""
    max_matches: int = 50
    """Matching lines in one answer of `grep`."""

    def __post_init__(self) -> None:
        least = {"max_chars": 2 * FRAME_CHARS, "max_lines": 1, "max_line_chars": 80, "max_matches": 1}
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise ConfigError(
                    f"{name} must be at least {minimum}, got {getattr(self, name)}",
                    hint="Smaller answers could not say how to read on",
                    path=name,
                )

    @property
    def text_chars(self) -> int:
        """Characters of one answer without its frame."""
        return self.max_chars - FRAME_CHARS


class Page:
    """Lines, up to a number of characters."""

    def __init__(self, max_chars: int) -> None:
        self.lines: list[str] = []
        self.left = max_chars

    def add(self, line: str) -> bool:
        """Adds a line; False when there is no room for it."""
        if len(line) + 1 > self.left:
            return False
        self.lines.append(line)
        self.left -= len(line) + 1
        return True


def answer(headline: str, lines: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """An answer. It says how many spans of what it shows are masked."""
    masked = sum(line.count(MASK) for line in lines)
    notes = [*notes, _about_masks(masked)] if masked else notes
    return "\n".join([f"{RECOVERY_OPENS}{headline}", *(f"[{note}]" for note in notes), *lines])


def safe_cut(text: str, end: int) -> int:
    """The last place at or before `end` where a text can be cut without tearing what a reader sees as one character."""
    place = min(end, len(text))
    while place > 0 and _is_inside_cluster(text, place):
        place -= 1
        if end - place >= _LONGEST_CLUSTER:
            return end
    return place or end


def quoted(text: str, limit: int = 200) -> str:
    """Something that a model wrote: on one line, without control characters, shortened."""
    shown = repr(text[:limit])
    return shown if len(text) <= limit and len(shown) <= limit + 2 else f"{shown[:limit]}…'"


def counted(number: int, noun: str) -> str:
    """A number and what it counts: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _about_masks(count: int) -> str:
    spans = "1 span below is" if count == 1 else f"{count:,} spans below are"
    return f"{spans} masked as {MASK}: the values are not stored. Never write a mask back into a file or a command"


def _is_inside_cluster(text: str, place: int) -> bool:
    if place >= len(text):
        return False
    before, after = text[place - 1], text[place]
    if before < "\u0300" > after:
        return before == "\r" and after == "\n"
    if _joins(after) or before == _JOINER:
        return True
    return _is_flag_letter(before) and _is_flag_letter(after) and _flag_letters_before(text, place) % 2 == 1


def _joins(character: str) -> bool:
    """Combining marks, variation selectors, joiners, skin tones, tags, the vowels and finals of Hangul."""
    return (
        unicodedata.category(character) in {"Mn", "Mc", "Me"}
        or character == _JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or "\u1160" <= character <= "\u11ff"
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    start = place
    while start > 0 and place - start < _LONGEST_CLUSTER and _is_flag_letter(text[start - 1]):
        start -= 1
    return place - start
