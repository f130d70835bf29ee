"""Ranked search in a session's archive: short passages by the rarity and nearness of the words asked for.

SQLite's FTS5 finds which units have a term; `ranking` does the rest. The index is a cache of terms and places without text. Between two searches it is a byte string, in memory and in a file in
the session's folder that is replaced atomically and carries its own hash. So nothing stays open, two processes never share
a database, and a torn file is never used. If anything is wrong with the index, it is rebuilt from the archive.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NamedTuple

from compact.archive import keys
from compact.archive.reading import FileInfo, Reader
from compact.archive.recall.passages import Unit, split
from compact.archive.recall.ranking import Picked, Span, Spans, pick, rank
from compact.archive.recall.terms import LASTING, query_terms, terms
from compact.archive.records import digest, trust_stored
from compact.errors import ArchiveError

INDEX = f"{keys.CACHES}/search"
"""The name of the saved index in the session's folder."""

_FORMAT = "compact search index 2"
_SAVING_ADAPTERS = frozenset({"fs", "memory"})
"""An object store would charge for each new version of the index, so there it stays in this process."""
MOST_INDEXED_CHARS = 20_000_000
"""Characters of one file that ranked search sees. `grep` sees all of it."""
MOST_PASSAGES = 25
HEAD_CHARS = 22
"""Room for the place and the speaker of a passage, which is counted as a part of it."""
_MOST_QUERY_CHARS = 10_000
_SHORT_CHARS = 200
"""A shorter text ("yes", "the second") says something else after each text before it."""
SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, size INTEGER);
CREATE TABLE parts (first INTEGER, past INTEGER, file INTEGER, message INTEGER, speaker TEXT, digest BLOB UNIQUE);
CREATE TABLE units (id INTEGER PRIMARY KEY, first INTEGER, past INTEGER, line INTEGER, col INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (body, content='', detail='none', tokenize='porter ascii');
"""
_HAVING = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers a query."""

    path: str
    first_line: int
    last_line: int
    column: int
    """Characters of the first line before it."""
    step: int | None
    """The step before which the conversation contained it; None in a tool's output."""
    message: int | None
    """The number of the message in the conversation; None in a tool's output."""
    who: str
    """Who said it: `user`, `agent`, `tool NAME`, `summary`, `recall`, another role; empty if nobody knows."""
    score: float
    """Higher is better. Comparable only within one answer."""
    text: str


class SearchIndex:
    """Searches one session. Safe to share between threads; other processes may search the same session."""

    def __init__(self, archive: Reader, session_id: str) -> None:
        self._archive = archive
        self._session_id = session_id
        self._lock = threading.Lock()
        self._image: bytes | None = None
        self.unread: list[str] = []
        """Files that the last search left out, because they are not what was written."""
        self.unseen = 0
        """Files that the last search had no time to read."""

    def search(
        self,
        query: str,
        limit: int = MOST_PASSAGES,
        *,
        max_chars: int | None = None,
        who: str = "",
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Hit]:
        """Return the passages that fit a query best, best first. Any text is a query; one without words finds nothing.

        With `max_chars` they have no more characters in all, HEAD_CHARS for each one included. `who` leaves only what one
        speaker said: `user`, `agent`, `tool`, or a tool's name. New files are read first. `stop` is asked before each; True
        leaves the rest, `unseen`, to the next search.

        Raises:
            ArchiveError: the archive cannot be read, or this Python's SQLite has no FTS5.
        """
        wanted = _Wanted(query[:_MOST_QUERY_CHARS], limit, max_chars, who)
        listing = self._archive.listing(self._session_id)
        if listing.problem is not None:
            # The rest of what the index knows cannot be read now, so the index is kept as it is until it can.
            with closing(_open(b"")) as database:
                self._refresh(database, listing.files, stop)
                return self._hits(database, wanted)
        with self._lock:
            if self._image is None:
                self._image = self._saved()
            try:
                return self._answer(wanted, listing.files, stop)
            except (sqlite3.Error, _UnusableError):
                self._image = b""
                return self._answer(wanted, listing.files, stop)

    def _answer(self, wanted: _Wanted, files: list[FileInfo], stop: Callable[[], bool]) -> list[Hit]:
        with closing(_open(self._image or b"")) as database:
            if self._refresh(database, files, stop):
                self._image = database.serialize()
                self._save(self._image)
            return self._hits(database, wanted)

    def _refresh(self, database: sqlite3.Connection, files: list[FileInfo], stop: Callable[[], bool]) -> bool:
        """Read files that are new. Returns whether there were any."""
        present = {info.path: info.size for info in files}
        known: dict[str, int] = dict(database.execute("SELECT path, size FROM files"))
        if any(present.get(path) != size for path, size in known.items()):
            raise _UnusableError  # records never change: files were pruned, or the index belongs to another archive
        new = [path for path in present if path not in known]
        self.unread, self.unseen = [], 0
        for place, path in enumerate(new):
            if place and stop():
                self.unseen = len(new) - place
                return True
            text = self._text(path)
            if text is not None:
                _add_file(database, path, present[path], text[:MOST_INDEXED_CHARS])
        return bool(new)

    def _text(self, path: str) -> str | None:
        """Return a file's text; None if it is gone, or if it is not what was written."""
        try:
            return self._archive.find_text(self._session_id, path)
        except ArchiveError as problem:
            if problem.reason != "changed":
                raise
            self.unread.append(path)
            return None

    def _hits(self, database: sqlite3.Connection, wanted: _Wanted) -> list[Hit]:
        places = _places(database, query_terms(wanted.query))
        if not places:
            return []
        columns = "first, past, file, message, speaker"
        spans = Spans(
            [Span(*row) for row in database.execute(f"SELECT {columns} FROM parts") if wanted.accepts(row[4])]
        )
        (total,) = database.execute("SELECT count(*) FROM units").fetchone()
        page = _Page(self, database, spans)
        picked = pick(
            rank(places, total, spans, _having(database, LASTING)),
            limit=wanted.limit,
            room=10**12 if wanted.max_chars is None else wanted.max_chars,
            head=HEAD_CHARS,
            extent=page.extent,
            words=page.words,
        )
        return [page.hit(passage) for passage in picked]

    def _key(self) -> str:
        return f"{self._archive.folder(self._session_id)}/{INDEX}"

    def _saved(self) -> bytes:
        """Return the saved index; empty if it is missing, torn or of another version."""
        with suppress(ArchiveError):
            data = self._archive.store.read(self._key()) or b""
            head, _, image = data.partition(b"\n")
            if head == _head(image):
                return image
        return b""

    def _save(self, image: bytes) -> None:
        store = self._archive.store
        if store.adapter in _SAVING_ADAPTERS:
            with suppress(ArchiveError):  # it is only a cache, and the next process builds its own
                store.replace(self._key(), trust_stored(_head(image) + b"\n" + image))


class _Wanted(NamedTuple):
    """What is asked for."""

    query: str
    limit: int
    max_chars: int | None
    who: str

    def accepts(self, speaker: str) -> bool:
        """Whether what this speaker said may answer."""
        return not self.who or self.who in (speaker, *speaker.split(" ", 1))


class _Page:
    """Texts and places of units, each read once for one answer."""

    def __init__(self, index: SearchIndex, database: sqlite3.Connection, spans: Spans) -> None:
        self._read = index._text
        self._database = database
        self._spans = spans
        self._paths: dict[int, str] = dict(database.execute("SELECT id, path FROM files"))
        self._texts: dict[int, str | None] = {}
        self._units: dict[int, Unit] = {}

    def _unit(self, number: int) -> Unit:
        if number not in self._units:
            self._units[number] = Unit(
                *self._database.execute(
                    "SELECT first, past, line, col FROM units WHERE id = ?", (number,)
                ).fetchone()
            )
        return self._units[number]

    def _text(self, file: int) -> str | None:
        if file not in self._texts:
            self._texts[file] = self._read(self._paths[file])
        return self._texts[file]

    def extent(self, first: int, last: int) -> int:
        """Return the characters from one unit to another."""
        return self._unit(last).end - self._unit(first).start

    def words(self, number: int) -> frozenset[str] | None:
        """Return the terms of a unit; None if its file is gone, or is not what was written."""
        span, unit = self._spans.of(number), self._unit(number)
        text = None if span is None else self._text(span.file)
        return None if text is None else frozenset(terms(text[unit.start : unit.end]))

    def hit(self, passage: Picked) -> Hit:
        """Return a passage as it is shown."""
        span, first, last = passage.span, self._unit(passage.first), self._unit(passage.last)
        path, text = self._paths[span.file], self._text(span.file) or ""
        shown = text[first.start : last.end]
        return Hit(
            path=path,
            first_line=first.line,
            last_line=first.line + shown.rstrip("\n").count("\n"),
            column=first.column,
            step=keys.history_step(path[1:]),
            message=span.message,
            who=span.speaker,
            score=passage.score,
            text=shown,
        )


class _UnusableError(Exception):
    """The index is damaged, or names files that are not there."""


def _open(image: bytes) -> sqlite3.Connection:
    """Open a database in memory: a copy of the image, or an empty one."""
    database = sqlite3.connect(":memory:")
    try:
        if image:
            database.deserialize(image)
        else:
            database.executescript(SCHEMA)
    except (sqlite3.Error, AttributeError) as problem:
        database.close()
        if image:
            raise _UnusableError from problem
        raise ArchiveError(
            f"ranked search is not possible: {problem}",
            hint="It needs a Python whose SQLite has FTS5; grep finds exact words without it",
            reason="unsupported",
        ) from problem
    return database


def _add_file(database: sqlite3.Connection, path: str, size: int, text: str) -> None:
    with database:
        file = database.execute("INSERT INTO files (path, size) VALUES (?, ?)", (path, size)).lastrowid
        (last,) = database.execute("SELECT coalesce(max(id), 0) FROM units").fetchone()
        before = b""
        for part in split(text, path):
            start, end = part.units[0].start, part.units[-1].end
            own = _fingerprint(text[start:end])
            # A text that later steps archive again is indexed once, at its oldest place.
            identity = _fingerprint(before + own) if end - start < _SHORT_CHARS else own
            before = own
            place = (last + 1, last + 1 + len(part.units), file, part.message, part.speaker, identity)
            if database.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?, ?, ?, ?)", place).rowcount:
                _add_units(database, last + 1, part.units, text)
                last += len(part.units)


