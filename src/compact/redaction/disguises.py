"""Disguises: characters that a reader does not see, or sees as others, inside a secret or the name of a field.

`undisguise` gives the text as a reader sees it, so that rules find what they would find in it, and leads every position
back to the text as it is. Few texts have disguises in them; `DISGUISE_SIGN` tells which.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

_INVISIBLE = (
    r"\x00\x7f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode calls default ignorable: zero-width spaces and joiners, soft hyphens, variation selectors, tags. And the zeros
of UTF-16 that was read as ASCII."""
_COMBINING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
"""Accents and enclosures that stand on the character before them."""
_LOOKALIKE = (
    "ªº²³¹ſ\u0132\u0133\u01c7-\u01cc\u01f1-\u01f3\u02b0-\u02b8\u02e1-\u02e3\u1d2c-\u1d6a\u1d9c-\u1dbb\u2070-\u209c"
    "\u20a8\u2100-\u214f\u2160-\u217f\u2460-\u24ea\u2c7c\u2c7d\ufb00-\ufb06\ufe33\ufe34\ufe4d-\ufe4f\ufe63"
    "\U000107a5\U0001f100-\U0001f10a\U0001f110-\U0001f14f\U0001f16a-\U0001f16c\U0001f190"
)
"""Characters outside of the blocks below that become letters, digits, `_` or `-` under compatibility normalization (NFKC)."""
_WIDE = "\uff01-\uff19\uff1b\uff1c\uff1e-\uff5e\U0001d400-\U0001d7ff\U0001fbf0-\U0001fbf9"
"""Full-width forms, and the letters and digits of mathematics. The full-width `:` and `=` count only before a value that is
written in such characters or in ASCII: in Chinese and Japanese they are ordinary punctuation."""
_WIDE_LETTERS = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\U0001fbf0-\U0001fbf9"

_CODE = r"(?:\x1b|\\(?:x1[bB]|u001[bB]|033|e))(?:\[[0-9;:?]{0,24}[A-Za-z]|\(B)"
"""A code that colours a terminal or erases a line, as it is or as an escape in a string."""
_HIDDEN_ESCAPE = r"\\+u(?:0000|200[b-fB-F]|206[0-9a-fA-F]|feff|FEFF|00ad|00AD|202[a-eA-E]|fe0[0-9a-fA-F])"
"""An invisible character, as an escape in a string."""
_CHAR_ESCAPE = (
    r"\\+u00[2-7][0-9a-fA-F]|\\+x[2-7][0-9a-fA-F]|%[2-7][0-9a-fA-F]|&#(?:x[2-7][0-9a-fA-F]|[3-9]\d|1[012]\d);"
)
"""A visible ASCII character, as an escape in a string, in an address or in HTML."""
_LETTER_ESCAPE = (
    r"\\+u00(?:2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
    r"|\\+x(?:2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
    r"|%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
    r"|&#(?:x(?:2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])|4[58-9]|5[0-7]|6[5-9]|[78]\d|9[05789]|1[01]\d|12[012]);"
)
"""One that is a letter, a digit, `_`, `-` or `.`, which nobody has to escape."""

_TRIGGER = "|".join(
    (
        rf"[{_WIDE_LETTERS}]",
        rf"[!-~][{_INVISIBLE}{_COMBINING}]+[!-~]",
        rf"[A-Za-z0-9_-][{_LOOKALIKE}]|[{_LOOKALIKE}][A-Za-z0-9_-]",
        "[A-Za-z0-9_\"'码令][\uff1a\uff1d][ \\t]*[!-~]",
    )
)
_ASCII_TRIGGER = "|".join(
    (
        rf"[A-Za-z0-9_.=-](?:{_CODE})+[A-Za-z0-9_.=-]",
        _HIDDEN_ESCAPE,
        _LETTER_ESCAPE,
        r"[A-Za-z0-9]{8}(?:%2[bBfF]|\\+u002[bBfF]|\\/)[A-Za-z0-9]{8}",
    )
)
DISGUISE_SIGN = f"{_TRIGGER}|{_ASCII_TRIGGER}"
"""RE2 syntax, for UTF-8. It matches in every text in which `undisguise` matters, and in hardly any other."""
_DISGUISE = re.compile(
    rf"(?P<gone>[{_INVISIBLE}{_COMBINING}]+|{_CODE}|{_HIDDEN_ESCAPE})"
    rf"|(?P<wide>[{_WIDE}{_LOOKALIKE}]|[\uff1a\uff1d](?=[ \t]*[!-~{_WIDE_LETTERS}]))"
    rf"|(?P<slash>\\+/)|(?P<escape>{_CHAR_ESCAPE})"
)
_ESCAPED = re.compile(r"(?i)&#(?P<decimal>\d+);|[0-9a-f]{2}(?=;?\Z)")


@dataclass(frozen=True, slots=True)
class Undisguised:
    """A text as a reader sees it."""

    text: str
    _edges: tuple[int, ...]
    """Where pieces of `text` begin. A piece is unchanged, or stands for one disguise."""
    _starts: tuple[int, ...]
    """Where the pieces begin in the text as it is."""
    _ends: tuple[int, ...]
    """Where a piece that stands for a disguise ends in the text as it is; 0 for an unchanged piece."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Lead a span of `text` back to the text as it is."""
        first, last = self._piece(start), self._piece(max(start, end - 1))
        begins = self._starts[first] + (0 if self._ends[first] else start - self._edges[first])
        ends = self._ends[last] or self._starts[last] + end - self._edges[last]
        return begins, ends

    def _piece(self, position: int) -> int:
        return bisect_right(self._edges, position) - 1


def undisguise(text: str) -> Undisguised:
    """The text without its disguises."""
    pieces: list[str] = []
    edges, starts, ends = [0], [0], [0]
    done = length = 0
    for match in _DISGUISE.finditer(text):
        seen = _as_seen(match)
        if seen is None:
            continue
        start, end = match.span()
        length += start - done
        pieces += [text[done:start], seen]
        if seen:
            edges.append(length)
            starts.append(start)
            ends.append(end)
            length += len(seen)
        edges.append(length)
        starts.append(end)
        ends.append(0)
        done = end
    return Undisguised("".join([*pieces, text[done:]]), tuple(edges), tuple(starts), tuple(ends))


def without_disguise(name: str) -> str:
    """A short text, such as the name of a field, as a reader sees it."""
    return name if name.isascii() else undisguise(name).text


def _as_seen(match: re.Match[str]) -> str | None:
    """What a reader sees in place of a disguise; None if it is no disguise."""
    kind = match.lastgroup
    if kind == "gone":
        return ""
    if kind == "slash":
        return "/"
    if kind == "wide":
        return _compatible(match.group())
    escaped = _ESCAPED.search(match.group())
    if escaped is None:
        return None
    code = int(escaped["decimal"]) if escaped["decimal"] else int(escaped.group(), 16)
    return chr(code) if 0x21 <= code < 0x7F else None


@lru_cache(maxsize=2_048)
def _compatible(char: str) -> str | None:
    seen = unicodedata.normalize("NFKC", char)
    return seen if seen.isascii() and seen.isprintable() else None
