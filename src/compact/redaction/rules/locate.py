"""Locators: which detectors can find something in a text at all. One pass for all of them, then RE2 confirms.

Both locators may name a detector too many, never one too few, so the result is the same with either.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import re2  # type: ignore[import-untyped]

from compact.redaction.rules.candidates import Find
from compact.redaction.rules.patterns import Pattern, options


@dataclass(frozen=True, slots=True)
class Detector:
    """A rule made ready: a pattern, the words without which it cannot match, and the judge of what it finds."""

    id: str
    source: str
    pattern: Pattern
    keywords: tuple[str, ...]
    ignores_case: bool
    find: Find
    is_field: bool = False
    """It looks for names of fields, which JSON and data hold apart from their values."""

    @property
    def is_anchored(self) -> bool:
        """Whether it may match at the edge of a leaf and not inside a longer text."""
        return "^" in self.source or "$" in self.source or r"\A" in self.source or r"\z" in self.source


class Locator(Protocol):
    """Names the detectors that are worth trying."""

    def which(self, shadow: bytes) -> Sequence[int]:
        """Their places in the list, rising."""
        ...


class KeywordLocator:
    """All keywords of all detectors as one RE2 set: one pass over the text, whatever their number."""

    def __init__(self, detectors: Sequence[Detector], places: Sequence[int]) -> None:
        self._set = re2.Set.SearchSet(options())
        self._owners: list[int] = []
        self._always = [place for place in places if not detectors[place].keywords]
        for place in places:
            flag = "(?i)" if detectors[place].ignores_case else ""
            for word in detectors[place].keywords:
                self._set.Add(flag + re2.escape(word))
                self._owners.append(place)
        if self._owners:
            self._set.Compile()

    def which(self, shadow: bytes) -> Sequence[int]:
        """See `Locator.which`."""
        hits = (self._set.Match(shadow) or ()) if self._owners else ()
        if not hits:
            return self._always
        return sorted({*self._always, *(self._owners[hit] for hit in hits)})


class HyperscanLocator:
    """All patterns themselves in one Hyperscan pass: only detectors that really match are tried.

    Hyperscan wants one scratch space per thread. A pattern that it does not take is left to the keywords.
    """

    def __init__(self, detectors: Sequence[Detector], places: Sequence[int]) -> None:
        import hyperscan

        self._hyperscan: Any = hyperscan
        self._local = threading.local()
        numbered = [(place, detectors[place]) for place in places]
        try:
            self._database = self._compiled(numbered)
        except hyperscan.HyperscanError:
            numbered = [(place, detector) for place, detector in numbered if self._takes(detector)]
            self._database = self._compiled(numbered) if numbered else None
        taken = {place for place, _ in numbered}
        self._rest = KeywordLocator(detectors, [place for place in places if place not in taken])

    def which(self, shadow: bytes) -> Sequence[int]:
        """See `Locator.which`."""
        found: set[int] = set(self._rest.which(shadow))

        def hit(place: int, *_: object) -> None:
            found.add(place)

        if self._database is not None:
            self._database.scan(shadow, match_event_handler=hit, scratch=self._scratch())
        return sorted(found)

    def _takes(self, detector: Detector) -> bool:
        try:
            self._compiled([(0, detector)])
        except self._hyperscan.HyperscanError:
            return False
        return True

    def _compiled(self, numbered: Sequence[tuple[int, Detector]]) -> Any:
        database = self._hyperscan.Database()
        database.compile(
            expressions=[_without_names(detector.source).encode("ascii") for _, detector in numbered],
            ids=[place for place, _ in numbered],
            elements=len(numbered),
            flags=self._hyperscan.HS_FLAG_SINGLEMATCH,
        )
        return database

    def _scratch(self) -> Any:
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._hyperscan.Scratch(self._database)
        return scratch


def _without_names(source: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(", source)