def _add_units(database: sqlite3.Connection, number: int, units: Sequence[Unit], text: str) -> None:
    numbered = list(enumerate(units, number))
    database.executemany("INSERT INTO units VALUES (?, ?, ?, ?, ?)", [(n, *unit) for n, unit in numbered])
    database.executemany(
        "INSERT INTO words (rowid, body) VALUES (?, ?)",
        [(n, " ".join(terms(text[unit.start : unit.end]))) for n, unit in numbered],
    )


def _fingerprint(text: str | bytes) -> bytes:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=16).digest()


def _places(database: sqlite3.Connection, wanted: Mapping[str, float]) -> list[tuple[float, Sequence[int]]]:
    """Return the units of each term, with its weight. Terms of one stem have the same units and count once.

    Terms are only letters and digits, so none of them is an operator of FTS5.
    """
    found: dict[tuple[int, ...], float] = {}
    for term, weight in wanted.items():
        units = tuple(unit for (unit,) in database.execute(_HAVING, (f'"{term}"',)))
        if units:
            found[units] = max(weight, found.get(units, 0.0))
    return [(weight, units) for units, weight in found.items()]


def _having(database: sqlite3.Connection, any_of: Sequence[str]) -> frozenset[int]:
    """Return the units that have any of some terms."""
    wanted = " OR ".join(f'"{term}"' for term in any_of)
    return frozenset(unit for (unit,) in database.execute(_HAVING, (wanted,)))


def _head(image: bytes) -> bytes:
    return f"{_FORMAT} {digest(image)}".encode()
