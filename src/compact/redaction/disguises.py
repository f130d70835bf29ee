"""Disguises: characters that a reader does not see, or sees as others, inside a secret or the name of a field.

`undisguise` gives the text as a reader sees it, so that rules find what they would find in it, and leads every position
back to the text as it is. Few texts have disguises in them; `DISGUISE_SIGN` tells which.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from compact.redaction.rules.matches import Finding
from compact.redaction.rules.patterns import re2_options

_INVISIBLE = (
    r"\x00-\x07\x0e-\x1a\x1c-\x1f\x7f"
    "\u0080-\u0084\u0086-\u009f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode calls default ignorable: zero-width spaces and joiners, soft hyphens, variation selectors, tags. And control
characters that are neither blanks nor line breaks, among them the zeros of UTF-16 that was read as ASCII."""
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

_ESC = r"(?:\x1b|\^\[|\\+(?:[xX]1[bB]|u001[bB]|U0000001[bB]|u\{0*1[bB]\}|033|e))"
"""The character that begins a code of a terminal: as it is, as terminals show it, or as an escape in a string."""
_OSC_END = rf"(?:\x07|\^G|\\+(?:a|[xX]07|u0007|007)|{_ESC}\\+)"
_CODE = rf"{_ESC}(?:\[[0-?]*[ -/]*[@-~]|[()][0-9A-Za-z]|\][^\x00-\x1f\\^]*{_OSC_END})"
"""A code that colours a terminal, erases a line or makes a link."""
_INLINE_TAG = (
    r"(?i:</?(?:a|abbr|b|bdi|bdo|big|code|del|em|font|i|ins|kbd|mark|nobr|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr)"
    r"(?:[ \t][^<>\n]*)?/?>)|<!--[^<>\n]*-->"
)
"""A tag that a browser shows nothing of between two letters. Other words in angle brackets stand for something."""

_LETTER_HEX = r"(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])"
_LETTER_OCTAL = r"(?:05[56]|06[0-7]|07[01]|10[1-7]|1[1256][0-7]|13[0-27]|14[1-7]|17[0-2])"
_LETTER_DECIMAL = r"(?:4[5-689]|5[0-7]|6[5-9]|[78]\d|9[05789]|1[01]\d|12[012])"
_LETTER_ESCAPE = (
    rf"(?:\\+(?:u00{_LETTER_HEX}|U000000{_LETTER_HEX}|[ux]\{{0*{_LETTER_HEX}\}}|x{_LETTER_HEX}|{_LETTER_OCTAL})"
    rf"|%(?:25)*{_LETTER_HEX}|&(?:amp;)*#(?:[xX]0*{_LETTER_HEX}|0*{_LETTER_DECIMAL});"
    r"|&(?:amp;)*(?:lowbar|UnderBar|period);)"
)
"""A letter, a digit, `_`, `-` or `.`, which nobody has to escape, as an escape in a string, in an address or in HTML."""
_HIDDEN_HEX = r"(?i:000[0-8ef]|001[0-9acdef]|00ad|034f|061c|115f|1160|180[b-f]|200[b-f]|202[a-e]|206[0-9a-f]|3164|fe0[0-9a-f]|feff|ffa0)"
_HIDDEN_ESCAPE = (
    rf"(?:\\+(?:u{_HIDDEN_HEX}|U0000{_HIDDEN_HEX}|[ux]\{{0*{_HIDDEN_HEX}\}}|[ux]\{{(?i:ad)\}})"
    r"|(?i:\\+xe2\\+x8[01]\\+x[89ab][0-9a-f]|\\+xef\\+xbb\\+xbf|\\+xc2\\+xad)"
    r"|\\+342\\+20[01]\\+2\d\d|\\+357\\+273\\+277|\\+302\\+255"
    r"|(?i:%(?:25)*e2%(?:25)*8[01]%(?:25)*[89ab][0-9a-f]|%(?:25)*ef%(?:25)*bb%(?:25)*bf|%(?:25)*c2%(?:25)*ad)"
    rf"|&(?:amp;)*#(?:[xX]0*(?:{_HIDDEN_HEX}|(?i:ad))|0*(?:173|847|1564|820[3-7]|823[4-8]|82(?:8[89]|9\d)|830[0-3]|65279));"
    r"|&(?:amp;)*(?:shy|zwn?j|ZeroWidthSpace|NoBreak|lrm|rlm|af|ic|it|ApplyFunction|InvisibleComma|InvisibleTimes);)"
)
"""An invisible character, written in one of these ways or as the escaped bytes of its UTF-8."""
_CONTROL_ESCAPE = r"\\+x(?i:0[0-8ef]|1[0-9acdef]|7f)"
_TOKEN = "[A-Za-z0-9_.=-]"

