"""Finds lines that match a pattern. RE2 only, because the pattern comes from a model and the text from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_PATTERN_CHARS = 1_000
_MEMORY = 8 << 20
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

    def matches(self, text: str) -> Iterator[Match]:
        """Find the matching lines, in order."""
        data = text.removesuffix("\n").encode("utf-8", "replace")
        place = 0
        line = 0
        while text:
            found = self._regex.search(data, place)
            if found is None:
                return
            line += data.count(b"\n", place, found.start())
            start = data.rfind(b"\n", 0, found.start()) + 1
            yield Match(line, len(data[start : found.start()].decode("utf-8", "replace")))
            end = data.find(b"\n", found.start())
            if end < 0:
                return
            place, line = end + 1, line + 1


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
