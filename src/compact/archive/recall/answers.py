"""The form of a recall tool's answer: the marker first, then notes for the model, then the text, all bounded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compact.errors import ConfigError
from compact.messages.excerpts import safe_cut
from compact.messages.message import RECALL_OPENS
from compact.redaction import MASK

FRAME_CHARS = 1500
"""Reserved in every answer for its first line and its notes."""

_LONGEST_CHARACTER = 64
"""In code points. A longer sequence of combining marks is noise and may be cut anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """How large an answer may be.

    Raises:
        ConfigError: a limit is too small for a useful answer.
    """

    max_chars: int = 16_000
    """Characters of one whole answer."""
    max_search_chars: int = 4_000
    """Characters of one whole answer of `search`: about 1,000 tokens."""
    max_lines: int = 400
    """Lines of text in one answer of `read_file`; files in one answer of `ls`."""
    max_line_chars: int = 2_000
    """Characters of one line among others. A line that is requested alone may take the whole answer."""
    max_matches: int = 50
    """Matching lines in one answer of `grep`."""
    max_seconds: float = 10.0
    """How long `grep` and `search` look. What they did not reach is named in the answer."""
    max_scanned_bytes: int = 1 << 28
    """Bytes of stored text that one call of `grep` reads."""

    def __post_init__(self) -> None:
        least = {
            "max_chars": 4 * FRAME_CHARS,
            "max_search_chars": FRAME_CHARS,
            "max_lines": 1,
            "max_line_chars": 80,
            "max_matches": 1,
            "max_seconds": 0.01,
            "max_scanned_bytes": 1,
        }
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise ConfigError(
                    f"{name} must be at least {minimum}, got {getattr(self, name)}",
                    hint="Smaller answers could not say how to read on",
                    path=name,
                )

    @property
    def text_chars(self) -> int:
        """Characters of one answer without its first line and notes."""
        return self.max_chars - FRAME_CHARS


class Deadline:
    """The moment at which a call stops looking. `clock` counts seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._at


class CannotAnswer(Exception):
    """A request that cannot be answered. `why` tells the model the reason, and `lines` what it could ask instead."""

    def __init__(self, why: str, lines: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.lines = lines


class BoundedLines:
    """Lines, up to a number of characters."""

    def __init__(self, max_chars: int) -> None:
        self.lines: list[str] = []
        self.left = max_chars

    def add(self, line: str) -> bool:
        """Add a line. Returns False if there is no room for it; then no later line fits either."""
        if len(line) + 1 > self.left:
            self.left = 0
            return False
        self.lines.append(line)
        self.left -= len(line) + 1
        return True


def answer(headline: str, lines: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """Compose an answer. It says how many spans of what it shows are masked."""
    masked = sum(line.count(MASK) for line in lines)
    notes = [*notes, _about_masks(masked)] if masked else notes
    return "\n".join([f"{RECALL_OPENS}{headline}", *(f"[{note}]" for note in notes), *lines])


def cut_near(text: str, end: int) -> int:
    """Return where to cut a text at `end` or just before it, so that no visible character is split."""
    if end >= len(text):
        return len(text)
    start = max(0, end - _LONGEST_CHARACTER)
    place = start + safe_cut(text[start : end + 1], end - start)
    return place if place > start else end


def quote(text: str, limit: int = 200) -> str:
    """Quote something that a model wrote: on one line, without control characters, shortened."""
    shown = repr(text[:limit])
    return shown if len(text) <= limit and len(shown) <= limit + 2 else f"{shown[:limit]}…'"


def plural(number: int, noun: str) -> str:
    """Format a number and what it counts: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _about_masks(count: int) -> str:
    spans = "1 span below is" if count == 1 else f"{count:,} spans below are"
    return f"{spans} masked as {MASK}: the values are not stored. Never write a mask back into a file or a command"
