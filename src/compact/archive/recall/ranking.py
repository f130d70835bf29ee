"""Ranks units for a query, and picks passages of them: many short ones that differ, within a size.

A term counts in full in its own unit and less in the units beside it, in the message before and in the message after, so that
an answer is found by its question. The rarer a term, the more it counts. What a person said counts more than what an agent
said, and the beginning of their message most, because facts and wishes stand there. Copies count least. Every weight was
chosen on half of the recorded sessions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import heappop, heapreplace, nsmallest
from typing import NamedTuple

from compact.archive.recall.passages import AGENT, RECALL, SUMMARY, USER

PASSAGE_CHARS = 240
"""A unit is widened by its neighbours up to this length."""
BEST_CHARS = 450
"""The same for the best units, whose surroundings are the likeliest to be needed."""
_BEST = 2

_BESIDE = (1.0, 0.5, 0.3, 0.2, 0.15)
"""What a term is worth in its own unit, in the next one, in the one after that, and so on."""
_NEXT_MESSAGE = 0.15
"""What a term is worth in the part before and in the part after."""
_RARITY = 1.2
"""The power to which a term's inverse frequency is raised."""
_SPEAKERS = {USER: 2.0, AGENT: 0.8}
"""What the words of a speaker are worth where the user's are few. All others: 1."""
_OPENING = 1.4
"""What the first unit of a user's message is worth, likewise."""
_WISH = 1.5
"""What a unit in which the user says how something is always to be is worth, likewise: an answer to the query has to follow it."""
_FEW = 4
"""The user's words are few if the others say this many times as much."""
_TALK = 20
"""Units of the others that are taken for granted: a talk that has just begun shows nothing about who speaks more."""
_COPIES = {SUMMARY: 0.5, RECALL: 0.3}
"""What a copy is worth."""
_SAME_MESSAGE = 0.8
"""What a further passage of the same message of a person or agent is worth."""
_ALIKE = 0.5
"""Two passages are alike if they have more than this part of their terms in common."""
_SAID_ALIKE = 0.6
"""What a passage is worth for each one that is alike and picked already. Log lines are alike, and yet one id differs."""
_MOST_ALIKE = 6
"""A passage that is alike to this many others says nothing new; neither does one with the very terms of another."""
_CANDIDATES = 300
_MOST_PLACES = 40_000
"""Places of terms that are looked at. The most frequent terms are left out first."""
_LEAST_ROOM = 60


class Span(NamedTuple):
    """A part of a file as the index knows it: units `first` up to `past`."""

    first: int
    past: int
    file: int
    message: int | None
    speaker: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """The scores of units."""

    scores: dict[int, float] = field(default_factory=dict)
    span_of: dict[int, Span] = field(default_factory=dict)
    """The part of each unit that has a term."""


class Spans:
    """The parts that may answer, by their units."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans)
        self._firsts = [span.first for span in self._spans]

    def of(self, unit: int) -> Span | None:
        """Return the part of a unit; None if it may not answer."""
        place = bisect_right(self._firsts, unit) - 1
        found = self._spans[place] if place >= 0 else None
        return found if found is not None and unit < found.past else None

    def rarity_of_user(self) -> float:
        """Return how few of the words are the user's: 0 if they say as much as all others, 1 if they say little."""
        units: Counter[str] = Counter()
        for span in self._spans:
            units[span.speaker] += span.past - span.first
        others = _TALK + sum(count for speaker, count in units.items() if speaker not in (USER, *_COPIES))
        return min(1.0, math.log(max(1.0, others / max(1, units[USER]))) / math.log(_FEW))

    def beside(self, span: Span) -> list[Span]:
        """Return the parts before and after in the same conversation."""
        place = bisect_right(self._firsts, span.first) - 1
        return [
            other
            for other in self._spans[max(0, place - 1) : place + 2]
            if other != span and other.file == span.file and _follow(other.message, span.message)
        ]


