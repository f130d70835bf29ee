"""Tables whose header names a secret: Markdown, psql, mysql, CSV, TSV, aligned columns and HTML.

Each line is read at most once as a header and once as a row, so that time grows with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from compact.redaction.fields.names import FieldNames
from compact.redaction.fields.value_judge import is_secret_leaf
from compact.redaction.rules.matches import Candidate, Finding
from compact.redaction.rules.rule import Rule
from compact.redaction.shapes import is_generated

_LONGEST_HEADER = 2_000
_LONGEST_NAME = 40
_RULER = re.compile(r"[ \t]*[|+]?[ \t]*:?[-=]{2,}[-=+|: \t]*\Z")
_PIPE_CELL = re.compile(r"(?:[^|\\]|\\.)*+")
_CSV_CELL = {mark: re.compile(rf'"(?:[^"\n]|"")*+"|[^{mark}\n"]*+') for mark in (",", ";", "\t")}
_HEADER_CELL = re.compile(r"[A-Za-z_#\u0080-\U0010ffff][\w .#()/\-]{0,39}\Z")
_COLUMN = re.compile(r"\S+(?: \S+)*")
_HTML_CELL = re.compile(r"<(t[hd]|/?tr|/table)\b[^<>]{0,200}>", re.IGNORECASE)
_DECORATION = " \t*`_\"'"


def table_headers(stem: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The patterns of lines that may be a header with a telling word, each with its keywords: none means the word itself."""
    word = r"[\w.#\"()/-]"
    cell = rf"{word}+(?: {word}+){{0,2}}"
    telling = rf"(?:{word}+ ){{0,2}}{word}*{stem}{word}*(?: {word}+){{0,2}}"
    gap = r"(?:,|;|\t| {2,})"
    ruler = ("|--", "--|", "-+-", "| --", "|:-", "| :-", "+--", "==")
    return (
        (rf"{stem}[^\n]*\r?\n[ \t]*[|+]?[ \t]*:?[-=]{{2}}", ruler),
        (rf"<th\b[^<>]*>[^<>]{{0,40}}{stem}", ("<th",)),
        (rf"(?m)^ *(?:(?:{cell}{gap})+{telling}(?:{gap}{cell})*|{telling}(?:{gap}{cell})+)[ \r]*$", ()),
    )


class _Line(NamedTuple):
    start: int
    end: int


class _Cell(NamedTuple):
    start: int
    end: int


