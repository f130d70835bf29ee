"""Locators: which detectors can match in a text at all. One pass serves all of them; RE2 confirms afterwards.

A locator may name a detector too many but never one too few, so both locators give the same result.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import re2  # type: ignore[import-untyped]

from compact.redaction.rules.detectors import Detector
from compact.redaction.rules.patterns import re2_options

_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


class Locator(Protocol):
    """Names the detectors that are worth trying."""

    def locate(self, shadow: bytes) -> Sequence[int]:
        """The places of these detectors in the list, in ascending order."""
        ...


class KeywordLocator:
    """All keywords of all detectors in one RE2 set, which takes one pass over the text however many there are."""

    def __init__(self, detectors: Sequence[Detector], places: Sequence[int]) -> None:
        self._set = re2.Set.SearchSet(re2_options())
        self._owners: list[int] = []
        self._always = [place for place in places if not detectors[place].keywords]
        for place in places:
            flag = "(?i)" if detectors[place].ignores_case else ""
            for word in detectors[place].keywords:
                self._set.Add(flag + re2.escape(word))
                self._owners.append(place)
        if self._owners:
            self._set.Compile()

    def locate(self, shadow: bytes) -> Sequence[int]:
        """See `Locator.locate`."""
        hits = (self._set.Match(shadow) or ()) if self._owners else ()
        if not hits:
            return self._always
        return sorted({*self._always, *(self._owners[hit] for hit in hits)})


class HyperscanLocator:
    """All patterns in one Hyperscan pass, so that only detectors that really match are tried.

    A pattern that Hyperscan does not support is located by its keywords.
    """

    def __init__(self, detectors: Sequence[Detector], places: Sequence[int]) -> None:
        import hyperscan

        self._hyperscan: Any = hyperscan
        self._detectors = detectors
        self._local = threading.local()
        supported = places
        try:
            self._database = self._compile(places)
        except hyperscan.HyperscanError:
            supported = [place for place in places if self._supports(place)]
            self._database = self._compile(supported) if supported else None
        self._rest = KeywordLocator(detectors, [place for place in places if place not in supported])

    def locate(self, shadow: bytes) -> Sequence[int]:
        """See `Locator.locate`."""
        found: set[int] = set(self._rest.locate(shadow))

        def hit(place: int, *_: object) -> None:
            found.add(place)

        if self._database is not None:
            self._database.scan(shadow, match_event_handler=hit, scratch=self._scratch())
        return sorted(found)

    def _supports(self, place: int) -> bool:
        try:
            self._compile([place])
        except self._hyperscan.HyperscanError:
            return False
        return True

    def _compile(self, places: Sequence[int]) -> Any:
        sources = [_NAMED_GROUP.sub("(", self._detectors[place].source) for place in places]
        database = self._hyperscan.Database()
        database.compile(
            expressions=[source.encode("ascii") for source in sources],
            ids=list(places),
            elements=len(places),
            flags=self._hyperscan.HS_FLAG_SINGLEMATCH,
        )
        return database

    def _scratch(self) -> Any:
        # Hyperscan requires a scratch space for each thread.
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._hyperscan.Scratch(self._database)
        return scratch
