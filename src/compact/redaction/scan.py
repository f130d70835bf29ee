"""The engine: locate, confirm, judge. It finds spans; it changes nothing and never raises because of a text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Literal, TypeAlias

from compact.errors import MissingExtra
from compact.redaction.fields.assignments import Assignments
from compact.redaction.fields.surroundings import FieldMemory
from compact.redaction.fields.values import Fields
from compact.redaction.rules.candidates import MASK, Candidate, Find, Judge, Span
from compact.redaction.rules.judges import JUDGES
from compact.redaction.rules.locate import Detector, HyperscanLocator, KeywordLocator, Locator
from compact.redaction.rules.patterns import Pattern, one_byte_per_character
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.validators import CHECKS
from compact.tokens.memo import Memo

LocatorName: TypeAlias = Literal["auto", "re2", "hyperscan"]

MAX_MATCHES = 1_000_000
"""Matches of one rule in one text. What follows the last of them is masked whole: too much rather than too little."""

_SHORTEST_TEXT = 3
_BYTES_BEFORE_HYPERSCAN = 16_000_000
"""Compiling its database takes a quarter of a second; for less text than this it does not pay."""


_MEMORY_BYTES = 8_000_000
_REMEMBERED_BYTES = 200
"""A session passes the same texts through at every pass and at several exits. Only their digests are kept."""


class Engine:
    """A set of rules, compiled. Immutable but for caches; share it between threads."""

    def __init__(self, rules: Iterable[Rule], locator: LocatorName = "auto") -> None:
        self.rules = tuple(rules)
        self.fields = Fields(rule for rule in self.rules if rule.scope == "key")
        masks = sorted({MASK, *(rule.replacement for rule in self.rules)} - {""}, key=len, reverse=True)
        self._masks = re.compile("|".join(map(re.escape, masks)))
        detectors = [_text_detector(rule) for rule in self.rules if rule.scope == "text"]
        detectors += [
            _field_detector(number, *entry)
            for number, entry in enumerate(Assignments(self.fields).patterns())
        ]
        self.detectors = tuple(detectors)
        exact = [place for place, detector in enumerate(detectors) if detector.pattern.needs_real_characters]
        self._places = [place for place in range(len(detectors)) if place not in exact]
        self._keywords = KeywordLocator(detectors, self._places)
        self._exact_keywords = KeywordLocator(detectors, exact)
        self._clean: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._may_match: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._clean_json: Memo[bytes, bool] = Memo(_MEMORY_BYTES)
        self._fast: Locator | None = None
        self._bytes_left = _BYTES_BEFORE_HYPERSCAN if locator == "auto" else 0
        self._locator = locator
        if locator == "hyperscan":
            self._fast = self._hyperscan()

    def find(self, text: str) -> list[Span]:
        """Every span to mask, by start; they may overlap."""
        if len(text) < _SHORTEST_TEXT:
            return []
        digest = _digest(text)
        if self._clean.get(digest):
            return []
        found = self._search(text)
        if not found:
            self._clean.put(digest, True, _REMEMBERED_BYTES)
        return found

    def _search(self, text: str) -> list[Span]:
        shadow = one_byte_per_character(text)
        found: list[Span] = []
        for place in self._worth_trying(text, shadow):
            found += self._found_by(self.detectors[place], text, shadow)
        found.sort()
        return self._without_masks(text, found) if found else found

    def may_match(self, text: str) -> bool:
        """Whether a field's name or another secret could stand anywhere in JSON text.

        False means that none of its leaves holds anything to mask, as long as no escape hides a character.
        """
        digest = _digest(text)
        known = self._may_match.get(digest)
        if known is None:
            known = self._has_candidate(text)
            self._may_match.put(digest, known, _REMEMBERED_BYTES)
        return known

    def is_clean_json(self, text: str) -> bool:
        """Whether this text was read as JSON before, and nothing in it was masked."""
        return self._clean_json.get(_digest(text)) is True

    def remember_clean_json(self, text: str) -> None:
        """Nothing was masked in this text, which was read as JSON."""
        self._clean_json.put(_digest(text), True, _REMEMBERED_BYTES)

    def _has_candidate(self, text: str) -> bool:
        shadow = one_byte_per_character(text)
        for place in (*self._keywords.which(shadow), *self._exact_places(text)):
            detector = self.detectors[place]
            if detector.is_field or detector.is_anchored:
                return True
            if next(detector.pattern.spans(text, shadow), None) is not None:
                return True
        return False

    def _worth_trying(self, text: str, shadow: bytes) -> Sequence[int]:
        locator = self._locator_for(len(shadow))
        try:
            places = locator.which(shadow)
        except Exception:
            # Hyperscan gave up (no memory, a scratch in use): the keywords always answer.
            places = self._keywords.which(shadow)
        exact = self._exact_places(text)
        return sorted({*places, *exact}) if exact else places

    def _exact_places(self, text: str) -> Sequence[int]:
        return self._exact_keywords.which(text.encode("utf-8", "replace"))

    def _locator_for(self, size: int) -> Locator:
        if self._locator == "auto":
            self._bytes_left -= size
            if self._bytes_left < 0:
                self._locator = "re2"
                with suppress(Exception):  # not installed, or not for this processor: the keywords do as well
                    self._fast = self._hyperscan()
        return self._fast or self._keywords

    def _hyperscan(self) -> Locator:
        try:
            return HyperscanLocator(self.detectors, self._places)
        except ImportError:
            raise MissingExtra.named("fast", "the Hyperscan locator") from None

    def _found_by(self, detector: Detector, text: str, shadow: bytes) -> list[Span]:
        found: list[Span] = []
        masked_to = 0
        find = FieldMemory(detector.find) if detector.is_field else detector.find
        matches = detector.pattern.spans(text, shadow)
        for start, end, match_end, key_start, key_end in islice(matches, MAX_MATCHES):
            if start == end == match_end or (start < masked_to and match_end <= masked_to):
                continue
            candidate = Candidate(text, start, end, match_end, key_start, key_end)
            try:
                span = find(candidate)
            except Exception:
                # A check that fails says nothing about the text: mask what the pattern found.
                span = Span(start, end, detector.id, MASK)
            if span is not None and span.start < span.end:
                found.append(span)
                masked_to = span.end
        if next(matches, None) is not None:
            found.append(Span(masked_to, len(text), detector.id, MASK))
        return found

    def _without_masks(self, text: str, spans: list[Span]) -> list[Span]:
        """What is masked is never masked again: spans in a mask go, and those that cut into one take it whole."""
        masked = [match.span() for match in self._masks.finditer(text)]
        if not masked:
            return spans
        kept = []
        for span in spans:
            start, end = _widened(span, masked)
            rest, masks_inside = self._masks.subn("", text[start:end])
            if not masks_inside or any(char.isalnum() for char in rest):
                kept.append(span._replace(start=start, end=end))
        return sorted(kept)


def _widened(span: Span, masked: list[tuple[int, int]]) -> tuple[int, int]:
    start, end = span.start, span.end
    first = bisect_right(masked, start, key=itemgetter(0)) - 1
    if first >= 0 and masked[first][1] > start:
        start = masked[first][0]
    last = bisect_left(masked, end, key=itemgetter(0)) - 1
    if last >= 0 and masked[last][1] > end:
        end = masked[last][1]
    return start, end


@lru_cache(maxsize=32)
def engine_for(rules: tuple[Rule, ...], locator: LocatorName = "auto") -> Engine:
    """The engine of a set of rules; the same rules share one."""
    return Engine(rules, locator)


def _text_detector(rule: Rule) -> Detector:
    return Detector(rule.id, rule.pattern, rule.regex, rule.keywords, rule.ignores_case, _finder(rule))


def _finder(rule: Rule) -> Find:
    judge = _judge_of(rule)

    def find(found: Candidate) -> Span | None:
        bounds = judge(found)
        return None if bounds is None else Span(*bounds, rule.id, rule.replacement)

    return find


def _judge_of(rule: Rule) -> Judge:
    check = rule.validator
    if check is None:
        return lambda found: (found.start, found.end)
    if isinstance(check, str):
        if check in JUDGES:
            return JUDGES[check]
        check = CHECKS[check]
    accepts = check
    return lambda found: (found.start, found.end) if accepts(found.value) else None


def _field_detector(number: int, source: str, stems: tuple[str, ...], judge: Find) -> Detector:
    return Detector(f"field-{number}", source, Pattern(source), stems, True, judge, is_field=True)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
