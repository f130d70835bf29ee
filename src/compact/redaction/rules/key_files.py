"""Private keys in key files: whole, cut off, shown with line numbers, or in pieces without a first or last line."""

from __future__ import annotations

import re
import string
from base64 import b64decode
from typing import NamedTuple

from compact.redaction.rules.edges import is_glued
from compact.redaction.rules.matches import Bounds, Candidate
from compact.redaction.shapes import surprise

_LONGEST_KEY = 200_000
_LONGEST_PUBLIC_BLOCK = 20_000
_LONGEST_LINE = 240
_LONGEST_HEAD = 60
_MOST_BLANK_LINES = 3
_LEAST_DATA = 20
_WIDTHS = (64, 70)
"""The widths of the lines in key files: OpenSSL, PuTTY and GnuPG write 64 characters, OpenSSH 70."""
_SHORTEST_DATA, _SHORTEST_PIECE = 16, 8
_RANDOM_SURPRISE, _MIXED_SURPRISE = 0.35, 0.2

_NEW_LINE = re.compile(r"\r?\n|\\+[rn]|%0[AaDd]")
"""The end of a line, in a file, in a string that holds one, or in an address."""
_TAIL = " \t\"',;\\"
"""What follows the line of a key in source code."""
_BASE64 = string.ascii_letters + string.digits + "+/"
_RUN = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_HEADER = re.compile(r"[\w-]+:[^\n]{0,160}")
_REST = re.compile(r"(?:[^\S\n]*[A-Za-z0-9+/=]{16,})+")
"""The rest of a key on a line that goes on with other words, or on a line that the whole key was folded into."""
_IN_DATA = re.compile(r"/\Z|[A-Za-z0-9+/]\+\Z")
"""What precedes a piece of a longer line. A single plus is the mark of a diff."""
_PUBLIC_BEGIN = re.compile(r"-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE)")
_OTHER_DATA = re.compile(
    r"iVBORw0K|R0lGOD|/9j/4|JVBERi0|UEsDB|H4sIA|Qk0|AAABAA|UklGR|SUkq|T2dnU|d09G|PHN2Z|PD94b|QlpoO|/Td6W|KLUv|AGFzb|data:"
)
"""How pictures, documents, fonts and archives begin in base64."""


class _Line(NamedTuple):
    """A line, and the base64 at its end. What a tool puts before it is a number, a time, a mark of a diff or a quote."""

    start: int
    data_start: int
    data_end: int
    end: int
    """Just after the line break."""

    @property
    def is_blank(self) -> bool:
        return self.data_start == self.data_end == self.start


def private_key(found: Candidate) -> Bounds:
    """Mask from the BEGIN line to the END line, or every line of a key that was cut off."""
    text, body = found.text, found.match_end
    limit = min(len(text), body + _LONGEST_KEY)
    dashes = text.find("-----", body, limit)
    if dashes >= 0 and text.startswith("-----END", dashes):
        close = text.find("-----", dashes + 8, dashes + 120)
        end = close + 5 if close >= 0 else dashes + 8
        stop = dashes
    else:
        end = stop = _end_of_cut_key(text, body, dashes if dashes >= 0 else limit)
    if sum(char in _BASE64 for char in text[body : min(stop, body + 400)]) < _LEAST_DATA:
        return None
    return found.start, end


def _end_of_cut_key(text: str, start: int, limit: int) -> int:
    end = position = start
    while position < limit:
        line = _read_line(text, position, limit)
        if line is None:
            break
        size = line.data_end - line.data_start
        is_data = size >= _SHORTEST_DATA or text[line.data_end - 1 : line.data_end] == "="
        if is_data:
            end = line.data_end
        elif not line.is_blank and not _HEADER.match(text, position, line.end):
            break
        position = line.end
    rest = _REST.match(text, position, limit)
    return rest.end() if rest else end


def key_start(found: Candidate) -> Bounds:
    """Mask a key that is known by its first characters, with the lines that follow."""
    limit = min(len(found.text), found.start + _LONGEST_KEY)
    line = _read_line(found.text, found.start, limit)
    if line is None or line.data_start != found.start:
        return found.bounds
    return found.start, max(found.end, _end_of_lines(found.text, line, limit))


def key_end(found: Candidate) -> Bounds:
    """Mask the lines that lead up to an END line. Where the BEGIN line is there too, they are masked anyway."""
    last = _line_before(found.text, found.start)
    if last is None or _is_word(found.text[last.data_start : last.data_end]):
        return None
    return _start_of_lines(found.text, last.data_start), found.end


