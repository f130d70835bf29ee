"""What a pattern found, and what is to be masked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

MASK = "<REDACTED>"


class Span(NamedTuple):
    """A piece of a text that is masked: where, by which rule, and what stands there instead."""

    start: int
    end: int
    rule: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A match, in its text."""

    text: str
    start: int
    end: int
    match_end: int
    key_start: int
    key_end: int

    @property
    def value(self) -> str:
        """What would be masked."""
        return self.text[self.start : self.end]

    @property
    def key(self) -> str:
        """The name that stands before it; empty where the rule has none."""
        return self.text[self.key_start : self.key_end]

    def before(self, chars: int) -> str:
        """The text just before it."""
        return self.text[max(0, self.start - chars) : self.start]

    def after(self, chars: int) -> str:
        """The text just after it."""
        return self.text[self.end : self.end + chars]


Bounds: TypeAlias = "tuple[int, int] | None"
Judge: TypeAlias = Callable[[Candidate], Bounds]
"""Says what of a candidate is to be masked: other bounds than the match's where it knows better, or None."""
Find: TypeAlias = Callable[[Candidate], "Span | None"]
"""The same, with the rule's name and its mask."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, with those that touch or overlap made one."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start <= joined[-1].end:
            before = joined[-1]
            mask = before.replacement if before.replacement == span.replacement else MASK
            joined[-1] = Span(before.start, max(before.end, span.end), before.rule, mask)
        else:
            joined.append(span)
    return joined
