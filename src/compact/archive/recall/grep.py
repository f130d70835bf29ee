"""Finds lines that match a pattern. RE2 only, because the pattern comes from a model and the text from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_PATTERN_CHARS = 1_000
_MEMORY = 8 << 20
PIECE_BYTES = 1 << 18
OVERLAP_BYTES = 1 << 12
_EACH_LINE = "(?m)"
"""Makes `^` and `$` match at the ends of a line."""


@dataclass(frozen=True, slots=True)
class Match:
    """The first match in a line."""

    line: int
    """Counted from 0."""
    column: int
    """Where the match starts, in characters."""


class LinePattern:
    """A pattern that is matched against each line.

    Raises:
        ValueError: the pattern is empty, too long, or not accepted by RE2. Says which.
    """

    def __init__(self, source: str, *, ignore_case: bool = False) -> None:
        if not source:
            raise ValueError("the pattern is empty")
        if len(source) > _MAX_PATTERN_CHARS:
            raise ValueError(f"the pattern has {len(source):,} characters, more than {_MAX_PATTERN_CHARS:,}")
        try:
            self._regex = re2.compile(f"{_EACH_LINE}{source}", _options(ignore_case))
        except re2.error as problem:
            raise ValueError(f"RE2 does not accept the pattern: {_words(problem)}") from None
        except UnicodeEncodeError:
            raise ValueError("the pattern holds half a character, which no text contains") from None

    def matches(self, text: str, stop: Callable[[], bool] = lambda: False) -> Iterator[Match]:
        """Find the matching lines, in order. `stop` is asked before each piece of the text; True ends the search."""
        if not text:
            return
        data = text.removesuffix("\n").encode("utf-8", "replace")
        line, counted = 0, 0
        for start, end in _pieces(data):
            for place in self._matches_in(data, start, end, stop):
                line += data.count(b"\n", counted, place)
                counted = data.rfind(b"\n", 0, place) + 1
                yield Match(line, len(data[counted:place].decode("utf-8", "replace")))
            if stop():
                return

    def _matches_in(self, data: bytes, start: int, end: int, stop: Callable[[], bool]) -> Iterator[int]:
        """Yield where the first match of each line of a piece begins."""
        place = self._match_in(data, start, end, stop)
        while place is not None:
            yield place
            line_end = data.find(b"\n", place, end)
            place = None if line_end < 0 else self._match_in(data, line_end + 1, end, stop)

    def _match_in(self, data: bytes, start: int, end: int, stop: Callable[[], bool]) -> int | None:
        """Return where the first match in a piece begins. A very long line is looked at through overlapping windows."""
        while not stop():
            window = min(end, start + PIECE_BYTES)
            found = self._regex.search(data, start, window)
            # A match that ends with its window may only seem to end there. The next window shows all of it.
            if found is not None and (
                window == end or found.end() < window or found.start() < window - OVERLAP_BYTES
            ):
                return int(found.start())
            if window == end:
                return None
            start = window - OVERLAP_BYTES
        return None


def _pieces(data: bytes) -> Iterator[tuple[int, int]]:
    """Divide a text at the ends of lines, which belong to no piece. Only a line that is longer than a piece is a longer one."""
    start = 0
    while len(data) - start > PIECE_BYTES:
        cut = data.rfind(b"\n", start, start + PIECE_BYTES)
        if cut < 0:
            cut = data.find(b"\n", start + PIECE_BYTES)
        if cut < 0:
            break
        yield start, cut
        start = cut + 1
    yield start, len(data)


def _options(ignore_case: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.case_sensitive = not ignore_case
    options.never_nl = True  # a match never crosses the end of its line
    return options


def _words(problem: Any) -> str:
    detail = problem.args[0] if problem.args else problem
    words = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return words.replace(_EACH_LINE, "", 1)
