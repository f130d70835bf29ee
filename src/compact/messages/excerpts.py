"""Excerpts of long texts: the head, the tail where it matters, or pieces with their line numbers. Pure, deterministic.

Which pieces are worth their room is chosen elsewhere (`summaries.choosing`). Splitting runs over everything that leaves a
context, so the loops over words run in C: text is mapped to words byte by byte.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

MAX_TOKEN_CHARS = 128
"""No token of any encoding is longer. A text with more characters than that for each token need not be counted."""
_TAIL_CHARS = 2000
ERRORS = "error|exception|failed|failure|fatal|traceback|panic"
"""Words of a failure, in the form of a pattern."""
_TELLING_END = re.compile(
    rf"{ERRORS}|fail|errno|exit code|total|summary|result|complete|finished|done|[}}\])]\s*$", re.IGNORECASE
)
"""What the end of an output contains if it says how things went: an error, a total, a closing brace."""
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_WORD_BYTES = bytes(
    n if n >= 128 or chr(n).isalnum() or chr(n) in "_./@#-\0" else ord(" ") for n in range(256)
)
_END = "\0"
"""Separates pieces while they are processed together."""
_ARROW = "\u2192"
"""Some tools put it between a line number and the line."""
_PIECE_CHARS = 240
"""Longer lines are split into parts."""
_JSON_CHARS = 200
"""Lines of JSON are split into parts of about this length, where an object begins or between its fields."""
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
    return _TELLING_END.search(text[-_TAIL_CHARS:]) is not None


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
        found.update(split_words(text))
    return found


def split_words(text: str) -> list[str]:
    """The words of a text, in order, split at spaces and at punctuation that no name contains."""
    return _spaced(text.replace(_END, " ")).split()


def split_lines(text: str) -> list[list[str]]:
    """The words of each line of a text."""
    return [line.split() for line in _spaced(text.replace(_END, " ").replace("\n", _END)).split(_END)]


def _spaced(text: str) -> str:
    """Replace everything that is not part of a word by a space; `_END` is kept."""
    raw = text.replace(_ARROW, " ").encode("utf-8", "replace")
    # A dot that ends a sentence is no part of the word before it.
    return raw.translate(_WORD_BYTES).replace(b". ", b" ").replace(b".\0", b"\0").decode("utf-8", "replace")


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
            parts = _json_parts(line) or _parts(line)
            found += [Piece(part, owner, number, n) for n, part in enumerate(parts)]
            continue
        if not group:
            first = number
        group.append(line.rstrip())
        size += len(line)
    if group:
        found.append(Piece("\n".join(group), owner, first))
    return found


def _json_parts(line: str) -> list[str]:
    """A line of JSON in parts: its keys and values in their order, without the signs of JSON. Empty if it is none."""
    bare = line.strip()
    if bare[:1] not in "{[" or bare[-1:] not in "}]":
        return []
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return []
    parts = [""]
    size = 0
    for text, opens in _leaves(value, ""):
        if size + len(text) > (_JSON_CHARS // 2 if opens else _JSON_CHARS):
            parts.append("")
            size = 0
        parts[-1] += text
        size += len(text)
    return [piece for part in parts for piece in _parts(part) if piece]


def _leaves(value: Any, key: str, opens: bool = False) -> Iterator[tuple[str, bool]]:
    """The leaves of a value as `key: value, `, and whether an object begins there."""
    named = f"{key}: " if key else ""
    if isinstance(value, dict) and value:
        yield named, True
        for inner, each in value.items():
            yield from _leaves(each, inner)
    elif isinstance(value, list) and value:
        yield named, False
        for each in value:
            yield from _leaves(each, "")
    else:
        yield f"{named}{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}, ", opens


def _parts(line: str) -> Iterable[str]:
    start = 0
    while start < len(line):
        stop = start + _PIECE_CHARS
        if stop < len(line):
            space = line.rfind(" ", start + _PIECE_CHARS // 2, stop)
            stop = space + 1 if space >= 0 else stop
        yield line[start:stop]
        start = stop


def split_pieces(pieces: Sequence[Piece]) -> list[list[str]]:
    """The different words of each piece, in order."""
    if not pieces:
        return []
    joined = _spaced(_END.join([piece.text.replace(_END, " ") for piece in pieces]))
    return [list(dict.fromkeys(words.split())) for words in joined.split(_END)]


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
