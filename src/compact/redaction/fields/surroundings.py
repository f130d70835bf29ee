"""A cache for texts that are dense with fields: equal surroundings are judged once."""

from __future__ import annotations

from compact.redaction.rules.matches import Candidate, Find, Finding

_BEFORE = 640
_AFTER = 5_120
"""More than the judge of a field ever reads, so that equal surroundings always get equal judgements."""
_LONGEST_MATCH = 256
FREE_MATCHES = 500
"""Ordinary texts have fewer fields than this. The first ones are judged without being remembered."""
_MOST_REMEMBERED = 64
_TRIES = 2_000
_WORTHWHILE = 0.5


class FieldMemory:
    """The judge of a field detector, for one text. It remembers judgements once there are many fields."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._seen = 0
        self._hits = 0
        self._known: dict[tuple[int, str], Finding | None] = {}

    def __call__(self, candidate: Candidate) -> Finding | None:
        """Judge a candidate; see `matches.Find`."""
        self._seen += 1
        tries = self._seen - FREE_MATCHES
        if (
            tries <= 0
            or candidate.match_end - candidate.start > _LONGEST_MATCH
            or (tries > _TRIES and self._hits < tries * _WORTHWHILE)
        ):
            return self._find(candidate)
        first = max(0, candidate.start - _BEFORE)
        surroundings = (candidate.start - first, candidate.text[first : candidate.start + _AFTER])
        if surroundings in self._known:
            self._hits += 1
            return _move(self._known[surroundings], first)
        finding = self._find(candidate)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)))
        if finding is None or finding.end < candidate.start + _AFTER:
            self._known[surroundings] = _move(finding, -first)
        return finding


def _move(finding: Finding | None, chars: int) -> Finding | None:
    if finding is None:
        return None
    return Finding(finding.start + chars, finding.end + chars, finding.rule, finding.replacement)