_TRIGGER = "|".join(
    (
        rf"[{_WIDE_LETTERS}]",
        rf"[!-~][{_INVISIBLE}{_COMBINING}\x08]+[!-~]",
        rf"[A-Za-z0-9_-][{_LOOKALIKE}]|[{_LOOKALIKE}][A-Za-z0-9_-]",
        "[A-Za-z0-9_\"'码令][\uff1a\uff1d][ \\t]*[!-~]",
    )
)
_ASCII_TRIGGER = "|".join(
    (
        rf"{_TOKEN}(?:{_CODE}|{_INLINE_TAG}|{_CONTROL_ESCAPE})+{_TOKEN}",
        rf"{_TOKEN}\\\r?\n{_TOKEN}",
        _HIDDEN_ESCAPE,
        # One such escape alone stands in ordinary text too: `%4d` of a format.
        rf"{_TOKEN}{_TOKEN}{_TOKEN}{_LETTER_ESCAPE}",
        rf"{_LETTER_ESCAPE}(?:{_TOKEN}{_TOKEN}{_TOKEN}|{_TOKEN}?{_TOKEN}?{_LETTER_ESCAPE})",
        r"[A-Za-z0-9]{8}(?:%2[bBfF]|\\+u002[bBfF]|\\/)[A-Za-z0-9]{8}",
    )
)
DISGUISE_SIGN = f"{_TRIGGER}|{_ASCII_TRIGGER}"
"""RE2 syntax, for UTF-8. It matches in every text in which `undisguise` matters, and in hardly any other."""


_FIRST = re.compile(rf"[\\%&<^\x08\x1b{_INVISIBLE}{_COMBINING}{_WIDE}{_LOOKALIKE}\uff1a\uff1d]")
"""What a disguise begins with. Nothing else is tried elsewhere, so clean text costs next to nothing."""
_SHORT_CODE = _CODE.replace(r"\\+", r"\\{1,8}")
_UTF8 = r"\\{1,8}x[c-f][0-9a-f](?:\\{1,8}x[89ab][0-9a-f]){1,3}|%(?:25)*[c-f][0-9a-f](?:%(?:25)*[89ab][0-9a-f]){1,3}"
_ESCAPE = re.compile(
    rf"(?P<gone>(?-i:{_SHORT_CODE})|(?<={_TOKEN})\\\r?\n(?={_TOKEN}))|(?P<slash>\\{{1,8}}/)"
    rf"|(?P<utf8>{_UTF8})|(?P<octals>\\{{1,8}}3[0-7]{{2}}(?:\\{{1,8}}2[0-7]{{2}}){{1,3}})"
    r"|(?P<hex>\\{1,8}(?:[ux]\{[0-9a-f]{1,8}\}|(?-i:u)[0-9a-f]{4}|(?-i:U)[0-9a-f]{8}|x[0-9a-f]{2})"
    r"|%(?:25)*[0-9a-f]{2}|&(?:amp;)*#x[0-9a-f]{1,12};)"
    r"|(?P<octal>\\{1,8}[01][0-7]{2})|(?P<decimal>&(?:amp;)*#\d{1,12};)|(?P<named>&(?:amp;)*[a-z]{2,16};)",
    re.IGNORECASE,
)
_UNSEEN = re.compile(
    rf"(?P<gone>[{_INVISIBLE}{_COMBINING}]+|{_SHORT_CODE}|\x1b|\x08+)"
    rf"|(?P<wide>[{_WIDE}{_LOOKALIKE}]|[\uff1a\uff1d](?=[ \t]*[!-~{_WIDE_LETTERS}]))"
)
_TAG = re.compile(rf"(?P<gone>(?<=[A-Za-z0-9_.=>-])(?:{_INLINE_TAG})(?=[A-Za-z0-9_.<-]))")
_BY_FIRST = {"\\": _ESCAPE, "%": _ESCAPE, "&": _ESCAPE, "<": _TAG}
_DIGITS = re.compile(r"[0-9a-fA-F]+(?=[;}]?\Z)")
_PERCENT = re.compile(r"%(?:25)+(?=[0-9a-fA-F]{2})")
_OCTETS = {"utf8": re.compile(r"[0-9a-fA-F]{2}(?=[\\%]|\Z)"), "octals": re.compile(r"[0-7]{3}")}
_NAMED = {"lowbar": "_", "UnderBar": "_", "period": "."} | dict.fromkeys(
    (
        *("shy", "zwj", "zwnj", "ZeroWidthSpace", "NoBreak", "lrm", "rlm", "af", "ic", "it"),
        *("ApplyFunction", "InvisibleComma", "InvisibleTimes"),
    ),
    "",
)


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
    for first in _FIRST.finditer(text):
        start = first.start()
        match = _BY_FIRST.get(first[0], _UNSEEN).match(text, start) if start >= done else None
        seen = _as_seen(match) if match else None
        if match is None or seen is None:
            continue
        end = match.end()
        if first[0] == "\b":  # each takes back the character before it
            start -= min(end - start, start - done)
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


