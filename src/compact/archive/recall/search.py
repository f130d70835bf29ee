"""Ranked search in a session's archive: BM25 over passages, with SQLite's FTS5.

The index is a cache of terms and places without text. Between two searches it is a byte string, in memory and in a file in
the session's folder that is replaced atomically and carries its own hash. So nothing stays open, two processes never share
a database, and a torn file is never used. If anything is wrong with the index, it is rebuilt from the archive.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import astuple, dataclass
from typing import Any

from compact.archive import keys
from compact.archive.reading import FileInfo, Reader
from compact.archive.recall.passages import split
from compact.archive.recall.terms import terms
from compact.archive.records import digest, trust_stored
from compact.errors import ArchiveError

INDEX = f"{keys.CACHES}/search"
"""The name of the saved index in the session's folder."""

_FORMAT = "compact search index 1"
_SAVING_ADAPTERS = frozenset({"fs", "memory"})
"""An object store would charge for each new version of the index, so there it stays in this process."""
MOST_INDEXED_CHARS = 20_000_000
"""Characters of one file that ranked search sees. `grep` sees all of it."""
_MOST_TERMS = 64
_MOST_QUERY_CHARS = 10_000
SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, size INTEGER);
CREATE TABLE passages (id INTEGER PRIMARY KEY, digest BLOB UNIQUE);
CREATE TABLE places (passage INTEGER, file INTEGER, first INTEGER, past INTEGER,
                     first_line INTEGER, last_line INTEGER, col INTEGER, message INTEGER);
CREATE INDEX places_of ON places (passage);
CREATE VIRTUAL TABLE words USING fts5 (body, content='', tokenize='porter ascii');
"""
_RANKED = "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY 2, 1 LIMIT ?"
# The oldest place of a passage, because it stays the same when later steps archive the same message again.
_PLACE = """
SELECT path, first, past, first_line, last_line, col, message
FROM places JOIN files ON files.id = file WHERE passage = ? ORDER BY places.rowid LIMIT 1
"""


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
    score: float
    """BM25: higher is better. Comparable only within one answer."""
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

    def search(self, query: str, limit: int = 5, *, stop: Callable[[], bool] = lambda: False) -> list[Hit]:
        """Return the passages that fit a query best, best first. Any text is a query; one without words finds nothing.

        New files are read first. `stop` is asked before each; True leaves the rest, `unseen`, to the next search.

        Raises:
            ArchiveError: the archive cannot be read, or this Python's SQLite has no FTS5.
        """
        listing = self._archive.listing(self._session_id)
        if listing.problem is not None:
            # The rest of what the index knows cannot be read now, so the index is kept as it is until it can.
            with closing(_open(b"")) as database:
                self._refresh(database, listing.files, stop)
                return list(self._hits(database, query, limit))
        with self._lock:
            if self._image is None:
                self._image = self._saved()
            try:
                return self._answer(query, limit, listing.files, stop)
            except (sqlite3.Error, _UnusableError):
                self._image = b""
                return self._answer(query, limit, listing.files, stop)

    def _answer(self, query: str, limit: int, files: list[FileInfo], stop: Callable[[], bool]) -> list[Hit]:
        with closing(_open(self._image or b"")) as database:
            if self._refresh(database, files, stop):
                self._image = database.serialize()
                self._save(self._image)
            return list(self._hits(database, query, limit))

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

    def _hits(self, database: sqlite3.Connection, query: str, limit: int) -> Iterator[Hit]:
        match = _match(query)
        if not match:
            return
        texts: dict[str, str | None] = {}
        for passage, score in database.execute(_RANKED, (match, limit)).fetchall():
            path, first, past, first_line, last_line, column, message = database.execute(
                _PLACE, (passage,)
            ).fetchone()
            if path not in texts:
                texts[path] = self._text(path)
            text = texts[path]
            if text is not None:
                yield Hit(
                    path=path,
                    first_line=first_line,
                    last_line=last_line,
                    column=column,
                    step=keys.history_step(path[1:]),
                    message=message,
                    score=-score,
                    text=text[first:past],
                )

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
        for passage in split(text, path):
            words = text[passage.start : passage.end]
            number = _passage_number(database, words)
            place = (number, file, *astuple(passage))  # the columns are the passage's fields
            database.execute("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?, ?)", place)


def _passage_number(database: sqlite3.Connection, words: str) -> int:
    """Return the number of a passage. A text that later steps archive again is indexed once."""
    fingerprint = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known = database.execute("SELECT id FROM passages WHERE digest = ?", (fingerprint,)).fetchone()
    if known is not None:
        return int(known[0])
    number: Any = database.execute("INSERT INTO passages (digest) VALUES (?)", (fingerprint,)).lastrowid
    database.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (number, " ".join(terms(words))))
    return int(number)


def _match(query: str) -> str:
    """Write a query for FTS5: any of its terms. Terms are only letters and digits, so none is an operator."""
    wanted = list(dict.fromkeys(terms(query[:_MOST_QUERY_CHARS])))[:_MOST_TERMS]
    return " OR ".join(f'"{term}"' for term in wanted)


def _head(image: bytes) -> bytes:
    return f"{_FORMAT} {digest(image)}".encode()