class Tables:
    """Finds the cells of tables that stand under the name of a secret."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names

    def find_all(self, text: str, candidates: Iterable[Candidate]) -> list[Finding]:
        """Find them in a text. The candidates are the places of telling words, in their order."""
        found: list[Finding] = []
        done = 0
        for candidate in candidates:
            if candidate.start < done:
                continue
            line = _line_at(text, candidate.start)
            done = line.end
            if (
                line.end - line.start > _LONGEST_HEADER
                and text.find("<th", line.start, candidate.start + 3) < 0
            ):
                continue
            findings, end = self._read_table(text, line, candidate.start)
            found += findings
            done = max(done, end)
        return found

    def _read_table(self, text: str, header: _Line, place: int) -> tuple[list[Finding], int]:
        head = text[header.start : header.end]
        if "<th" in head.lower():
            return self._read_html(text, place)
        if "|" in head:
            return self._read_piped(text, header)
        for mark in ("\t", ",", ";"):
            if mark in head:
                return self._read_delimited(text, header, mark)
        return self._read_aligned(text, header)

    def _rules(self, text: str, cells: list[_Cell]) -> dict[int, Rule]:
        """The columns whose name is that of a secret. A header has short names only, and at least two."""
        names = [text[cell.start : cell.end].strip(_DECORATION) for cell in cells]
        if len([name for name in names if name]) < 2 or not all(_is_name(name) for name in names if name):
            return {}
        rules = ((place, self._names.rule_for(name)) for place, name in enumerate(names))
        return {place: rule for place, rule in rules if rule is not None}

    def _read_piped(self, text: str, header: _Line) -> tuple[list[Finding], int]:
        columns = _split_pipes(text, header)
        rules = self._rules(text, columns)
        found: list[Finding] = []
        end, ruled = header.end, False
        for line in _lines_after(text, header.end) if rules else ():
            if _RULER.match(text, line.start, line.end):
                ruled = True
            elif ruled and text.find("|", line.start, line.end) >= 0:
                found += _mask_cells(text, _split_pipes(text, line), rules)
            else:
                break
            end = line.end
        return found, end

    def _read_delimited(self, text: str, header: _Line, mark: str) -> tuple[list[Finding], int]:
        columns = _split_cells(text, header, mark)
        names = [text[column.start : column.end] for column in columns]
        rules = self._rules(text, columns)
        if not rules or any(name != name.strip() or " (" in name for name in names):
            return [], header.end
        found: list[Finding] = []
        end = header.end
        for line in _lines_after(text, header.end):
            cells = _split_cells(text, line, mark)
            if len(cells) != len(columns):
                break
            found += _mask_cells(text, cells, rules)
            end = line.end
        return found, end

    def _read_aligned(self, text: str, header: _Line) -> tuple[list[Finding], int]:
        columns = [_Cell(*column.span()) for column in _COLUMN.finditer(text, header.start, header.end)]
        rules = self._rules(text, columns)
        starts = [column.start - header.start for column in columns]
        found: list[Finding] = []
        end = header.end
        for line in _lines_after(text, header.end) if rules else ():
            width = line.end - line.start
            fits = all(at >= width or (at == 0 or text[line.start + at - 1].isspace()) for at in starts)
            if not text[line.start : line.end].strip() or not fits:
                break
            cells = [
                _Cell(line.start + min(at, width), line.start + min(after, width))
                for at, after in pairwise([*starts, width])
            ]
            found += [
                finding
                for finding in _mask_cells(text, cells, rules)
                if is_generated(text[finding.start : finding.end])
            ]
            end = line.end
        return found, end

    def _read_html(self, text: str, place: int) -> tuple[list[Finding], int]:
        first = max(0, place - _LONGEST_HEADER)
        row_start = max(text.rfind("<tr", first, place), text.rfind("<TR", first, place), first)
        rules: dict[int, Rule] = {}
        cells: list[_Cell] = []
        found: list[Finding] = []
        end = place
        is_header, open_at = True, -1
        for tag in _HTML_CELL.finditer(text, row_start):
            kind = tag[1].lower()
            if open_at >= 0:
                close = text.find("</t", open_at, tag.start())
                cells.append(_Cell(open_at, close if close >= 0 else tag.start()))
            open_at = tag.end() if kind in ("th", "td") else -1
            if kind in ("/tr", "/table", "tr") and cells:
                if is_header:
                    rules, is_header = self._rules(text, cells), False
                else:
                    found += _mask_cells(text, cells, rules)
                cells = []
            end = tag.end()
            if kind == "/table" or (not is_header and not rules):
                break
        return found, end


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _HEADER_CELL.match(text) is not None


def _line_at(text: str, place: int) -> _Line:
    start = text.rfind("\n", max(0, place - _LONGEST_HEADER), place) + 1
    if start == 0 and place > _LONGEST_HEADER:
        start = place - _LONGEST_HEADER
    end = text.find("\n", place)
    return _Line(start, len(text) if end < 0 else end)


def _lines_after(text: str, end: int) -> Iterator[_Line]:
    while end < len(text):
        start = end + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield _Line(start, end - 1 if text[end - 1 : end] == "\r" and end > start else end)


def _split_pipes(text: str, line: _Line) -> list[_Cell]:
    start, end = line
    while start < end and text[start] in " \t":
        start += 1
    if text[start : start + 1] == "|":
        start += 1
    cells = []
    while start < end:
        cell = _PIPE_CELL.match(text, start, end)
        stop = cell.end() if cell else end
        cells.append(_Cell(start, stop))
        start = max(stop, start) + 1
    return cells


def _split_cells(text: str, line: _Line, mark: str) -> list[_Cell]:
    cells, (start, end) = [], line
    while start <= end:
        cell = _CSV_CELL[mark].match(text, start, end)
        stop = cell.end() if cell else start
        if stop < end and text[stop] != mark:
            stop = text.find(mark, stop, end)  # a quote inside a bare cell
            stop = end if stop < 0 else stop
        cells.append(_Cell(start, stop))
        start = stop + 1
    return cells


def _mask_cells(text: str, cells: list[_Cell], rules: dict[int, Rule]) -> Iterator[Finding]:
    for place, rule in rules.items():
        if place >= len(cells):
            continue
        start, end = cells[place]
        value = text[start:end]
        inner = value.strip(" \t\r`")
        start += value.find(inner) if inner else 0
        if len(inner) > 1 and inner[0] == inner[-1] == '"':
            start, inner = start + 1, inner[1:-1]
        if inner and is_secret_leaf(rule, inner):
            yield Finding(start, start + len(inner), rule.id, rule.replacement)
