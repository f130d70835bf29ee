"""What the recall tools do: read, grep, list and search the files of one session, a page at a time.

A path that a model names is looked up in the list of what there is, never opened as it stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice

from compact.archive.keys import VIRTUAL_FOLDERS
from compact.archive.reading import FileInfo, Listing, Reader
from compact.archive.recall.answers import (
    AnswerLimits,
    BoundedLines,
    CannotAnswer,
    Deadline,
    answer,
    cut_near,
    plural,
    quote,
)
from compact.archive.recall.found import show
from compact.archive.recall.grep import LinePattern, Match
from compact.archive.recall.search import MOST_PASSAGES, SearchIndex
from compact.errors import ArchiveError

ROOT = "/"
_MOST_COUNTED = 1_000
"""Matching lines that `grep` counts before it stops searching."""
_BEFORE_MATCH = 200
"""Characters of a long line that are shown before its match."""
_SEARCH_FRAME_CHARS = 300
"""Reserved in an answer of `search` for its first line, its notes and the names of its files."""
_NOTE_CHARS = 100
"""Room for the note after a line that was cut."""
_SHOWN = 20
_PROBLEM_CHARS = 300
_MOST_COMPARED = 500
"""Names that a wrong path is compared with. Comparing is slow."""


class SessionFiles:
    """The files of one session, as the tools show them. Every tool raises CannotAnswer if it has no answer."""

    def __init__(
        self,
        archive: Reader,
        session_id: str,
        limits: AnswerLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._archive = archive
        self._clock = clock
        self._session_id = session_id
        self._limits = limits
        self._index = SearchIndex(archive, session_id)

    def read_file(self, path: str, offset: int = 0, limit: int | None = None, column: int = 0) -> str:
        """Show lines of a file, numbered from 1, after the first `offset` lines."""
        name = _find_file(self._listing(), path).path
        lines = _lines(self._archive.read_text(self._session_id, name))
        if not lines:
            return answer(f"read_file {name}: the file is empty")
        if offset >= len(lines):
            raise CannotAnswer(f"{name} has {plural(len(lines), 'line')}: offset {offset} is past its end")
        if column and column >= len(lines[offset]):
            length = plural(len(lines[offset]), "character")
            raise CannotAnswer(f"line {offset + 1} of {name} has {length}: column {column} is past its end")
        wanted = min(limit or self._limits.max_lines, self._limits.max_lines, len(lines) - offset)
        page = BoundedLines(self._limits.text_chars)
        for number in range(offset, offset + wanted):
            alone = wanted == 1 or (number == offset and column > 0)
            if not page.add(
                self._number_line(lines[number], number, column if number == offset else 0, alone)
            ):
                break
        end = offset + len(page.lines)
        notes = [f"more follows: read_file with offset={end}"] if end < len(lines) else []
        return answer(f"read_file {name}: lines {offset + 1}-{end} of {len(lines)}", page.lines, notes)

    def grep(self, pattern: str, path: str = ROOT, ignore_case: bool = False, context: int = 1) -> str:
        """Show lines that match, with their places and their neighbours."""
        try:
            compiled = LinePattern(pattern, ignore_case=ignore_case)
        except ValueError as problem:
            hint = "RE2 has no lookaround and no backreferences; put a backslash before ( [ { . * + ? to find the character itself"
            raise CannotAnswer(f"{problem}. {hint}") from None
        listing = self._listing()
        files, gaps = _find_files(listing, path), _about_gaps(listing)
        page = BoundedLines(self._limits.text_chars)
        total, shown, in_files, scanned = 0, 0, 0, 0
        deadline, unread, unseen = Deadline(self._limits.max_seconds, self._clock), list[str](), 0
        for place, info in enumerate(files):
            if deadline.is_over() or (scanned and scanned + info.size > self._limits.max_scanned_bytes):
                unseen = len(files) - place
                break
            scanned += info.size
            text = self._text(info.path, unread)
            found = list(islice(compiled.matches(text, deadline.is_over), _MOST_COUNTED - total))
            room = self._limits.max_matches - shown
            shown += self._add_matches(page, info.path, _lines(text) if found else [], found[:room], context)
            total += len(found)
            in_files += bool(found)
            if total >= _MOST_COUNTED:
                break
            if deadline.is_over():
                unseen = len(files) - place
        gaps = [*gaps, *_about_unread(unread), *self._about_unseen(unseen, len(files))]
        if not total:
            return answer(
                f"grep {quote(pattern)}: no line matches in {plural(len(files) - unseen, 'file')}", notes=gaps
            )
        count = f"{'at least ' if total >= _MOST_COUNTED or unseen else ''}{plural(total, 'matching line')}"
        notes = [f"{shown} of them are shown: narrow the pattern or the path"] if shown < total else []
        headline = f"grep {quote(pattern)}: {count} in {plural(in_files, 'file')}"
        return answer(headline, page.lines, [*notes, *gaps])

    def _text(self, path: str, unread: list[str]) -> str:
        """Return a file's text; nothing if it is gone, or if it is not what was written, which goes to `unread`."""
        try:
            return self._archive.find_text(self._session_id, path) or ""
        except ArchiveError as problem:
            if problem.reason != "changed":
                raise
            unread.append(path)
            return ""

    def _about_unseen(self, unseen: int, files: int) -> list[str]:
        if not unseen:
            return []
        limit = f"{self._limits.max_seconds:g} s or {self._limits.max_scanned_bytes:,} bytes"
        return [
            f"the search was cut after {limit}: {unseen:,} of {plural(files, 'file')} were not read to the end. "
            "Name a path, or a simpler pattern"
        ]

    def ls(self, path: str = ROOT, offset: int = 0) -> str:
        """Show the files of a folder, with their sizes."""
        listing = self._listing()
        files, gaps = _find_files(listing, path), _about_gaps(listing)
        if not files:
            folders = " and ".join(VIRTUAL_FOLDERS)
            return answer(f"ls {quote(path)}: no files yet. The folders are {folders}", notes=gaps)
        page = BoundedLines(self._limits.text_chars)
        for info in files[offset : offset + self._limits.max_lines]:
            if not page.add(_describe(info)):
                break
        end = offset + len(page.lines)
        notes = [f"more follows: ls with offset={end}"] if end < len(files) else []
        return answer(f"ls {quote(path)}: {plural(len(files), 'file')}", page.lines, [*notes, *gaps])

    def search(self, query: str, limit: int = MOST_PASSAGES, who: str = "") -> str:
        """Show many short passages that fit a query, with their places and who said them."""
        room = min(self._limits.max_search_chars, self._limits.max_chars)
        deadline = Deadline(self._limits.max_seconds, self._clock)
        hits = self._index.search(
            query, limit, max_chars=room - _SEARCH_FRAME_CHARS, who=who.strip(), stop=deadline.is_over
        )
        listing = self._listing()
        gaps = [*_about_gaps(listing), *_about_unread(self._index.unread)]
        if self._index.unseen:
            later = plural(self._index.unseen, "file")
            gaps.append(f"{later} could not be read in {self._limits.max_seconds:g} s: search again to go on")
        if not hits:
            files = plural(len(listing.files), "file")
            by = f" by {quote(who, 40)}" if who else ""
            raise CannotAnswer(
                f"nothing{by} in {files} contains a word of {quote(query)}. Try other words, or ls", gaps
            )
        return show(query, hits, room, gaps, self._date_of)

    def _date_of(self, step: int) -> str:
        """Return when a step was committed, to the minute; empty if its record cannot be read."""
        try:
            return self._archive.step(self._session_id, step).committed_at[:16].replace("T", " ")
        except ArchiveError:
            return ""

    def _listing(self) -> Listing:
        return self._archive.listing(self._session_id)

    def _number_line(self, line: str, number: int, start: int, alone: bool) -> str:
        room = self._limits.text_chars - _NOTE_CHARS
        end = cut_near(line, start + (room if alone else min(room, self._limits.max_line_chars)))
        rest = len(line) - end
        note = f"… [{rest} more characters: offset={number}, column={end}]" if rest else ""
        return f"{number + 1:>6}\t{line[start:end]}{note}"

    def _add_matches(
        self, page: BoundedLines, path: str, lines: list[str], found: list[Match], context: int
    ) -> int:
        """Add matches as `grep -n` shows them. Returns how many there was room for."""
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
        """Return a line, or the part of a long line around a column."""
        room = min(self._limits.max_line_chars, self._limits.text_chars // 2)
        if len(line) <= room:
            return line
        start = cut_near(line, max(0, column - _BEFORE_MATCH))
        end = cut_near(line, start + room)
        return f"[column {start} to {end} of {len(line)}] {line[start:end]}"


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _with_context(matching: dict[int, int], context: int, total: int) -> Iterator[tuple[int, bool]]:
    """Yield the lines to show, in order, and whether each starts a new group."""
    last = -1
    for line in matching:
        for place in range(max(last + 1, line - context), min(total, line + context + 1)):
            yield place, place > last + 1 or last < 0
            last = place


def _find_file(listing: Listing, path: str) -> FileInfo:
    found = _find_files(listing, path)
    folder = _normal(path)
    if folder in {ROOT, *VIRTUAL_FOLDERS}:
        raise CannotAnswer(f"{folder} is a folder; name a file in it", _list_some(found))
    return found[0]


def _find_files(listing: Listing, path: str) -> list[FileInfo]:
    """Return the file of that path, or all files of that folder."""
    wanted = _normal(path)
    if wanted in {ROOT, *VIRTUAL_FOLDERS}:
        # Not "starts with": in a host's filesystem, the folders of a tenant lie below its own root.
        return [info for info in listing.files if f"{wanted.rstrip('/')}/" in info.path]
    found = [info for info in listing.files if info.path == wanted]
    if not found:
        raise _nothing_at(path, listing)
    return found


def _normal(path: str) -> str:
    """Return a path as listings write it, or an empty one if it leaves the session's folders."""
    parts = [part for part in path.strip().split("/") if part not in {"", "."}]
    return "" if ".." in parts else f"/{'/'.join(parts)}"


def _nothing_at(path: str, listing: Listing) -> CannotAnswer:
    files = listing.files
    if listing.problem is not None:
        why = f"{quote(path)} cannot be read now. {_about_gaps(listing)[0]}"
        return CannotAnswer(why, _list_some(files))
    why = f"there is no {quote(path)} in this session's archive"
    if not files:
        return CannotAnswer(f"{why}: nothing was archived yet")
    by_name = {info.path.rpartition("/")[2]: info for info in files[-_MOST_COMPARED:]}
    near = [by_name[name] for name in get_close_matches(path.rpartition("/")[2][:200], by_name)]
    return CannotAnswer(
        f"{why}. It contains", _list_some([*near, *(info for info in files if info not in near)])
    )


def _about_gaps(listing: Listing) -> list[str]:
    """Return the note about a listing that may lack files."""
    if listing.problem is None:
        return []
    here = (
        f"only {plural(len(listing.files), 'file')} on this machine can be read now; more may be there later"
    )
    return [f"{quote(listing.problem, _PROBLEM_CHARS)}: {here}"]


def _about_unread(paths: list[str]) -> list[str]:
    """Return the note about files that are not what was written."""
    if not paths:
        return []
    return [f"{plural(len(paths), 'file')} left out, not what was written: {', '.join(paths[:3])}"]


def _list_some(files: list[FileInfo]) -> list[str]:
    lines = [_describe(info) for info in files[:_SHOWN]]
    if len(files) > _SHOWN:
        lines.append(f"and {plural(len(files) - _SHOWN, 'other file')}: ls shows them")
    return lines or ["(no files)"]


def _describe(info: FileInfo) -> str:
    return f"{info.size:>12,} bytes  {info.path}"
