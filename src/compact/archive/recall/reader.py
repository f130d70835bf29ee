"""What the recovery tools do: read, grep, list and search the files of one session, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from compact.archive.keys import VIRTUAL_FOLDERS
from compact.archive.protocol import Listing
from compact.archive.reading import Reader
from compact.archive.recall.answers import Limits, Page, answer, counted, cut_near, quoted
from compact.archive.recall.grep import Match, Pattern
from compact.archive.recall.paths import ROOT, Refused, about_gaps, described, files_at, one_file
from compact.archive.recall.search import Hit, SearchIndex
from compact.errors import ArchiveError

_MOST_COUNTED = 1_000
"""Matching lines that `grep` counts before it stops looking."""
_BEFORE_MATCH = 200
"""Characters of a long line that are shown before its match."""
_LEAST_HIT_CHARS = 500
_NOTE_CHARS = 100
"""Room for the note behind a line that was cut."""


class SessionFiles:
    """The files of one session, as the tools show them. Every method raises Refused for what it cannot answer."""

    def __init__(self, archive: Reader, session_id: str, limits: Limits) -> None:
        self._archive = archive
        self._session_id = session_id
        self._limits = limits
        self._index = SearchIndex(archive, session_id)

    def read_file(self, path: str, offset: int = 0, limit: int | None = None, column: int = 0) -> str:
        """Lines of a file, numbered from 1, after the first `offset` lines."""
        name = one_file(self._listing(), path).path
        lines = _lines(self._archive.read_text(self._session_id, name))
        if not lines:
            return answer(f"read_file {name}: the file is empty")
        if offset >= len(lines):
            raise Refused(f"{name} has {counted(len(lines), 'line')}: offset {offset} is behind its end")
        if column and column >= len(lines[offset]):
            length = counted(len(lines[offset]), "character")
            raise Refused(f"line {offset + 1} of {name} has {length}: column {column} is behind its end")
        wanted = min(limit or self._limits.max_lines, self._limits.max_lines, len(lines) - offset)
        page = Page(self._limits.text_chars)
        for number in range(offset, offset + wanted):
            alone = wanted == 1 or (number == offset and column > 0)
            if not page.add(self._numbered(lines[number], number, column if number == offset else 0, alone)):
                break
        end = offset + len(page.lines)
        notes = [f"it goes on: read_file with offset={end}"] if end < len(lines) else []
        return answer(f"read_file {name}: lines {offset + 1}-{end} of {len(lines)}", page.lines, notes)

    def grep(self, pattern: str, path: str = ROOT, ignore_case: bool = False, context: int = 1) -> str:
        """Lines that match, with their places and their neighbours."""
        try:
            compiled = Pattern(pattern, ignore_case=ignore_case)
        except ValueError as problem:
            hint = "RE2 has no lookaround and no backreferences; a backslash before ( [ { . * + ? finds the character"
            raise Refused(f"{problem}. {hint}") from None
        listing = self._listing()
        files, gaps = files_at(listing, path), about_gaps(listing)
        page = Page(self._limits.text_chars)
        total, shown, in_files = 0, 0, 0
        for info in files:
            text = self._text(info.path)
            found = list(islice(compiled.matches(text), _MOST_COUNTED - total))
            room = self._limits.max_matches - shown
            shown += self._add_matches(page, info.path, _lines(text) if found else [], found[:room], context)
            total += len(found)
            in_files += bool(found)
            if total >= _MOST_COUNTED:
                break
        if not total:
            return answer(
                f"grep {quoted(pattern)}: no line matches in {counted(len(files), 'file')}", notes=gaps
            )
        count = f"{'at least ' if total >= _MOST_COUNTED else ''}{counted(total, 'matching line')}"
        notes = [f"{shown} of them are shown: narrow the pattern or the path"] if shown < total else []
        headline = f"grep {quoted(pattern)}: {count} in {counted(in_files, 'file')}"
        return answer(headline, page.lines, [*notes, *gaps])

    def ls(self, path: str = ROOT, offset: int = 0) -> str:
        """The files of a folder, with their sizes."""
        listing = self._listing()
        files, gaps = files_at(listing, path), about_gaps(listing)
        if not files:
            folders = " and ".join(VIRTUAL_FOLDERS)
            return answer(f"ls {quoted(path)}: no files yet. The folders are {folders}", notes=gaps)
        page = Page(self._limits.text_chars)
        for info in files[offset : offset + self._limits.max_lines]:
            if not page.add(described(info)):
                break
        end = offset + len(page.lines)
        notes = [f"it goes on: ls with offset={end}"] if end < len(files) else []
        return answer(f"ls {quoted(path)}: {counted(len(files), 'file')}", page.lines, [*notes, *gaps])

    def search(self, query: str, limit: int = 5) -> str:
        """The passages that fit a query best."""
        hits = self._index.search(query, min(limit, self._limits.text_chars // _LEAST_HIT_CHARS))
        listing = self._listing()
        gaps = about_gaps(listing)
        if not hits:
            files = counted(len(listing.files), "file")
            raise Refused(f"nothing in {files} holds a word of {quoted(query)}. Try other words, or ls", gaps)
        lines: list[str] = []
        for rank, hit in enumerate(hits, 1):
            lines += _hit_lines(rank, hit, self._limits.text_chars // len(hits))
        notes = ["to read on from a passage, call read_file with the path and the offset beside it"]
        passages = counted(len(hits), "passage")
        return answer(f"search {quoted(query)}: {passages}, best first", lines, [*notes, *gaps])

    def _listing(self) -> Listing:
        return self._archive.listing(self._session_id)

    def _text(self, path: str) -> str:
        try:
            return self._archive.read_text(self._session_id, path)
        except ArchiveError as problem:
            if problem.details.get("reason") == "missing":
                return ""  # removed since it was listed
            raise

    def _numbered(self, line: str, number: int, start: int, alone: bool) -> str:
        room = self._limits.text_chars - _NOTE_CHARS
        end = cut_near(line, start + (room if alone else min(room, self._limits.max_line_chars)))
        rest = len(line) - end
        note = f"… [{rest} more characters: offset={number}, column={end}]" if rest else ""
        return f"{number + 1:>6}\t{line[start:end]}{note}"

    def _add_matches(self, page: Page, path: str, lines: list[str], found: list[Match], context: int) -> int:
        """Puts matches on the page as `grep -n` does; says for how many there was room."""
        columns = {match.line: match.column for match in found}
        shown = 0
        for place, starts_group in _with_context(columns, context, len(lines)):
            if starts_group and page.lines and not page.add("--"):
                break
            mark = ":" if place in columns else "-"
            words = self._around(lines[place], columns.get(place, 0))
            if not page.add(f"{path}{mark}{place + 1}{mark}{words}"):
                break
            shown += place in columns
        return shown

    def _around(self, line: str, column: int) -> str:
        """A line, or the part of a long one that surrounds a column."""
        room = min(self._limits.max_line_chars, self._limits.text_chars // 2)
        if len(line) <= room:
            return line
        start = cut_near(line, max(0, column - _BEFORE_MATCH))
        end = cut_near(line, start + room)
        return f"[column {start} to {end} of {len(line)}] {line[start:end]}"


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _with_context(matching: dict[int, int], context: int, total: int) -> Iterator[tuple[int, bool]]:
    """The lines to show, in order, and whether each starts a new group."""
    last = -1
    for line in matching:
        for place in range(max(last + 1, line - context), min(total, line + context + 1)):
            yield place, place > last + 1 or last < 0
            last = place


def _hit_lines(rank: int, hit: Hit, room: int) -> list[str]:
    place = f"lines {hit.first_line}-{hit.last_line}, offset={hit.first_line - 1}"
    if hit.column:
        place += f", column={hit.column}"
    if hit.step is not None:
        message = "" if hit.message is None else f", message {hit.message}"
        place += f" (before step {hit.step}{message})"
    page = Page(room)
    page.add(f"{rank}. {hit.path} {place}")
    for number, line in enumerate(_lines(hit.text), hit.first_line):
        shown = f"{number:>6}\t{line}"
        if len(shown) >= page.left:
            page.add(f"{shown[: cut_near(shown, page.left - 2)]}…")
            break
        page.add(shown)
    return page.lines
