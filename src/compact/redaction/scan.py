"""The scanner: locate, confirm, judge. It finds secrets, changes nothing, and never raises because of a text."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

import re2  # type: ignore[import-untyped]

from compact.errors import MissingExtra
from compact.redaction.disguises import DISGUISE_SIGN, undisguise
from compact.redaction.fields.assignments import Assignments
from compact.redaction.fields.names import FieldNames
from compact.redaction.fields.surroundings import FieldMemory
from compact.redaction.rules.detectors import Detector, detector_for
from compact.redaction.rules.edges import WORD_START
from compact.redaction.rules.matches import MASK, PLACEHOLDER, Finding
from compact.redaction.rules.patterns import one_byte_per_character, re2_options
from compact.redaction.rules.rule import Rule
from compact.tokens.memo import Memo

LocatorName: TypeAlias = Literal["auto", "re2", "hyperscan"]

MAX_MATCHES = 1_000_000
"""Matches of one rule in one text. The text after the last of them is masked whole: too much rather than too little."""
BYTES_BEFORE_HYPERSCAN = 16_000_000
"""Compiling Hyperscan's database takes a quarter of a second, which does not pay for less text than this."""
_SHORTEST_TEXT = 3
_MEMORY_BYTES = 8_000_000
_REMEMBERED_BYTES = 200
"""A session passes the same texts through at every pass and at several exits. Only their digests are kept."""
_DISGUISED = -1
"""Reported by the locator of exact characters for a text that has disguises in it."""
_ANY_PLACEHOLDER = re.sub(r"\?P<\w+>", "?:", PLACEHOLDER.pattern)
_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


class Scanner:
    """A compiled set of rules. It is immutable except for caches and safe to share between threads."""

    def __init__(self, rules: Iterable[Rule], locator: LocatorName = "auto") -> None:
        self.rules = tuple(rules)
        self.field_names = FieldNames(rule for rule in self.rules if rule.scope == "key")
        masks = sorted({MASK, *(rule.replacement for rule in self.rules)} - {""}, key=len, reverse=True)
        self._masks = re.compile("|".join([*map(re.escape, masks), _ANY_PLACEHOLDER]))
        text_detectors = (detector_for(rule) for rule in self.rules if rule.scope == "text")
        self.detectors = (*text_detectors, *Assignments(self.field_names).detectors())
        places = range(len(self.detectors))
        signs = {place: sign for place in places if (sign := self.detectors[place].sign)}
        exact = [place for place in places if self.detectors[place].pattern.needs_real_characters]
        self._places = [place for place in places if place not in exact and place not in signs]
        self._keywords = KeywordLocator(self.detectors, self._places)
        self._exact_keywords = KeywordLocator(self.detectors, exact, {_DISGUISED: DISGUISE_SIGN, **signs})
        self._clean: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._may_match: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._clean_json: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._hyperscan: Locator | None = self._load_hyperscan() if locator == "hyperscan" else None
        self._bytes_left: float = BYTES_BEFORE_HYPERSCAN if locator == "auto" else float("inf")

    def find(self, text: str) -> list[Finding]:
        """Find everything to mask, sorted by start. Findings may overlap."""
        if len(text) < _SHORTEST_TEXT:
            return []
        digest = _digest(text)
        if self._clean.get(digest):
            return []
        found = self._search(text)
        if not found:
            self._clean.put(digest, True, _REMEMBERED_BYTES)
        return found

    def may_match(self, text: str) -> bool:
        """Whether a JSON text could contain the name of a secret field or any other secret.

        False means that no leaf holds anything to mask, provided that no escape hides a character.
        """
        digest = _digest(text)
        known = self._may_match.get(digest)
        if known is None:
            known = self._has_candidate(text)
            self._may_match.put(digest, known, _REMEMBERED_BYTES)
        return known

    def is_clean_json(self, text: str) -> bool:
        """Whether `remember_clean_json` was called for this text."""
        return self._clean_json.get(_digest(text)) is True

    def remember_clean_json(self, text: str) -> None:
        """Remember that this text was read as JSON and nothing in it was masked."""
        self._clean_json.put(_digest(text), True, _REMEMBERED_BYTES)

    def _search(self, text: str) -> list[Finding]:
        found, disguised = self._search_as_written(text)
        if disguised:
            seen = undisguise(text)
            for finding in self._search_as_written(seen.text)[0]:
                start, end = seen.span(finding.start, finding.end)
                found.append(finding._replace(start=start, end=end))
        found.sort()
        return self._spare_masks(text, found) if found else found

    def _search_as_written(self, text: str) -> tuple[list[Finding], bool]:
        """Find secrets that are written plainly, and say whether the text has disguises in it."""
        shadow = one_byte_per_character(text)
        places, exact = self._locate(shadow), self._locate_exact(text)
        if exact:
            places = sorted({*places, *exact} - {_DISGUISED})
        found: list[Finding] = []
        for place in places:
            found += _run(self.detectors[place], text, shadow)
        return found, _DISGUISED in exact

    def _has_candidate(self, text: str) -> bool:
        shadow = one_byte_per_character(text)
        places = {*self._keywords.locate(shadow), *self._locate_exact(text)}
        if _DISGUISED in places:
            return True
        return any(
            detector.is_field or detector.is_anchored or any(detector.pattern.candidates(text, shadow))
            for detector in map(self.detectors.__getitem__, places)
        )

    def _locate(self, shadow: bytes) -> Sequence[int]:
        try:
            return self._choose_locator(len(shadow)).locate(shadow)
        except Exception:
            # Hyperscan gave up (no memory, a scratch space in use). The keywords always answer.
            return self._keywords.locate(shadow)

    def _locate_exact(self, text: str) -> Sequence[int]:
        return self._exact_keywords.locate(text.encode("utf-8", "replace"))

    def _choose_locator(self, size: int) -> Locator:
        self._bytes_left -= size
        if self._bytes_left < 0:
            self._bytes_left = float("inf")
            with suppress(Exception):  # not installed, or not for this processor: the keywords do as well
                self._hyperscan = self._load_hyperscan()
        return self._hyperscan or self._keywords

    def _load_hyperscan(self) -> Locator:
        try:
            return HyperscanLocator(self.detectors, self._places)
        except ImportError:
            raise MissingExtra.named("fast", "the Hyperscan locator") from None

    def _spare_masks(self, text: str, findings: list[Finding]) -> list[Finding]:
        """Drop findings inside a mask, and widen those that cut into one, so that no mask is masked again."""
        masks = [match.span() for match in self._masks.finditer(text)]
        if not masks:
            return findings
        kept = []
        for finding in findings:
            start, end = _widen(finding, masks)
            rest, masks_inside = self._masks.subn("", text[start:end])
            if not masks_inside or any(char.isalnum() for char in rest):
                kept.append(finding._replace(start=start, end=end))
        return sorted(kept)


