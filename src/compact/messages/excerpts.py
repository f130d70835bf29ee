"""Excerpts of long texts: the head, the tail where it matters, or the most informative lines. Pure, deterministic.

The most informative lines are those that name things found nowhere else. The worth of a line is that of the names in it:
paths, identifiers, ids, numbers. A name that is already kept is worth little, so the chosen lines complement each other and
repetitions are not chosen.

Choosing lines runs over everything that leaves a context, so the loops over words run in C: text is mapped to words byte by
byte, and the worth of a line is a sum over a table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from compact.messages.cues import TELLING_END, TELLING_WORDS

MAX_TOKEN_CHARS = 128
"""No token of any encoding is longer. A text with more characters than that for each token need not be counted."""
_TAIL_CHARS = 2000
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
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


def safe_cut(text: str, place: int) -> int:
    """The last position up to `place` where a cut does not split a visible character."""
    place = max(0, min(place, len(text)))
    while 0 < place < len(text) and _joins(text[place - 1], text[place]):
        place -= 1
    return place


def _joins(left: str, right: str) -> bool:
    if right.isascii() and left.isascii():
        return left == "\r" and right == "\n"
    return (
        unicodedata.combining(right) != 0
        or unicodedata.category(right) in ("Mn", "Me", "Mc")
        or right in _JOINERS
        or left == "\u200d"
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff")
    )


def tail_matters(text: str) -> bool:
    """Whether the end of a text says how things went: an error, a total, a closing brace."""
    return TELLING_END.search(text[-_TAIL_CHARS:]) is not None


def fitting_head(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """About the longest beginning of a text that has at most `tokens` tokens, in whole characters."""
    return text[: _fitting(text, tokens, count, from_end=False)]


def fitting_tail(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """About the longest end of a text that has at most `tokens` tokens, in whole characters."""
    return text[len(text) - _fitting(text, tokens, count, from_end=True) :]


def head_and_tail(text: str, tokens: int, count: Callable[[str], int], note: str) -> str:
    """Cut a text to `tokens` tokens: its head, `note`, and its tail if that matters.

    The head ends with a line if a line ends nearby. If there is no room for more, the result is the note alone.
    """
    room = tokens - count(note) - 4
    if room <= 0:
        return note
    tail_room = room * 3 // 10 if tail_matters(text) else 0
    head = _to_line_end(fitting_head(text, room - tail_room, count))
    tail = fitting_tail(text[len(head) :], tail_room, count) if tail_room else ""
    return "\n".join(piece for piece in (head, note, tail) if piece)


def preview(text: str, lines: int, tokens: int, count: Callable[[str], int]) -> str:
    """The first lines of a text, and the last ones if they matter, within a number of tokens."""
    rows = text.splitlines()
    if len(rows) <= lines and len(text) <= tokens * MAX_TOKEN_CHARS and count(text) <= tokens:
        return text
    tail_lines = min(3, lines // 3) if len(rows) > lines and tail_matters(text) else 0
    head = "\n".join(rows[: lines - tail_lines])
    tail = "\n".join(rows[len(rows) - tail_lines :]) if tail_lines else ""
    hidden = len(rows) - lines
    note = f"... ({hidden:,} more lines)" if hidden > 0 else "... (cut)"
    tail_room = tokens // 3 if tail else 0
    head = fitting_head(head, tokens - tail_room, count)
    tail = fitting_tail(tail, tail_room, count)
    return "\n".join(piece for piece in (head, note, tail) if piece)


def _fitting(text: str, tokens: int, count: Callable[[str], int], *, from_end: bool) -> int:
    """How many characters fit, within a few percent and never too many. Guesses lengths to save counting."""
    if tokens <= 0 or not text:
        return 0
    size = len(text)
    guess = min(size, tokens * 4)
    best = 0
    for _ in range(6):
        guess = size - safe_cut(text, size - guess) if from_end else safe_cut(text, guess)
        guess = min(guess, size)
        found = count(text[size - guess :] if from_end else text[:guess])
        if found <= tokens:
            best = max(best, guess)
            if guess == size or found * 20 >= tokens * 19:
                break
            guess = min(size, max(guess + 1, guess * tokens // max(found, 1)))
        else:
            guess = max(best, guess * tokens * 31 // (found * 32))
            if guess <= best:
                break
    if from_end:
        # Moving the cut back to a whole character made the tail longer; shorten it until it fits.
        while best and count(text[size - best :]) > tokens:
            best -= 1
    return best


def _to_line_end(text: str) -> str:
    place = text.rfind("\n")
    return text[:place] if place >= len(text) * 4 // 5 and place > 0 else text


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
    if not pieces:
        return []
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