def _follow(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= 1


def rank(
    places: Sequence[tuple[float, Sequence[int]]],
    total: int,
    spans: Spans,
    wishes: Set[int] = frozenset(),
) -> Ranked:
    """Score the units that have any of the terms.

    `places` has each term's weight and the units that have it, and `wishes` the units that have a word of a lasting wish.
    """
    ranked = Ranked()
    near: dict[int, float] = {}
    by_part: dict[Span, float] = {}
    left = _MOST_PLACES
    for weight, units in sorted(places, key=lambda each: len(each[1])):
        if left < len(units) < total and ranked.span_of:
            break
        left -= len(units)
        value = weight * math.log(1 + (total - len(units) + 0.5) / (len(units) + 0.5)) ** _RARITY
        _spread(value, units, spans, ranked, near, by_part)
    rare = spans.rarity_of_user()
    worth = {speaker: weight**rare for speaker, weight in _SPEAKERS.items()} | _COPIES
    opening, wish = _OPENING**rare, _WISH**rare
    for unit, span in ranked.span_of.items():
        score = near[unit] + _NEXT_MESSAGE * sum(by_part.get(other, 0) for other in spans.beside(span))
        score *= worth.get(span.speaker, 1.0)
        if span.speaker == USER:
            score *= (opening if unit == span.first else 1.0) * (wish if unit in wishes else 1.0)
        ranked.scores[unit] = score
    return ranked


def _spread(
    value: float,
    units: Sequence[int],
    spans: Spans,
    ranked: Ranked,
    near: dict[int, float],
    by_part: dict[Span, float],
) -> None:
    """Add one term: to its units, to those beside them, and to their parts."""
    best: dict[int, float] = {}
    parts: set[Span] = set()
    for unit in units:
        span = spans.of(unit)
        if span is None:
            continue
        parts.add(span)
        ranked.span_of[unit] = span
        for distance, share in enumerate(_BESIDE):
            for other in (unit - distance, unit + distance):
                if span.first <= other < span.past and best.get(other, 0.0) < share:
                    best[other] = share
    for unit, share in best.items():
        near[unit] = near.get(unit, 0.0) + value * share
    for span in parts:
        by_part[span] = by_part.get(span, 0.0) + value


class Picked(NamedTuple):
    """A passage: units `first` to `last` of one part, and the score of its best."""

    first: int
    last: int
    span: Span
    score: float


def pick(
    ranked: Ranked,
    *,
    limit: int,
    room: int,
    head: int,
    extent: Callable[[int, int], int],
    words: Callable[[int], frozenset[str] | None],
) -> list[Picked]:
    """Pick passages, the best first, that say different things and fit in a number of characters. Adjacent ones become one.

    `head` is what each passage costs beside its text, `extent` the characters from one unit to another, and `words` the terms of
    a unit: None, if it cannot be read.
    """
    best = nsmallest(_CANDIDATES, ((-score, unit) for unit, score in ranked.scores.items()))
    by_part: Counter[Span] = Counter()
    taken: set[int] = set()
    said: list[frozenset[str]] = []
    alike: Counter[int] = Counter()
    picked: list[Picked] = []
    while best and len(picked) < limit and room > _LEAST_ROOM:
        loss, unit = best[0]
        if -loss > (value := _gain(unit, ranked, by_part) * _SAID_ALIKE ** alike[unit]):
            # Values only fall, so that the first one that still holds is the best.
            heapreplace(best, (-value, unit))
            continue
        terms = words(unit) if unit not in taken else None
        count = sum(_are_alike(terms, other) for other in said) if terms is not None else 0
        if alike[unit] < count < _MOST_ALIKE and terms not in said:
            alike[unit] = count  # it has to compete again
            continue
        heappop(best)
        if terms is None or count >= _MOST_ALIKE or terms in said:
            continue
        span = ranked.span_of[unit]
        most = BEST_CHARS if len(picked) < _BEST else PASSAGE_CHARS
        first, last = _widen(unit, span, ranked.scores, taken, extent, most)
        if extent(first, last) + head > room:
            first = last = unit
            if extent(first, last) + head > room:
                continue
        is_adjacent = first - 1 in taken or last + 1 in taken
        room -= extent(first, last) + (0 if is_adjacent else head)
        taken.update(range(first, last + 1))
        said.append(terms)
        by_part[span] += 1
        picked.append(Picked(first, last, span, ranked.scores[unit]))
    return _joined(picked)


def _joined(picked: Sequence[Picked]) -> list[Picked]:
    """Join adjacent passages of one part. The joined one stands where the first picked of them stood."""
    joined: list[tuple[int, Picked]] = []
    for one, turn in sorted((one, turn) for turn, one in enumerate(picked)):
        earlier, before = joined[-1] if joined else (0, None)
        if before is not None and before.last + 1 == one.first and before.span == one.span:
            joined[-1] = (
                min(earlier, turn),
                before._replace(last=one.last, score=max(before.score, one.score)),
            )
        else:
            joined.append((turn, one))
    return [one for _, one in sorted(joined, key=lambda each: each[0])]


def _gain(unit: int, ranked: Ranked, by_part: Mapping[Span, int]) -> float:
    """What a unit adds to the passages that are picked already."""
    span = ranked.span_of[unit]
    again = by_part[span] if span in by_part and span.speaker in (USER, AGENT) else 0
    return ranked.scores[unit] * _SAME_MESSAGE**again


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _ALIKE * len(one | other)


def _widen(
    unit: int,
    span: Span,
    scores: Mapping[int, float],
    taken: set[int],
    extent: Callable[[int, int], int],
    most: int,
) -> tuple[int, int]:
    """Take in the neighbours of a unit, the better one first, as long as the passage stays short."""
    first = last = unit
    while True:
        options = [
            (scores.get(new, 0.0), after - before, before, after)
            for new, before, after in ((last + 1, first, last + 1), (first - 1, first - 1, last))
            if span.first <= new < span.past and new not in taken and extent(before, after) <= most
        ]
        if not options:
            return first, last
        _, _, first, last = max(options, key=lambda each: (each[0], each[2]))
