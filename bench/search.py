"""Ranked search in archives of real sessions: is a passage found by the words around an identifier?

The first half of each session is archived. Identifiers are picked from it with a fixed seed: paths, names in
snake_case and camelCase, hexadecimal ids, numbers with a unit. Each is asked for by up to twelve words around it, from
its line and the two lines on either side, never by the identifier itself. The marks of a page, which name calls, are not asked for. It counts as found if one answer of the tool `search`,
at most 4,000 characters, has it. Sizes and rules of the search were chosen on one half of the sessions; the other half is the
measurement.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from bench import Figure, Skipped, best_of, transcripts
from compact.archive import Archive, MemoryStore
from compact.archive.recall import SearchIndex, recall_tools
from compact.events import Ids, Recorder
from compact.redaction import Redactor

KINDS = {
    "path": r"(?<![\w./:-])(?:[\w.@-]*/)?(?:[\w.@-]+/)+[\w@-]+(?:\.\w+)*",
    "snake_case": r"(?<![\w./-])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w/])",
    "camelCase": r"(?<![\w./-])(?:[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,})(?![\w/])",
    "hex id": r"(?<![\w./-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}(?![\w/])",
    "number": r"(?<![\w./-])\$?\d[\d,]*(?:\.\d+)?\s?"
    r"(?:ms|s|sec|seconds|minutes|hours|days|[kKMG]i?[bB]|bytes|tokens|lines|px|%|USD|dollars)(?![\w/])",
}
WORDS_AROUND = 12
FEWEST_WORDS = 4
ANSWER_CHARS = 4_000
_READ_CHARS = 3_700
"""What an answer shows of the files; the rest are its first line, its notes and the names of the files."""
_STORED_FROM_CHARS = 8_000
"""Tool outputs of this size or more are stored separately, like an agent's large outputs."""
_LARGE = 50
"""Pieces that a session needs. Of fewer, three would be much of it."""
_FEWEST_SESSIONS = 20
"""Large sessions needed to pick 500 identifiers in each half. With fewer, the same ones would be asked for repeatedly."""
_PIECE_CHARS, _PIECE_STEP = 1_200, 1_000
_NEAR_CHARS = 2_000
_MARKS = ("**calls `", "**result of** ", "**error of** ", "# ")
_EDGES = ".,;:()[]{}<>\"'`*=|→#!?"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An identifier in a file of a session, and the query for it."""

    session: str
    kind: str
    name: str
    query: str


def bench_found_by_surrounding_words() -> Iterator[Figure]:
    """500 identifiers each, asked for without themselves: share that one answer has, of at most 4,000 characters."""
    archive, large = _enough_large_sessions()
    for label, sessions in (("tuning half", large[::2]), ("measured half", large[1::2])):
        wanted = pick(archive, sessions, 500)
        about = f"{label}: {len(sessions)} sessions"
        yield Figure(
            f"{about}, by 12 words (any such piece: {chance(archive, wanted):.2f})",
            share_found(archive, wanted),
            "",
            0.75,
            at_least=True,
        )
        yield Figure(
            f"{about}, by 4 words of them", share_found(archive, fewer(wanted)), "", 0.75, at_least=True
        )
        plain = fewer(pick(archive, sessions, 500, plain=True))
        yield Figure(f"{about}, by 4 plain words", share_found(archive, plain), "", 0.75, at_least=True)


def bench_each_kind() -> Iterator[Figure]:
    """The measured half by kind of identifier, by 12 words."""
    archive, large = _enough_large_sessions()
    wanted = pick(archive, large[1::2], 500)
    for kind in KINDS:
        of_kind = [each for each in wanted if each.kind == kind]
        if of_kind:
            yield Figure(f"{kind} ({len(of_kind)})", share_found(archive, of_kind), "", 0.75, at_least=True)


def bench_only_new_records_are_read() -> Iterator[Figure]:
    """Files read by a search after one record was added to a session of many, and what searches cost."""
    archive, large = large_sessions()
    if not large:
        raise Skipped.for_want_of_data("no session is large")
    session = max(large, key=lambda each: sum(info.size for info in archive.files(each)))
    texts = [archive.read_text(session, info.path) for info in archive.files(session)]
    copy = CountingArchive()
    for number, text in enumerate(texts):
        copy.put_output("copy", text, tool_name="bash", tool_call_id=f"call_{number}")
    seconds = best_of(1, partial(SearchIndex(copy, "copy").search, "warm up"))
    size = sum(map(len, texts))
    index = SearchIndex(copy, "copy")
    copy.put_output("copy", "one more output, about zebras", tool_name="bash", tool_call_id="call_new")
    copy.texts_read.clear()
    hits = index.search("zebra")
    new = len(copy.texts_read) - len({hit.path for hit in hits})
    yield Figure(f"files read to index, of {len(texts) + 1}", new, "", 1)
    yield Figure(f"first search, {size / 1e6:.1f} MB", seconds / (size / 1e6), "s/MB", 2)
    yield Figure("a search when nothing is new", best_of(5, partial(index.search, "zebra")) * 1e3, "ms", 200)


class CountingArchive(Archive):
    """An archive in memory that notes which files are read."""

    def __init__(self) -> None:
        super().__init__(
            MemoryStore(), Redactor(), Recorder(lambda: datetime(2026, 1, 1, tzinfo=UTC), Ids("bench"))
        )
        self.texts_read: list[str] = []

    def read_text(self, session_id: str, path: str) -> str:
        """Read a file, and note that it was read."""
        self.texts_read.append(path)
        return super().read_text(session_id, path)


def archive_first_halves(sessions: Sequence[dict[str, Any]]) -> Archive:
    """An archive in memory with one step of each session: its first half, large outputs stored separately."""
    archive = CountingArchive()
    for session in sessions:
        messages = session["messages"][: len(session["messages"]) // 2]
        kept = [_with_output_stored(archive, session["id"], message) for message in messages]
        with archive.begin(session["id"], kept, dialect="chat", after=0) as attempt:
            attempt.commit(summary={}, state={})
    return archive


def pick(
    archive: Archive, sessions: Sequence[str], count: int, *, seed: int = 1, plain: bool = False
) -> list[Wanted]:
    """Different identifiers, of each kind in turn, from random sessions; with `plain` asked for by words of letters."""
    chance = random.Random(seed)
    places = {kind: _places(archive, sessions, re.compile(pattern)) for kind, pattern in KINDS.items()}
    picked: dict[tuple[str, str], Wanted] = {}
    kinds = [kind for kind in KINDS if places[kind]]
    for turn in range(count * 20):
        kind = kinds[turn % len(kinds)]
        session = chance.choice(sorted(places[kind]))
        path, line, start, end = chance.choice(places[kind][session])
        lines = _lines(archive, session, path)
        name = lines[line][start:end]
        words = _words_around(lines, line, start, end, _accepts(name, plain))
        if len(words) >= FEWEST_WORDS:
            picked.setdefault((session, name), Wanted(session, kind, name, " ".join(words)))
        if len(picked) == count:
            break
    return list(picked.values())


def fewer(wanted: Sequence[Wanted], count: int = 4, seed: int = 2) -> list[Wanted]:
    """The same identifiers, asked for by a few of the words."""
    chance = random.Random(seed)
    found = []
    for each in wanted:
        words = list(dict.fromkeys(each.query.split()))
        chance.shuffle(words)
        found.append(replace(each, query=" ".join(words[:count])))
    return found


def share_found(archive: Archive, wanted: Sequence[Wanted]) -> float:
    """The share whose identifier is in one answer to its query."""
    tools = {each.session: recall_tools(archive, each.session)["search"] for each in wanted}
    found = [each.name in _passages_in(tools[each.session](query=each.query)) for each in wanted]
    return sum(found) / len(found)


def _passages_in(answer: str) -> str:
    """An answer of at most 4,000 characters without its first line, which repeats the query."""
    return answer[:ANSWER_CHARS].partition("\n")[2]


def chance(archive: Archive, wanted: Sequence[Wanted]) -> float:
    """The exact share for random pieces, as many as an answer has room for."""
    total = 0.0
    for each in wanted:
        pieces = _pieces(archive, each.session)
        without = sum(each.name not in piece for piece in pieces)
        misses = 1.0
        for taken in range(min(_READ_CHARS // _PIECE_CHARS, len(pieces))):
            misses *= max(0, without - taken) / (len(pieces) - taken)
        total += 1 - misses
    return total / len(wanted)


def _enough_large_sessions() -> tuple[Archive, tuple[str, ...]]:
    archive, large = large_sessions()
    if len(large) < _FEWEST_SESSIONS:
        raise Skipped.for_want_of_data(f"{len(large)} large sessions are too few")
    return archive, large


@cache
def large_sessions() -> tuple[Archive, tuple[str, ...]]:
    """The archive, and its large sessions in random order."""
    sessions = [
        json.loads(line) for file in transcripts() for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    archive = archive_first_halves(sessions)
    ids = sorted(session["id"] for session in sessions)
    random.Random(7).shuffle(ids)
    return archive, tuple(each for each in ids if len(_pieces(archive, each)) >= _LARGE)


def _with_output_stored(archive: Archive, session: str, message: dict[str, Any]) -> dict[str, Any]:
    text = message.get("content")
    if message["role"] != "tool" or not isinstance(text, str) or len(text) < _STORED_FROM_CHARS:
        return message
    stored = archive.put_output(session, text, tool_name="tool", tool_call_id=message["tool_call_id"])
    return {**message, "content": f"The output is at {stored.path}"}


def _places(
    archive: Archive, sessions: Sequence[str], pattern: re.Pattern[str]
) -> dict[str, list[tuple[str, int, int, int]]]:
    found: dict[str, list[tuple[str, int, int, int]]] = {}
    for session in sessions:
        for info in archive.files(session):
            for number, line in enumerate(_lines(archive, session, info.path)):
                if line.startswith(_MARKS):
                    continue
                for match in pattern.finditer(line):
                    found.setdefault(session, []).append((info.path, number, match.start(), match.end()))
    return found


def _words_around(
    lines: Sequence[str], line: int, start: int, end: int, accept: Callable[[str], bool]
) -> list[str]:
    before = _words(lines[line][max(0, start - _NEAR_CHARS) : start], accept)
    after = _words(lines[line][end : end + _NEAR_CHARS], accept)
    for above in lines[max(0, line - 2) : line][::-1]:
        if len(before) < WORDS_AROUND // 2:
            before = _words(above[-_NEAR_CHARS:], accept) + before
    for below in lines[line + 1 : line + 3]:
        if len(after) < WORDS_AROUND // 2:
            after += _words(below[:_NEAR_CHARS], accept)
    before = before[-(WORDS_AROUND // 2) :]
    return before + after[: WORDS_AROUND - len(before)]


def _words(text: str, accept: Callable[[str], bool]) -> list[str]:
    return [word for piece in text.split() if accept(word := piece.strip(_EDGES))]


def _accepts(name: str, plain: bool) -> Callable[[str], bool]:
    lower = name.lower()
    if plain:
        return lambda word: word.isalpha() and lower not in word.lower()
    return lambda word: any(map(str.isalnum, word)) and lower not in word.lower()


@cache
def _lines(archive: Archive, session: str, path: str) -> list[str]:
    return archive.read_text(session, path).split("\n")


@cache
def _pieces(archive: Archive, session: str) -> frozenset[str]:
    texts = [archive.read_text(session, info.path) for info in archive.files(session)]
    return frozenset(
        text[place : place + _PIECE_CHARS] for text in texts for place in range(0, len(text), _PIECE_STEP)
    )
