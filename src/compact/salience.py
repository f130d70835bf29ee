"""Which lines of a long text say most: those that name things which are named nowhere else. Pure and deterministic.

A line is worth the names in it: paths, identifiers, ids, numbers. A name that already stands in what is kept is worth
little more, so the lines that are chosen complement each other and repetition costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

_CHUNK = re.compile(r"[\w./@#-]{2,}")
_GREP_SUFFIX = re.compile(r"[-:]\d+[-:]?$")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_TELLING = re.compile(
    r"\b(?:def|class|func|function|fn|struct|interface|enum|type|const|export|module|impl|trait|"
    r"error|exception|failed|failure|fatal|panic|traceback|warning|assert\w*|expected|denied)\b|Error|Exception",
    re.IGNORECASE,
)
_AGAIN = 0.2
"""What a name is worth that stands in the context already, each time less."""
_TELLING_LINE = 1.4
"""Definitions and errors count more than other lines."""
_PIECE_CHARS = 240
"""A longer line is looked at piece by piece."""
_LEAST = 0.05
"""Value for each token below which a line is not worth its place while others wait."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A line of a text, or a part of a very long one."""

    text: str
    owner: int
    """Which text it is of."""
    line: int
    """Its line, counted from 1."""
    part: int = 0
    """Which part of the line."""


def names_in(text: str, memo: MutableMapping[str, tuple[tuple[str, float], ...]]) -> list[tuple[str, float]]:
    """The names in a text with what each is worth. `memo` remembers the answer for each chunk of characters."""
    found: list[tuple[str, float]] = []
    for chunk in _CHUNK.findall(text):
        known = memo.get(chunk)
        if known is None:
            known = memo[chunk] = _named(chunk)
        found += known
    return found


def _named(chunk: str) -> tuple[tuple[str, float], ...]:
    bare = _GREP_SUFFIX.sub("", chunk.strip(".-/@#")) or chunk
    if "/" in bare:
        return (bare, 0.6), (bare.rpartition("/")[2], 0.5)
    pieces = bare.split(".")
    if len(pieces) > 1 and all(pieces):
        return ((bare, _worth(bare)), *((piece, _worth(piece)) for piece in pieces if len(piece) > 3))
    return ((bare, _worth(bare)),) if len(bare) > 2 else ()


def _worth(name: str) -> float:
    if name.isdigit():
        return 0.1 if len(name) < 4 else 0.3
    if "_" in name.strip("_") or "." in name or _INNER_CAPITAL.search(name):
        return 1.0
    if any(map(str.isdigit, name)) or "-" in name:
        return 0.5
    return 0.2 if name[:1].isupper() else 0.05


def pieces_of(text: str, owner: int) -> list[Piece]:
    """The lines of a text that hold anything, long ones in parts."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) <= _PIECE_CHARS:
            if line and not line.isspace():
                found.append(Piece(line.rstrip(), owner, number))
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
        yield line[start:stop]
        start = stop


def choose(
    pieces: Sequence[Piece],
    costs: Sequence[float],
    factors: Sequence[float],
    standing: Mapping[str, int],
    memo: MutableMapping[str, tuple[tuple[str, float], ...]],
) -> list[int]:
    """The places of all pieces in the order in which they should be taken, the most telling first.

    `costs` are their tokens, `factors` say what the text of each owner is worth; `standing` says how often a name stands in what is kept anyway.
    """
    named = [dict(names_in(piece.text, memo)) for piece in pieces]
    often: dict[str, set[int]] = {}
    for piece, names in zip(pieces, named, strict=True):
        for name in names:
            often.setdefault(name, set()).add(piece.owner)
    worth = {name: 1 + 0.3 * min(4, len(owners) - 1) for name, owners in often.items()}
    covered = dict(standing)
    seen: set[str] = set()
    waiting: list[tuple[int, float]] = []
    order: list[int] = []
    repeated: list[int] = []
    for place in range(len(pieces) - 1, -1, -1):
        bare = pieces[place].text.strip()
        if bare in seen:
            repeated.append(place)  # the newest of equal lines is the one that counts
            continue
        seen.add(bare)
        factor = factors[pieces[place].owner]
        waiting.append((place, factor * _TELLING_LINE if _TELLING.search(bare) else factor))
    for least in _steps(waiting, named, worth, covered, costs):
        left = []
        for place, factor in waiting:
            value = factor * _gain(named[place], worth, covered) / costs[place]
            if value < least:
                left.append((place, factor))
                continue
            order.append(place)
            for name in named[place]:
                covered[name] = covered.get(name, 0) + 1
        waiting = left
    return [*order, *(place for place, _ in waiting), *repeated]


def _gain(names: Mapping[str, float], worth: Mapping[str, float], covered: Mapping[str, int]) -> float:
    return sum(
        value * worth[name] * (_AGAIN ** covered[name] if name in covered else 1.0)
        for name, value in names.items()
    )


def _steps(
    waiting: Sequence[tuple[int, float]],
    named: Sequence[Mapping[str, float]],
    worth: Mapping[str, float],
    covered: Mapping[str, int],
    costs: Sequence[float],
) -> list[float]:
    """Falling thresholds: each round takes what is worth at least so much for a token. Cheaper than always the best."""
    values = sorted(
        factor * _gain(named[place], worth, covered) / costs[place] for place, factor in waiting
    )
    if not values:
        return []
    quantiles = (0.97, 0.9, 0.8, 0.65, 0.5, 0.3)
    found = [max(_LEAST, values[min(len(values) - 1, int(len(values) * q))]) for q in quantiles]
    return [*dict.fromkeys([*found, _LEAST, _LEAST / 8])]


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