def is_disguised(text: str) -> bool:
    """Whether `undisguise` matters for a text."""
    return _sign().search(text.encode("utf-8", "replace")) is not None


def find_as_seen(text: str, find: Callable[[str], list[Finding]]) -> list[Finding]:
    """What is found in a text as it is, and as a reader sees it. Every finding is a span of the text as it is."""
    found = find(text)
    if not is_disguised(text):
        return found
    seen = undisguise(text)
    spans = ((each, seen.span(each.start, each.end)) for each in find(seen.text))
    return found + [each._replace(start=start, end=end) for each, (start, end) in spans]


def without_disguise(name: str) -> str:
    """A short text, such as the name of a field, as a reader sees it."""
    return undisguise(name).text if _FIRST.search(name) else name


def _as_seen(match: re.Match[str]) -> str | None:
    """What a reader sees in place of a disguise; None if it is no disguise."""
    kind, written = match.lastgroup, match.group()
    if kind == "gone":
        return ""
    if kind == "slash":
        return "/"
    if kind == "wide":
        return _compatible(written)
    if kind == "named":
        return _NAMED.get(written[1:-1].rpartition(";")[2])
    if kind in ("utf8", "octals"):
        base = 16 if kind == "utf8" else 8
        codes = bytes(int(code, base) for code in _OCTETS[kind].findall(_PERCENT.sub("%", written)))
        try:
            char = codes.decode()
        except UnicodeDecodeError:
            return None
        return _shown(ord(char)) if len(char) == 1 else None
    digits = _DIGITS.search(written)
    if digits is None:
        return None
    number = digits[0][-2:] if written[0] == "%" else digits[0]
    return _shown(int(number, {"octal": 8, "decimal": 10}.get(kind or "", 16)))


def _shown(code: int) -> str | None:
    """What a reader sees of an escaped character; None if it is an ordinary one outside ASCII, or a blank."""
    if 0x21 <= code < 0x7F:
        return chr(code)
    if code > sys.maxunicode or code in (0x08, 0x1B):
        return None
    unseen = _UNSEEN.fullmatch(chr(code))
    return _as_seen(unseen) if unseen else None


@lru_cache(maxsize=1)
def _sign() -> Any:
    return re2.compile(DISGUISE_SIGN, re2_options())


@lru_cache(maxsize=2_048)
def _compatible(char: str) -> str | None:
    seen = unicodedata.normalize("NFKC", char)
    return seen if seen.isascii() and seen.isprintable() else None
