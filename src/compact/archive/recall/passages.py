"""Splits a stored text into parts, one for each speaker's turn, and these into units: a sentence, or a few short lines.

A unit is what search ranks. It never crosses the border of a part, so the same message gives the same units in the
histories of two steps. Headings, marks and blank lines of a page belong to no part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from compact.archive import keys
from compact.messages.message import FRAME_OPENS, RECALL_OPENS

UNIT_CHARS = 200
"""The most characters of a unit: about 50 tokens."""
_ENOUGH_CHARS = 80
"""A unit of this length ends at a blank line; shorter ones take in what follows."""
_LEAST_SENTENCE = 40
"""A shorter sentence stays with the next one."""

USER: Final = "user"
AGENT: Final = "agent"
TOOL: Final = "tool"
SUMMARY: Final = "summary"
"""A summary or ledger that compact wrote itself: a copy of what stands elsewhere."""
RECALL: Final = "recall"
"""An answer of the recall tools, which is also a copy."""

_HEADING = re.compile(r"## (\d+)(?:\. (\S+))?")
_CALL = re.compile(r"\*\*calls `(.+)`\*\* \((.*)\)")
_RESULT = re.compile(r"\*\*(?:result|error) of\*\* (.*)")
_MARK = re.compile(r"\*\*[\w-]+\*\*(?: \(sealed\))?|\[image[ ,].*\]")
_FENCE = re.compile(r"`{3,}")
_SENTENCE = re.compile(r"(?<=[.!?;。！？])[\"')\]*]*(?:\s+|(?<=[。！？]))")
_BREAK = re.compile(r"[\s,;(){}\[\]]")
_OUTPUT = re.compile(r"/(?P<tool>[^/]+?)_(?:(?:call|toolu|tooluse|fc)[_-].*|[^_]*_)[0-9a-f]{12,64}\.txt$")
_FRAME_ENDS = "</COMPACT-"


class Unit(NamedTuple):
    """A span of a text: `text[start:end]`."""

    start: int
    end: int
    line: int
    """Its first line, counted from 1."""
    column: int
    """Characters of the first line that come before it; more than 0 only inside long lines."""


@dataclass(slots=True)
class Part:
    """What one speaker says in one message, or a whole tool output."""

    speaker: str
    """`user`, `agent`, `tool NAME`, `summary`, `recall`, another role; empty if nobody knows."""
    message: int | None
    """The number of its message, counted from 1 as on the page."""
    units: list[Unit] = field(default_factory=list)


class _Line(NamedTuple):
    number: int
    start: int
    text: str
    """With its line break."""


def split(text: str, path: str) -> Iterator[Part]:
    """Split a file into parts, in order. Parts without text are left out."""
    lines = _lines(text)
    is_page = keys.history_step(path[1:]) is not None
    for part, body in _page_parts(lines) if is_page else [(Part(_speaker_of(path), None), lines)]:
        part.units.extend(_units(body))
        if part.units:
            yield part


def _lines(text: str) -> Iterator[_Line]:
    number, start = 0, 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        number += 1
        yield _Line(number, start, text[start:end])
        start = end


def _speaker_of(path: str) -> str:
    found = _OUTPUT.search(path) if path.startswith(f"/{keys.OUTPUTS}/") else None
    return f"{TOOL} {found['tool']}" if found else TOOL if keys.OUTPUTS in path else ""


# --- parts of a page


class _PageReader:
    """Reads the lines of a page and knows who speaks.

    What a tool said stands in a fence that no line of it can close, so nothing in it is taken for a heading or a mark.
    """

    def __init__(self) -> None:
        self.part = Part("", None)
        self._role = ""
        self._in_result = False
        self._names: dict[str, str] = {}
        self._fence = ""
        self._fence_is_due = False

    def opens_part(self, line: str) -> bool:
        """Read a line. Returns whether it begins a new part; the line itself may still belong to it."""
        before = self.part
        if self._fence:
            if line == self._fence:
                self._fence = ""
        elif self._fence_is_due and line:
            fence = _FENCE.match(line)
            self._fence, self._fence_is_due = fence.group() if fence else "", False
            if not fence:
                self._read(line)
        else:
            self._read(line)
        return self.part is not before

    def is_text(self, line: str) -> bool:
        """Whether a line is something that was said, not a mark of the page."""
        if self._fence:
            return line != self._fence and not line.startswith(self._fence)
        return not (
            line.startswith(_FRAME_ENDS) or any(mark.fullmatch(line) for mark in (_HEADING, _RESULT, _FENCE))
        )

    def relabel(self, speaker: str) -> None:
        """Say who really speaks in the part that was begun."""
        self.part.speaker = speaker

    def _read(self, line: str) -> None:
        number = self.part.message or 0
        heading = _HEADING.fullmatch(line) if line.startswith("## ") else None
        if heading is not None and heading[1] == str(number + 1):  # only that number: pages quote pages
            self._role = {"assistant": AGENT}.get(heading[2], heading[2] or "")
            self._begin(self._role, number + 1)
        elif call := _CALL.fullmatch(line):
            self._names[call[2]] = call[1]
            self._fence_is_due = True
        elif result := _RESULT.fullmatch(line):
            name = self._names.get(result[1])
            self._begin(f"{TOOL} {name}" if name else TOOL, number)
            self._in_result = self._fence_is_due = True
        elif _MARK.fullmatch(line):
            self._fence_is_due = line.startswith("**") and line != "**reasoning**"
        elif (self._in_result and self._role != TOOL and line) or (
            self.part.speaker == SUMMARY and line.startswith(_FRAME_ENDS)
        ):
            self._begin(self._role, number)

    def _begin(self, speaker: str, message: int) -> None:
        self.part = Part(speaker, message or None)
        self._in_result = False


def _page_parts(lines: Iterator[_Line]) -> Iterator[tuple[Part, list[_Line]]]:
    reader = _PageReader()
    body: list[_Line] = []
    part = reader.part
    for line in lines:
        text = line.text.rstrip("\n")
        if reader.opens_part(text):
            yield part, body
            part, body = reader.part, []
        if part.message is None or not reader.is_text(text):
            continue
        if not body and text:
            if text.startswith(FRAME_OPENS) and not part.speaker.startswith(TOOL):
                reader.relabel(SUMMARY)
            elif text.startswith(RECALL_OPENS) and part.speaker.startswith(TOOL):
                reader.relabel(RECALL)
        if text or body:
            body.append(line)
    yield part, body


# --- units of a part


def _units(lines: Iterator[_Line] | list[_Line]) -> Iterator[Unit]:
    """Gather short lines, and cut long ones, into units. None is longer than UNIT_CHARS; blank ones are left out."""
    unit: Unit | None = None
    for number, start, text in lines:
        if not text.strip():
            if unit is not None and unit.end - unit.start >= _ENOUGH_CHARS:
                yield unit
                unit = None
            continue
        if unit is not None and text.startswith("#"):
            yield unit
            unit = None
        for place, end in _sentences(text):
            if unit is not None and start + end - unit.start <= UNIT_CHARS:
                unit = unit._replace(end=start + end)
                continue
            if unit is not None:
                yield unit
            unit = Unit(start + place, start + end, number, place)
    if unit is not None:
        yield unit


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    """Divide a line into spans of at most UNIT_CHARS: whole sentences where possible, else whole words."""
    place = 0
    while len(line) - place > UNIT_CHARS:
        most = place + UNIT_CHARS
        ends = [found.end() for found in _SENTENCE.finditer(line, place + _LEAST_SENTENCE, most)]
        ends = ends or [found.end() for found in _BREAK.finditer(line, place + UNIT_CHARS // 2, most)]
        end = ends[-1] if ends else most
        yield place, end
        place = end
    yield place, len(line)
