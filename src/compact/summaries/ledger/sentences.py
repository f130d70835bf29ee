"""Sentences of what a person typed, verbatim. Pure, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BULLET = re.compile(r"[ \t]*(?:[-*•‣–+]|\d{1,3}[.)]|[a-z][.)]|\[[ xX]\])[ \t]+(?:\[[ xX]\][ \t]+)?")
_LABEL = re.compile(r"[ \t]*(?:\d{1,3}|[a-z])[.)][ \t]+")
_NEXT_LABEL = re.compile(r"[\s,;](?:\d{1,2}|[a-z])\)[ \t]")
_END = re.compile(
    r"[.!?…]+[)\]\"'”’»*_`]{0,4}(?=\s)|[。！？｡]+[」』”’)）]{0,3}|[।؟]+(?=\s|$)|[.!?…]+[\U0001F300-\U0001FAFF\u2600-\u27bf]"
)
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|resp|incl|excl|mr|mrs|ms|dr|prof|st|no|nr|fig|sec|ver|z\.\s?b|d\.\s?h|u\.\s?a|bzw|ca|ggf|usw|evtl|inkl|max|min|art|p\.\s?ej|p\.\s?ex"
    r"|ex|núm|pág|sr|sra|т\.\s?д|т\.\s?е|т\.\s?п|напр|np|tzn|m\.in|itd|bijv|d\.w\.z|vb|örn|[a-z]|\d{1,2})\.$",
    re.IGNORECASE,
)
_LONGEST = 1_000
"""Characters. What has no end for longer is cut at the next gap, so that nothing depends on the length of a message."""
_WRAPPED = 56
"""Characters. A line at least this long whose next line goes on in lower case was broken by an editor."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it stands in a message."""

    text: str
    """Verbatim, without the bullet of a list."""
    in_list: bool = False
    is_heading: bool = False
    """A line that announces what follows: it ends in a colon, or it has a heading's marks."""
    block: int = 0
    """The number of its paragraph."""
    label: str = ""
    """The number or the letter of a list's item, as it stands: "b) "."""

    @property
    def labelled(self) -> str:
        """The words with the number or the letter in front of them, which names what a reply is to."""
        return self.label + self.text


def sentences(paragraph: str, block: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph."""
    for line, in_list, label in _joined_lines(paragraph):
        stripped = line.strip()
        if not stripped:
            continue
        if stripped.startswith("#") and re.match(r"#{1,6} ", stripped):
            yield Sentence(stripped.lstrip("# "), is_heading=True, block=block)
            continue
        for number, piece in enumerate(_split(stripped)):
            announces = piece.endswith((":", "：", ":**", ":*"))
            yield Sentence(piece, in_list, announces, block, "" if number else label)


def _joined_lines(paragraph: str) -> Iterator[tuple[str, bool, str]]:
    """Lines without bullets, whether they had one, and its number or letter. A line that an editor broke stays one text with its line break in it."""
    held, in_list, last, label = [""], False, "", ""
    for line in paragraph.split("\n"):
        bullet = _BULLET.match(line)
        if bullet is not None and _LABEL.match(line) and _NEXT_LABEL.search(line, bullet.end()):
            bullet = None  # "a) EUR, b) 19%" is one line of words, no item
        begins = line.lstrip()[:1]
        if (
            bullet is None
            and last
            and len(last) >= _WRAPPED
            and begins
            and (begins.islower() or begins.isdigit() or begins in "`'\"(")
        ) or (bullet is None and in_list and line.startswith((" ", "\t")) and held != [""]):
            held.append(line)
        else:
            yield "\n".join(held), in_list, label
            in_list = bullet is not None
            label = bullet[0].lstrip() if bullet is not None and _LABEL.match(line) else ""
            held = [line[bullet.end() :] if bullet else line]
        last = "" if line.rstrip().endswith((".", "!", "?", ":")) else line
    yield "\n".join(held), in_list, label


def _split(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        if end.end() - start > _LONGEST:
            yield from _cut(text[start : end.end()])
            start = end.end()
            continue
        is_letter = end.start() - start == 1 and text[start].isupper()
        if (
            end[0].startswith(".")
            and not is_letter
            and _SHORTENED.search(text[max(start, end.start() - 8) : end.start() + 1])
        ):
            continue
        piece = text[start : end.end()].strip()
        if piece:
            yield piece
        start = end.end()
    yield from _cut(text[start:])


def _cut(text: str) -> Iterator[str]:
    """Pieces of at most `_LONGEST` characters."""
    text = text.strip()
    start = 0
    while len(text) - start > _LONGEST:
        gap = text.rfind(" ", start + 1, start + _LONGEST)
        end = gap if gap > start else start + _LONGEST
        yield text[start:end].strip()
        start = end
    if text[start:].strip():
        yield text[start:].strip()
