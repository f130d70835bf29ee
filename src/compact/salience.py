"""Which lines of a long text say most: those that name things which are named nowhere else. Pure and deterministic.

A line is worth the names in it: paths, identifiers, ids, numbers. A name that already stands in what is kept is worth
little more, so the lines that are chosen complement each other and repetition costs nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple, TypeAlias

_CHUNK = re.compile(r"[\w./@#-]{3,}")
_CHUNK_OR_END = re.compile(r"[\w./@#-]{3,}|\x00")
_GREP_SUFFIX = re.compile(r"[-:]\d+[-:]?$")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_DEFINING = (
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
)
_FAILING = (
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
)
_TELLING_WORDS = frozenset((*_DEFINING, *_FAILING))
_TELLING = ("", 0.0)
"""Among the names of a line: it defines something, or tells of an error."""
_AGAIN = 0.2
"""What a name is worth that stands in the context already, each time less."""
_OFTEN = 0.3
"""How much more a name is worth with each further text that it stands in, up to four."""
_TELLING_LINE = 1.4
"""Definitions and errors count more than other lines."""
_PROSE = 0.01
"""What a character is worth whatever it says: among lines without names the longer ones win."""
_STILL = 0.75
"""A line that lost less than a quarter of its worth keeps its turn."""
_PIECE_CHARS = 240
"""A longer line is looked at piece by piece."""

Names: TypeAlias = tuple[tuple[str, float], ...]
Memo: TypeAlias = dict[str, Names]
"""What was found in a chunk of characters; the same chunks come again and again."""


class Piece(NamedTuple):
    """A line of a text, or a part of a very long one."""

    text: str
    owner: int
    """Which text it is of."""
    line: int
    """Its line, counted from 1."""
    part: int = 0
    """Which part of the line."""


def names_in(text: str, memo: Memo) -> list[tuple[str, float]]:
    """The names in a text with what each is worth. `memo` remembers the answer for each chunk of characters."""
    found: list[tuple[str, float]] = []
    for chunk in _CHUNK.findall(text):
        known = memo.get(chunk)
        if known is None:
            known = memo[chunk] = _named(chunk)
        found += known
    return found


def names_of(texts: Iterable[str], memo: Memo) -> dict[str, int]:
    """In how many texts each name stands."""
    chunks: Counter[str] = Counter()
    for text in texts:
        chunks.update(set(_CHUNK.findall(text)))
    found: dict[str, int] = {}
    for chunk, count in chunks.items():
        known = memo.get(chunk)
        if known is None:
            known = memo[chunk] = _named(chunk)
        for name, _ in known:
            found[name] = found.get(name, 0) + count
    return found


@lru_cache(maxsize=1 << 16)
def _named(chunk: str) -> Names:
    if len(chunk) < 4 and chunk.isdigit():
        return ()  # mostly numbers of lines
    if chunk.lower() in _TELLING_WORDS:
        return (_TELLING,)
    if chunk.isalpha() and (chunk.islower() or not chunk.isascii() or len(chunk) < 4):
        return ()  # a plain word
    bare = _GREP_SUFFIX.sub("", chunk.strip(".-/@#")) or chunk
    if "/" in bare:
        return (bare, 0.6), (bare.rpartition("/")[2], 0.5)
    pieces = bare.split(".")
    if len(pieces) > 1 and all(pieces):
        return ((bare, _worth(bare)), *((piece, _worth(piece)) for piece in pieces if len(piece) > 3))
    if bare.endswith(("Error", "Exception")):
        return (bare, 1.0), _TELLING
    return ((bare, _worth(bare)),) if len(bare) > 2 else ()


def _worth(name: str) -> float:
    if name.isdigit():
        return 0.3
    if "_" in name.strip("_") or "." in name or _INNER_CAPITAL.search(name):
        return 1.0
    if any(map(str.isdigit, name)) or "-" in name:
        return 0.5
    return 0.2 if name[:1].isupper() else 0.0


def pieces_of(text: str, owner: int) -> list[Piece]:
    """The lines of a text that hold anything, long ones in parts."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) <= _PIECE_CHARS:
            if line and not line.isspace():
                found.append(Piece(line.rstrip().replace("\x00", " "), owner, number))
            continue
        for part, piece in enumerate(_parts(line)):
            found.append(Piece(piece, owner, number, part))
    return found


