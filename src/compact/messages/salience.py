"""Chooses the most informative lines of a long text: those that name things found nowhere else. Pure, deterministic.

The worth of a line is that of the names in it: paths, identifiers, ids, numbers. A name that is already kept is worth
little, so the chosen lines complement each other and repetitions are not chosen.

This runs over everything that leaves a context, so the loops over words run in C: text is mapped to words byte by byte,
and the worth of a line is a sum over a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from compact.messages.cues import TELLING_WORDS

_GREP_SUFFIX = re.compile(r"[-:]\d+[-:]?$")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_WORD_BYTES = bytes(
    n if n >= 128 or chr(n).isalnum() or chr(n) in "_./@#-\0" else ord(" ") for n in range(256)
)
_END = "\0"
"""Separates pieces while they are processed together."""
_ARROW = "\u2192"
"""Some tools put it between a line number and the line."""
_TELLING_WORTH = 0.6
_AGAIN = 0.2
"""Factor for a name that is already in the context, applied once per occurrence."""
_PROSE = 0.01
"""Worth of a character: among lines without names, the longer ones win."""
_STILL = 0.75
"""A line that lost at most a quarter of its worth since it was ranked is still chosen."""
_PIECE_CHARS = 240
"""Longer lines are split into parts."""
_GROUP_CHARS = 80
"""Short lines are grouped up to this length."""


class Piece(NamedTuple):
    """A line of a text, or a part of a very long one."""

    text: str
    owner: int
    """The index of its text."""
    line: int
    """Its line number, from 1."""
    part: int = 0
    """Which part of the line it is, from 0."""


def words_of(texts: Iterable[str]) -> set[str]:
    """Every word of the texts, split at spaces and punctuation."""
    found: set[str] = set()
    for text in texts:
        found.update(_spaced(text).split())
    return found


def _spaced(text: str) -> str:
    """Replace everything that is not part of a word by a space; `_END` is kept."""
    raw = text.replace(_ARROW, " ").encode("utf-8", "replace")
    return raw.translate(_WORD_BYTES).decode("utf-8", "replace")


@lru_cache(maxsize=1 << 16)
def worth_of(word: str) -> float:
    """The worth of having this word in the context: most for identifiers, nothing for plain words."""
    if len(word) < 4 and (len(word) < 3 or word.isdigit()):
        return 0.0  # mostly line numbers
    if word.lower() in TELLING_WORDS:
        return _TELLING_WORTH
    if word.isalpha() and (word.islower() or not word.isascii() or len(word) < 4):
        return 0.0
    bare = _GREP_SUFFIX.sub("", word.strip(".-/@#")) or word
    if "/" in bare:
        return 1.1
    pieces = bare.split(".")
    if len(pieces) > 1 and all(pieces):
        return _named(bare) + sum(_named(piece) for piece in pieces if len(piece) > 3)
    return _named(bare) if len(bare) > 2 else 0.0


def _named(name: str) -> float:
    if name.isdigit():
        return 0.3
    if "_" in name.strip("_") or "." in name or _INNER_CAPITAL.search(name):
        return 1.0
    if any(map(str.isdigit, name)) or "-" in name:
        return 0.5
    return 0.2 if name[:1].isupper() else 0.0


def pieces_of(text: str, owner: int) -> list[Piece]:
    """Split a text into pieces: short lines grouped, very long ones in parts, blank ones left out."""
    found: list[Piece] = []
    group: list[str] = []
    size = first = 0
    for number, line in enumerate(text.replace(_END, " ").split("\n"), start=1):
        if size + len(line) > _GROUP_CHARS or line.isspace() or not line:
            if group:
                found.append(Piece("\n".join(group), owner, first))
                group, size = [], 0
            if line.isspace() or not line:
                continue
        if len(line) > _PIECE_CHARS:
            found += [Piece(part, owner, number, n) for n, part in enumerate(_parts(line))]
            continue
        if not group:
            first = number
        group.append(line.rstrip())
        size += len(line)
    if group:
        found.append(Piece("\n".join(group), owner, first))
    return found


def _parts(line: str) -> Iterable[str]:
    start = 0
    while start < len(line):
        stop = start + _PIECE_CHARS
        if stop < len(line):
            space = line.rfind(" ", start + _PIECE_CHARS // 2, stop)
            stop = space + 1 if space >= 0 else stop
        yield line[start:stop]
        start = stop


def choose(
    pieces: Sequence[Piece],
    costs: Sequence[float],
    factors: Sequence[float],
    standing: set[str],
    room: float,
) -> list[int]:
    """Return the indexes of the pieces to take, the most informative first, until they cost `room`.

    `costs` are their tokens, `factors` weigh the text of each owner, `standing` are the words of what is kept anyway.
    Of equal pieces the newest counts; the others come last.
    """
    words = [line.split() for line in _spaced(_END.join([piece.text for piece in pieces])).split(_END)]
    worth = {word: worth_of(word) for word in set(chain.from_iterable(words))}
    for word in standing & worth.keys():
        worth[word] *= _AGAIN
    value = worth.__getitem__
    gains = [
        sum(map(value, named)) + _PROSE * len(piece.text) for named, piece in zip(words, pieces, strict=True)
    ]
    rates = [
        gain * factors[piece.owner] / cost for gain, piece, cost in zip(gains, pieces, costs, strict=True)
    ]
    order: list[int] = []
    repeating: list[int] = []
    seen: set[str] = set()
    for place in sorted(range(len(pieces) - 1, -1, -1), key=rates.__getitem__, reverse=True):
        named, text = words[place], pieces[place].text
        # It may repeat what was taken since the ranking.
        if text in seen or sum(map(value, named)) + _PROSE * len(text) < gains[place] * _STILL:
            repeating.append(place)
            continue
        seen.add(text)
        order.append(place)
        room -= costs[place]
        if room <= 0:
            return order
        for word in named:
            worth[word] *= _AGAIN
    return [*order, *repeating]


def number_lines(pieces: Iterable[Piece]) -> str:
    """Join pieces of one text in their order, with a line number where a new run of lines begins."""
    lines: list[str] = []
    before: Piece | None = None
    for piece in sorted(pieces, key=lambda piece: (piece.line, piece.part)):
        if before is not None and (piece.line, piece.part) == (before.line, before.part + 1):
            lines[-1] += piece.text
        elif (
            before is not None and piece.line == before.line + before.text.count("\n") + 1 and not piece.part
        ):
            lines.append(piece.text)
        else:
            lines.append(f"@{piece.line} {piece.text}")
        before = piece
    return "\n".join(lines)


_RUN = re.compile(r"@(\d+) ")


def read_numbered(excerpt: str, owner: int) -> list[Piece]:
    """Read back what `number_lines` wrote, so that fewer pieces can be kept."""
    found = []
    number = 0
    for line in excerpt.split("\n"):
        run = _RUN.match(line)
        number = int(run.group(1)) if run else number + 1
        found.append(Piece(line[run.end() :] if run else line, owner, number))
    return found
