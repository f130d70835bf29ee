"""Private keys in key files: whole, cut off, shown with line numbers, or in pieces without a first or last line."""

from __future__ import annotations

import re
import string
from base64 import b64decode

from compact.redaction.rules.edges import is_glued
from compact.redaction.rules.matches import Bounds, Candidate
from compact.redaction.shapes import surprise

_LONGEST_KEY = 200_000
_LONGEST_PUBLIC_BLOCK = 20_000
_LEAST_DATA = 20
_WIDTHS = (64, 70)
"""The widths of the lines in key files: OpenSSL, PuTTY and GnuPG write 64 characters, OpenSSH 70."""
_SHORTEST_PIECE = 8
_RANDOM_SURPRISE, _MIXED_SURPRISE = 0.35, 0.2

_TAIL = r"(?:[ \t\"',;\\]\+?){0,8}?"
_NEW_LINE = rf"(?:{_TAIL}(?:\r?\n|\\+[rn]|%0[AaDd])){{1,4}}"
_BREAK = rf"(?:{_NEW_LINE}|{_TAIL}\Z)"
"""The end of a line, in a file, in a string that holds one, or in an address."""
_HEAD = r"(?:[^\n]{0,60}?[\s\"'`:|>→,(\[=+-])??"
"""What a tool puts before a line: its number, a time, a mark of a diff or a quote."""
_PEM_LINE = re.compile(
    rf"{_HEAD}(?:[A-Za-z0-9+/=\\]{{16,}}|[A-Za-z0-9+/]+={{1,2}}|=[A-Za-z0-9+/]{{4}}|[\w-]+:[^\n]{{0,120}}|){_BREAK}"
)
_PEM_REST = re.compile(r"(?:[^\S\n]*[A-Za-z0-9+/=]{16,})+")
"""The rest of a key on a line that goes on with other words, or on a line that the whole key was folded into."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=]")
_LINE = re.compile(rf"{_HEAD}(?P<data>[A-Za-z0-9+/]{{4,}}={{0,2}})(?P<break>{_BREAK})")
_LINE_BEFORE = re.compile(
    rf"(?:\A|[\n\"'`]|\\[nr]|%0[AaDd])[^\n]{{0,60}}?(?P<data>[A-Za-z0-9+/]{{4,80}}={{0,2}}){_NEW_LINE}[^\n]{{0,60}}?\Z"
)
_BEFORE_CHARS = 260
_IN_DATA = re.compile(r"/\Z|[A-Za-z0-9+/]\+\Z")
"""What precedes a piece of a longer line. A single plus is the mark of a diff."""
_PUBLIC_BEGIN = re.compile(r"-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE)")
_OTHER_DATA = re.compile(
    r"iVBORw0K|R0lGOD|/9j/4|JVBERi0|UEsDB|H4sIA|Qk0|AAABAA|UklGR|SUkq|T2dnU|d09G|PHN2Z|PD94b|QlpoO|/Td6W|KLUv|AGFzb|data:"
)
"""How pictures, documents, fonts and archives begin in base64."""


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
    if len(_BASE64.findall(text[body : min(stop, body + 400)])) < _LEAST_DATA:
        return None
    return found.start, end


def _end_of_cut_key(text: str, start: int, limit: int) -> int:
    end = start
    while end < limit:
        line = _PEM_LINE.match(text, end, limit)
        if line is None or line.end() == end:
            break
        end = line.end()
    rest = _PEM_REST.match(text, end, limit)
    if rest is not None:
        end = rest.end()
    return start + len(text[start:end].rstrip())


def key_start(found: Candidate) -> Bounds:
    """Mask a key that is known by its first characters, with the lines that follow."""
    line = _LINE.match(found.text, found.start)
    return found.start, max(found.end, _end_of_lines(found.text, line, found.start) if line else 0)


def key_end(found: Candidate) -> Bounds:
    """Mask the lines that lead up to an END line. Where the BEGIN line is there too, they are masked anyway."""
    last = _LINE_BEFORE.search(found.text, max(0, found.start - _BEFORE_CHARS), found.start)
    if last is None or _is_word(last["data"]):
        return None
    return _start_of_lines(found.text, last.start("data")), found.end


def key_lines(found: Candidate) -> Bounds:
    """Mask lines of a key without its BEGIN and END lines.

    Lines that stand in a block of another kind (a certificate, a public key), or that are a picture, are left alone.
    """
    text, start = found.text, found.start
    line = _LINE.match(text, start)
    if line is None or line.start("data") != start or not _is_key_data(line["data"]):
        return None
    if (
        len(line["data"]) not in _WIDTHS
        or is_glued(text, start)
        or _IN_DATA.search(text, max(0, start - 2), start)
    ):
        return None
    first, last = _start_of_lines(text, start), _end_of_lines(text, line, start)
    is_alone = len(text.strip()) - len(line["data"]) < _SHORTEST_PIECE
    if (first == start and last == line.end("data") and not is_alone) or _is_other_block(text, first):
        return None
    return first, last


def _is_key_data(data: str) -> bool:
    """Whether it is random, no number in hexadecimal digits, and no text in base64."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, data)) for kind in kinds) or surprise(data) < _RANDOM_SURPRISE:
        return False
    beyond_hex = sum(char not in string.hexdigits for char in data)
    return beyond_hex * 4 >= len(data) and not b64decode(data[: len(data) // 4 * 4]).isascii()


def _end_of_lines(text: str, line: re.Match[str], start: int) -> int:
    """Where the lines of a key come to an end that begin with `line`."""
    width = len(line["data"])
    limit = min(len(text), start + _LONGEST_KEY)
    end = line.end("data")
    while line.end() < limit and len(line["data"]) >= min(width, _WIDTHS[0]):
        following = _LINE.match(text, line.end(), limit)
        if following is None or not _belongs(following["data"]):
            break
        line, end = following, following.end("data")
    return end


def _start_of_lines(text: str, start: int) -> int:
    """Where the lines of a key begin that lead up to `start`."""
    limit = max(0, start - _LONGEST_KEY)
    while start > limit:
        before = _LINE_BEFORE.search(text, max(limit, start - _BEFORE_CHARS), start)
        if before is None or not _belongs(before["data"]) or before.start("data") >= start:
            break
        start = before.start("data")
    return start


def _belongs(data: str) -> bool:
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
