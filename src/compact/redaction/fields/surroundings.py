"""Dense text: where fields stand thick and repeat, each surrounding is judged once."""

from __future__ import annotations

from compact.redaction.rules.candidates import Candidate, Find, Span

_BEFORE = 256
_AFTER = 5_120
"""More than the judge of a field ever looks at, so that equal surroundings have equal judgements."""
_LONGEST_MATCH = 256
_FREE_MATCHES = 500
"""Ordinary texts have fewer fields: these are judged without being remembered."""
_MOST_REMEMBERED = 64
_TRIES = 2_000
_WORTHWHILE = 0.5

_Judgement = tuple[int, int, str, str] | None


class FieldMemory:
    """A field detector's judge for one text, which remembers its judgements once there are many."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._seen = 0
        self._hits = 0
        self._known: dict[tuple[int, str], _Judgement] = {}

    def __call__(self, found: Candidate) -> Span | None:
        """What the judge says; see `candidates.Find`."""
        self._seen += 1
        tries = self._seen - _FREE_MATCHES
        if (
            tries <= 0
            or found.match_end - found.start > _LONGEST_MATCH
            or (tries > _TRIES and self._hits < tries * _WORTHWHILE)
        ):
            return self._find(found)
        first = max(0, found.start - _BEFORE)
        surroundings = (found.start - first, found.text[first : found.start + _AFTER])
        if surroundings in self._known:
            self._hits += 1
            known = self._known[surroundings]
            return None if known is None else Span(first + known[0], first + known[1], *known[2:])
        span = self._find(found)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)))
        if span is None or span.end < found.start + _AFTER:
            self._known[surroundings] = span and (
                span.start - first,
                span.end - first,
                span.rule,
                span.replacement,
            )
        return span
