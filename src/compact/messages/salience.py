"""Which lines of a long text say most: those that name things which are named nowhere else. Pure and deterministic.

A line is worth the names in it: paths, identifiers, ids, numbers. A name that already stands in what is kept is worth
little more, so the lines that are chosen complement each other and repetition costs nothing.

This runs over everything that leaves a context, so the loops over words are ones that run in C: text is mapped to words
byte by byte, and a line's worth is a sum over a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

_GREP_SUFFIX = re.compile(r"[-:]\d+[-:]?$")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_WORD_BYTES = bytes(
    n if n >= 128 or chr(n).isalnum() or chr(n) in "_./@#-\0" else ord(" ") for n in range(256)
)
_END = "\0"
"""Stands between pieces while they are looked at together."""
_ARROW = "\u2192"
"""Stands between the number of a line and the line, in what some tools show of a file."""
_TELLING = frozenset(
    [
        "def",
        "class",
        "func",
        "function",
        "fn",
        "struct",
        "interface",
        "enum",
        "type",
        "const",
        "export",
        "trait",
        "error",
        "errors",
        "exception",
        "failed",
        "failure",
        "fail",
        "fatal",
        "panic",
        "traceback",
        "warning",
        "denied",
    ]
)
"""Words of lines that define something, or tell of an error."""
_TELLING_WORTH = 0.6
_AGAIN = 0.2
"""What a name is worth that stands in the context already, each time less."""
_PROSE = 0.01
"""What a character is worth whatever it says: among lines without names the longer ones win."""
_STILL = 0.75
"""A line that lost less than a quarter of its worth keeps its turn."""
_PIECE_CHARS = 240
"""A longer line is looked at piece by piece."""
_GROUP_CHARS = 80
"""Shorter lines are taken together up to this."""


class Piece(NamedTuple):
    """A line of a text, or a part of a very long one."""

    text: str
    owner: int
    """Which text it is of."""
    line: int
    """Its line, counted from 1."""
    part: int = 0
    """Which part of the line."""


def words_of(texts: Iterable[str]) -> set[str]:
    """Every word of the texts: what stands between spaces and punctuation."""
    found: set[str] = set()
    for text in texts:
        found.update(_spaced(text).split())
    return found


def _spaced(text: str) -> str:
    """The text with everything that is not part of a word made a space; lines stay lines."""
    raw = text.replace(_ARROW, " ").encode("utf-8", "replace")
    return raw.translate(_WORD_BYTES).decode("utf-8", "replace")


@lru_cache(maxsize=1 << 16)
def worth_of(word: str) -> float:
    """How much it is worth to have this word in the context: most for identifiers, nothing for plain words."""
    if len(word) < 4 and (len(word) < 3 or word.isdigit()):
        return 0.0  # mostly numbers of lines
    if word.lower() in _TELLING:
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
    """A text in pieces: short lines together, very long ones in parts. What holds nothing is left out."""
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
    """The places of the pieces that should be taken, the most telling first, until they cost `room`.

    `costs` are their tokens, `factors` say what the text of each owner is worth; `standing` are words of what is kept
    anyway. Of equal pieces the newest counts; the others come last.
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
        # What was worth much may have become a repetition of what was taken since.
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


def numbered(pieces: Iterable[Piece]) -> str:
    """Pieces of one text in their order; a line number stands where a new run of lines begins."""
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


def pieces_again(excerpt: str, owner: int) -> list[Piece]:
    """The pieces that `numbered` wrote, so that fewer of them can be kept."""
    found = []
    number = 0
    for line in excerpt.split("\n"):
        run = _RUN.match(line)
        number = int(run.group(1)) if run else number + 1
        found.append(Piece(line[run.end() :] if run else line, owner, number))
    return found