class Locator(Protocol):
    """Names the detectors that can match in a text at all. One pass serves all of them; RE2 confirms afterwards.

    A locator may name a detector too many but never one too few, so both locators give the same result.
    """

    def locate(self, shadow: bytes) -> Sequence[int]:
        """The places of these detectors in the list, in ascending order."""
        ...


class KeywordLocator:
    """All keywords of all detectors in one RE2 set, which takes one pass over the text however many there are."""

    def __init__(
        self, detectors: Sequence[Detector], places: Sequence[int], signs: Mapping[int, str] | None = None
    ) -> None:
        """Args:
        detectors: all detectors.
        places: those to locate.
        signs: patterns to look for besides, by the number that `locate` reports.
        """
        self._set = re2.Set.SearchSet(re2_options())
        self._owners: list[int] = []
        for place, pattern in (signs or {}).items():
            self._set.Add(pattern)
            self._owners.append(place)
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
        # Without the edge it may locate too much, which is allowed, and is twice as fast.
        sources = [
            _NAMED_GROUP.sub("(", self._detectors[place].source.removeprefix(WORD_START)) for place in places
        ]
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


@lru_cache(maxsize=32)
def scanner_for(rules: tuple[Rule, ...], locator: LocatorName = "auto") -> Scanner:
    """The scanner of a set of rules. Equal sets share one."""
    return Scanner(rules, locator)


def _run(detector: Detector, text: str, shadow: bytes) -> list[Finding]:
    found: list[Finding] = []
    masked_to = 0
    find = FieldMemory(detector.find) if detector.is_field or detector.is_dense else detector.find
    candidates = detector.pattern.candidates(text, shadow)
    if detector.find_all is not None:
        return detector.find_all(text, islice(candidates, MAX_MATCHES))
    for candidate in islice(candidates, MAX_MATCHES):
        start, end, match_end = candidate.start, candidate.end, candidate.match_end
        if start == end == match_end or (start < masked_to and match_end <= masked_to):
            continue
        try:
            finding = find(candidate)
        except Exception:
            # A check that fails says nothing about the text: mask what the pattern matched.
            finding = Finding(start, end, detector.id, MASK)
        if finding is not None and finding.start < finding.end:
            found.append(finding)
            masked_to = finding.end
    if next(candidates, None) is not None:
        found.append(Finding(masked_to, len(text), detector.id, MASK))
    return found


def _widen(finding: Finding, masks: list[tuple[int, int]]) -> tuple[int, int]:
    start, end = finding.start, finding.end
    first = bisect_right(masks, start, key=itemgetter(0)) - 1
    if first >= 0 and masks[first][1] > start:
        start = masks[first][0]
    last = bisect_left(masks, end, key=itemgetter(0)) - 1
    if last >= 0 and masks[last][1] > end:
        end = masks[last][1]
    return start, end


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
