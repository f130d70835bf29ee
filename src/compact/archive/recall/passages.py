"""Splits a stored text into passages: short enough to show, long enough to mean something, each with its place.

A passage never crosses the border between two messages of a conversation, so the same message gives the same passages in
the histories of two steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from compact.archive import keys

PASSAGE_CHARS = 1200
"""About 300 tokens."""
OVERLAP_CHARS = 200
"""How much a passage repeats of the previous one, so that text at a border is found with its surroundings."""

_HEADING = re.compile(r"## (\d+)(?:\. \S+)?")
_BREAK = re.compile(r"[\s,;(){}\[\]]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a text: `text[start:end]`."""

    start: int
    end: int
    first_line: int
    """Counted from 1."""
    last_line: int
    column: int
    """Characters of the first line that come before it; more than 0 only inside long lines."""
    message: int | None
    """The number of its message, counted from 1 as on the page."""


class _Unit(NamedTuple):
    """A line, or a piece of a long one. Passages consist of these."""

    start: int
    end: int
    line: int
    column: int


def split(text: str, path: str) -> Iterator[Passage]:
    """Split a file into passages, in order. Together they contain the whole text."""
    in_history = path.startswith(f"/{keys.HISTORY}/")
    message = 0
    units: list[_Unit] = []
    for number, start, end in _lines(text):
        if in_history and _opens_message(text[start:end], message + 1):
            yield from _group(units, message or None)
            units = []
            message += 1
        units.extend(_units(text, number, start, end))
    yield from _group(units, message or None)


def _lines(text: str) -> Iterator[tuple[int, int, int]]:
    """Return each line's number from 1, its start, and its end after the line break."""
    number, start = 0, 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        number += 1
        yield number, start, end
        start = end


def _opens_message(line: str, number: int) -> bool:
    """Return whether a line is the heading of message `number`. Only that number counts, because pages quote pages."""
    heading = _HEADING.fullmatch(line.rstrip("\n")) if line.startswith("## ") else None
    return heading is not None and heading[1] == str(number)


def _units(text: str, number: int, start: int, end: int) -> Iterator[_Unit]:
    place = start
    while end - place > OVERLAP_CHARS:
        breaks = [
            found.end() for found in _BREAK.finditer(text, place + OVERLAP_CHARS // 2, place + OVERLAP_CHARS)
        ]
        cut = breaks[-1] if breaks else place + OVERLAP_CHARS
        yield _Unit(place, cut, number, place - start)
        place = cut
    yield _Unit(place, end, number, place - start)


def _group(units: list[_Unit], message: int | None) -> Iterator[Passage]:
    first = 0
    while first < len(units):
        start = units[first].start
        last = first
        while last + 1 < len(units) and units[last + 1].end - start <= PASSAGE_CHARS:
            last += 1
        yield Passage(
            start=start,
            end=units[last].end,
            first_line=units[first].line,
            last_line=units[last].line,
            column=units[first].column,
            message=message,
        )
        if last + 1 == len(units):
            return
        first = max(first + 1, _overlapping(units, last))


def _overlapping(units: list[_Unit], last: int) -> int:
    """Return where the next passage begins: as far back as OVERLAP_CHARS allow."""
    end = units[last].end
    first = last + 1
    while first > 0 and end - units[first - 1].start <= OVERLAP_CHARS:
        first -= 1
    return first