def key_lines(found: Candidate) -> Bounds:
    """Mask lines of a key without its BEGIN and END lines.

    Lines that stand in a block of another kind (a certificate, a public key), or that are a picture, are left alone.
    """
    text, start = found.text, found.start
    run = _RUN.match(text, start, start + _WIDTHS[-1] + 1)
    data = run.group() if run else ""
    if len(data) not in _WIDTHS or is_glued(text, start) or _IN_DATA.search(text, max(0, start - 2), start):
        return None
    if not _is_key_data(data):
        return None
    limit = min(len(text), start + _LONGEST_KEY)
    line = _read_line(text, start, limit)
    if line is None or line.data_end != start + len(data):
        return None
    before = _line_before(text, start)
    above = text[before.data_start : before.data_end] if before else ""
    if len(above) == len(data) and _is_key_data(above):
        return None  # the first line of the block was judged for all of them
    first = before.data_start if before and _belongs(above) else start
    last = _end_of_lines(text, line, limit)
    is_alone = len(text) <= _LONGEST_LINE and len(text.strip()) < len(data) + _SHORTEST_PIECE
    if (first == start and last == line.data_end and not is_alone) or _is_other_block(text, first):
        return None
    return first, last


def _read_line(text: str, start: int, limit: int) -> _Line | None:
    """Read the line that starts at `start`. Return None if it is too long."""
    stop = min(limit, start + _LONGEST_LINE)
    new_line = _NEW_LINE.search(text, start, stop)
    if new_line is None and stop < limit:
        return None
    close, end = new_line.span() if new_line else (stop, stop)
    line = text[start:close].rstrip(_TAIL)
    if line.endswith("+") and (len(line) == 1 or line[-2] in _TAIL):
        line = line[:-1].rstrip(_TAIL)  # strings that are put together
    head = line.rstrip("=").rstrip(_BASE64)
    return _Line(start, start + len(head), start + len(line), end)


def _line_before(text: str, start: int) -> _Line | None:
    """Read the line before the one that `start` is in, blank lines left out."""
    first = max(0, start - 2 * _LONGEST_LINE)
    breaks = [found.span() for found in _NEW_LINE.finditer(text, first, start)]
    if not breaks or start - breaks[-1][1] > _LONGEST_HEAD:
        return None
    begins = [first, *(end for _, end in breaks)]
    for place in range(len(breaks) - 1, max(-1, len(breaks) - 2 - _MOST_BLANK_LINES), -1):
        line = _read_line(text, begins[place], breaks[place][1])
        if line is None or not line.is_blank:
            return line
    return None


def _end_of_lines(text: str, line: _Line, limit: int) -> int:
    """Where the lines of a key come to an end that begin with `line`."""
    end, blanks = line.data_end, 0
    is_full = line.data_end - line.data_start >= _WIDTHS[0]
    while is_full and line.end < limit and blanks <= _MOST_BLANK_LINES:
        following = _read_line(text, line.end, limit)
        if following is None:
            break
        line = following
        if line.is_blank:
            blanks += 1
            continue
        if not _belongs(text[line.data_start : line.data_end]):
            break
        end, blanks = line.data_end, 0
        is_full = line.data_end - line.data_start >= _WIDTHS[0]
    return end


def _start_of_lines(text: str, start: int) -> int:
    """Where the lines of a key begin that lead up to `start`."""
    limit = max(0, start - _LONGEST_KEY)
    while start > limit:
        before = _line_before(text, start)
        if before is None or not _belongs(text[before.data_start : before.data_end]):
            break
        start = before.data_start
    return start


def _is_key_data(data: str) -> bool:
    """Whether it is random, no number in hexadecimal digits, and no text in base64."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, data)) for kind in kinds) or surprise(data) < _RANDOM_SURPRISE:
        return False
    beyond_hex = sum(char not in string.hexdigits for char in data)
    return beyond_hex * 4 >= len(data) and not b64decode(data[: len(data) // 4 * 4]).isascii()


def _belongs(data: str) -> bool:
    """Whether it may be the first or the last line of a piece of a key, or one between."""
    if data.endswith("="):
        return True
    least = _RANDOM_SURPRISE if data.isalpha() else _MIXED_SURPRISE
    return not _is_word(data) and surprise(data) >= least


def _is_word(data: str) -> bool:
    """Whether it is short, or letters in the case of a word."""
    if len(data) < _SHORTEST_PIECE:
        return not data.endswith("=")
    return data.isalpha() and (data.islower() or data[1:].islower() or data.isupper())


def _is_other_block(text: str, start: int) -> bool:
    before = text[max(0, start - _LONGEST_PUBLIC_BLOCK) : start + 8]
    begun = before.rfind("-----BEGIN")
    in_public = begun > before.rfind("-----END") and _PUBLIC_BEGIN.match(before, begun) is not None
    return in_public or _OTHER_DATA.search(before, max(0, len(before) - 60)) is not None
