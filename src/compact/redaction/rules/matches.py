"""What a pattern matched, and what of it is masked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

MASK = "<REDACTED>"
LABEL = re.compile(r"[A-Z]{2,12}")
PLACEHOLDER = re.compile(r"<(?P<label>[A-Z]{2,12})_(?P<number>[1-9][0-9]{0,8})>")
"""What stands for a value in the messages that go to a model. It is never masked itself."""


class Finding(NamedTuple):
    """A piece of a text to mask, with the id of the rule that found it and the text that replaces it."""

    start: int
    end: int
    rule: str
    replacement: str


class Candidate(NamedTuple):
    """A match of a pattern that still has to be judged."""

    text: str
    start: int
    end: int
    match_end: int
    key_start: int
    key_end: int

    @property
    def value(self) -> str:
        """The part of the match that would be masked."""
        return self.text[self.start : self.end]

    @property
    def bounds(self) -> tuple[int, int]:
        """Start and end of `value`."""
        return self.start, self.end

    @property
    def key(self) -> str:
        """The field's name, or an empty string if the pattern has no group `key`."""
        return self.text[self.key_start : self.key_end]

    def before(self, chars: int) -> str:
        """The text just before the value."""
        return self.text[max(0, self.start - chars) : self.start]

    def after(self, chars: int) -> str:
        """The text just after the value."""
        return self.text[self.end : self.end + chars]


Bounds: TypeAlias = "tuple[int, int] | None"
Judge: TypeAlias = Callable[[Candidate], Bounds]
"""Returns what to mask of a candidate, which may be more or less than the match, or None to leave it alone."""
Find: TypeAlias = Callable[[Candidate], "Finding | None"]
"""A judge that also names the rule and its replacement."""
FindAll: TypeAlias = "Callable[[str, Iterator[Candidate]], list[Finding]]"
"""A reader of a whole text. The candidates are the places where the pattern matches, in their order."""
