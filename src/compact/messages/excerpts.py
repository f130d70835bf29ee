"""Excerpts of long texts: the head, the tail where it matters, never half a character."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from compact.messages.cues import TELLING_END

_TAIL_CHARS = 2000
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


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
    if len(rows) <= lines and count(text) <= tokens:
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