def _parts(line: str) -> Iterable[str]:
    start = 0
    while start < len(line):
        stop = start + _PIECE_CHARS
        if stop < len(line):
            space = line.rfind(" ", start + _PIECE_CHARS // 2, stop)
            stop = space + 1 if space >= 0 else stop
        yield line[start:stop].replace("\x00", " ")
        start = stop


def choose(
    pieces: Sequence[Piece],
    costs: Sequence[float],
    factors: Sequence[float],
    standing: Mapping[str, int],
    memo: Memo,
    room: float,
) -> list[int]:
    """The places of the pieces that should be taken, the most telling first, until they cost `room`.

    `costs` are their tokens, `factors` say what the text of each owner is worth; `standing` says how often a name stands
    in what is kept anyway. Of equal pieces the newest counts; the others come last.
    """
    named = _names_by_piece(pieces, memo)
    left = _worth_left(pieces, named, standing)
    seen: set[str] = set()
    repeated: list[int] = []
    heap: list[tuple[float, int]] = []
    rates = [0.0] * len(pieces)
    for place in range(len(pieces) - 1, -1, -1):
        text = pieces[place].text.strip()
        if text in seen:
            repeated.append(place)
            continue
        seen.add(text)
        names = named[place]
        weight = factors[pieces[place].owner] * (_TELLING_LINE if _TELLING in names else 1.0)
        rates[place] = weight / costs[place]
        gain = sum([value * left[name] for name, value in names]) + _PROSE * len(text)
        heap.append((-gain * rates[place], -place))
    heapify(heap)
    order: list[int] = []
    while heap and room > 0:
        before, negative = heap[0]
        place, names = -negative, named[-negative]
        # What was worth most may have become a repetition: it is taken only when it still is at today's worth.
        gain = sum([value * left[name] for name, value in names]) + _PROSE * len(pieces[place].text)
        value = -gain * rates[place]
        if value > before * _STILL:
            heapreplace(heap, (value, negative))
            continue
        heappop(heap)
        order.append(place)
        room -= costs[place]
        for name, _ in names:
            left[name] *= _AGAIN
    return [*order, *repeated] if room > 0 else order


def _names_by_piece(pieces: Sequence[Piece], memo: Memo) -> list[list[tuple[str, float]]]:
    """What `names_in` gives for each piece, in one go over all of them: that is several times as fast."""
    found: list[list[tuple[str, float]]] = []
    names: list[tuple[str, float]] = []
    for chunk in _CHUNK_OR_END.findall("\x00".join([piece.text for piece in pieces])):
        if chunk == "\x00":
            found.append(names)
            names = []
            continue
        known = memo.get(chunk)
        if known is None:
            known = memo[chunk] = _named(chunk)
        if known:
            names += known
    found.append(names)
    return found


def _worth_left(
    pieces: Sequence[Piece], named: Sequence[Sequence[tuple[str, float]]], standing: Mapping[str, int]
) -> dict[str, float]:
    """What naming each name is worth: more when several texts name it, less when it stands in the context already."""
    owners: dict[str, int] = {}
    texts: dict[str, int] = {}
    for piece, names in zip(pieces, named, strict=True):
        for name, _ in names:
            if owners.get(name) != piece.owner:
                owners[name] = piece.owner
                texts[name] = texts.get(name, 0) + 1
    return {
        name: (1 + _OFTEN * min(4, count - 1)) * _AGAIN ** standing.get(name, 0)
        for name, count in texts.items()
    }


def numbered(pieces: Iterable[Piece]) -> str:
    """Pieces of one text in their order; a line number stands where a new run of lines begins."""
    lines: list[str] = []
    before: Piece | None = None
    for piece in sorted(pieces, key=lambda piece: (piece.line, piece.part)):
        if before is not None and (piece.line, piece.part) == (before.line, before.part + 1):
            lines[-1] += piece.text
        elif before is not None and piece.line == before.line + 1 and not piece.part:
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
