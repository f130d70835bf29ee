"""Which pieces of a session's texts are worth their room: a lazy greedy choice. Pure, deterministic.

The value of a piece is that of the words in it (`needs`). A word counts where it was said last; in older pieces, and once it
stands in the context, it counts for little. So the chosen pieces complement each other, and of two statements about a thing the
newer one is taken. Pieces are taken by value for each token. A piece whose value fell since it was ranked is ranked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import chain

from compact.messages.excerpts import Piece, split_pieces

_AGAIN = 0.15
"""What a word is still worth of which the newest statement stands in the context."""
_OLDER = 0.3
"""What a word is worth in a piece that is not its newest statement, as long as it stands nowhere."""
_KNOWN = 0.7
"""What a word's newest statement is worth while an older one stands."""
_IN_WORDS = 0.3
"""What a word is worth in what somebody said of it before. An older output shows an older state; words may say something else."""
_SAID = 0.6
"""What such words are still worth when more is said of it."""
_PROSE = 0.0002
"""Worth of a character: among pieces without names, the longer ones win."""
_ALONE = 0.5
_STATEMENT_CHARS = 120
_PART_CHARS = 240
"""A part of a long line is a whole statement only if it has this many characters: what it says of a name may end in the next."""
_STILL = 0.98
"""A piece that lost less than this since it was ranked is taken without ranking it again."""


def choose(
    pieces: Sequence[Piece],
    costs: Sequence[float],
    values: Mapping[str, float],
    standing: Mapping[str, int],
    room: float,
    opening: float = 0.0,
    worded: Set[int] = frozenset(),
) -> list[int]:
    """Return the indexes of the pieces to take, the most valuable for their cost first, until they cost `room`.

    `costs` are their tokens, `values` those of the words (`needs.weigh`). `standing` gives each word of what is kept anyway the
    owner before which its newest statement stands. The first piece of a text costs `opening` tokens more. Of equal pieces the
    newest is taken. The owners in `worded` are texts that a person or the agent wrote. Pieces are in the order of time.
    """
    worth = _Worth(pieces, values, standing, worded)
    choice = _Choice(pieces, costs, worth, opening)
    return choice.fill(room)


class _Worth:
    """What each piece is worth beside those that were taken before."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        values: Mapping[str, float],
        standing: Mapping[str, int],
        worded: Set[int],
    ) -> None:
        words = [[word for word in found if word in values] for found in split_pieces(pieces)]
        newest = {word: place for place, found in enumerate(words) for word in found}
        fresh = {word: values[word] for word in newest}
        stale = {word: value * _OLDER for word, value in fresh.items()}
        told = {word: value * _IN_WORDS for word, value in fresh.items()}
        for word in newest.keys() & standing.keys():
            stale[word] *= _AGAIN
            told[word] *= _SAID
            fresh[word] *= _AGAIN if standing[word] > pieces[newest[word]].owner else _KNOWN
        self._fresh, self._stale, self._told = fresh, stale, told
        self._newest = [
            [word for word in found if newest[word] == place] for place, found in enumerate(words)
        ]
        self._older = [[word for word in found if newest[word] != place] for place, found in enumerate(words)]
        self._before = [told if piece.owner in worded else stale for piece in pieces]
        self._prose = [_PROSE * len(piece.text) for piece in pieces]

    def of(self, place: int) -> float:
        """What the piece at this place is worth now."""
        gain = sum(map(self._fresh.__getitem__, self._newest[place]), self._prose[place])
        return sum(map(self._before[place].__getitem__, self._older[place]), gain)

    def take(self, place: int) -> None:
        """The piece at this place stands in the context."""
        fresh, stale, told = self._fresh, self._stale, self._told
        for word in self._newest[place]:
            fresh[word] *= _AGAIN
        for word in self._older[place]:
            fresh[word] *= _KNOWN
        for word in chain(self._newest[place], self._older[place]):
            stale[word] *= _AGAIN
            told[word] *= _SAID


class _Choice:
    """The pieces that wait, the most promising first. A piece that is not a whole statement lends worth to those beside it."""

    def __init__(
        self, pieces: Sequence[Piece], costs: Sequence[float], worth: _Worth, opening: float
    ) -> None:
        self._pieces, self._costs, self._worth, self._opening = pieces, costs, worth, opening
        self._whole = [
            min(1.0, _ALONE + (1 - _ALONE) * len(piece.text) / self._statement_chars(place))
            for place, piece in enumerate(pieces)
        ]
        self._bonus = [0.0] * len(pieces)
        self._opened: set[int] = set()
        self._taken: set[int] = set()

    def fill(self, room: float) -> list[int]:
        pieces, order, seen = self._pieces, list[int](), set[str]()
        heap = [(-self._rate(place), -place) for place in range(len(pieces))]
        heapify(heap)
        while heap and room > 0:
            was, negative = heappop(heap)
            place = -negative
            if place in self._taken or pieces[place].text in seen:
                continue
            now = self._rate(place)
            if now < -was * _STILL and heap and now < -heap[0][0]:
                heappush(heap, (-now, negative))
                continue
            seen.add(pieces[place].text)
            order.append(place)
            room -= self._cost(place)
            for other in self._take(place):
                heappush(heap, (-self._rate(other), -other))
            self._worth.take(place)
        return order

    def _rate(self, place: int) -> float:
        gain = self._worth.of(place) * self._whole[place] + self._bonus[place]
        return gain / self._cost(place)

    def _cost(self, place: int) -> float:
        return self._costs[place] + (0.0 if self._pieces[place].owner in self._opened else self._opening)

    def _take(self, place: int) -> list[int]:
        """Take a piece, and return the pieces beside it that are worth more now."""
        self._taken.add(place)
        self._opened.add(self._pieces[place].owner)
        missing = self._worth.of(place) * (1 - self._whole[place])
        beside = [other for other in (place - 1, place + 1) if self._continues(place, other)]
        for other in beside:
            self._bonus[other] += missing / len(beside)
        return beside if missing > 0.0 else []

    def _statement_chars(self, place: int) -> int:
        """How many characters the piece needs to say something whole."""
        piece = self._pieces[place]
        after = self._pieces[place + 1] if place + 1 < len(self._pieces) else piece
        is_part = piece.part or (after.part and after.owner == piece.owner)
        return _PART_CHARS if is_part else _STATEMENT_CHARS

    def _continues(self, place: int, other: int) -> bool:
        if not 0 <= other < len(self._pieces) or other in self._taken:
            return False
        piece, beside = self._pieces[place], self._pieces[other]
        return beside.owner == piece.owner and abs(beside.line - piece.line) <= 3
