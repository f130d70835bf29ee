"""Retention: how much of what a session needed later is still in its context, by two independent measures.

*Needed* at a cut are identifiers (paths, names, ids, numbers with a unit or a label) that appear before the cut, that the agent
itself writes after it before anything shows them again, and that the newest messages alone would not keep.

*Any line* (`Needed`, `is_kept`): an identifier is kept if it is in a context with at least half of the words of any of its
original lines around it, and a third of their neighbouring pairs in order.

*Newest statement* (`Stated`, `is_stated`): only the last line before the cut counts. If fewer than three rare words are beside the
identifier, the line is widened by one and then by two lines each way. A word is rare if at most one line of a hundred has it.
The identifier is kept if one message has, within 300 characters of it, half of the up to eight rarest words, half of these
words and the rare identifiers together, and a third of the neighbouring pairs in order.

A bare list of names keeps nothing by either measure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from compact.messages import Message, to_json

IDENTIFIER = re.compile(
    r"(?<![\w./:@-])(?:"
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w"  # path
    r"|[A-Za-z_][\w-]*\.(?:py|js|ts|tsx|jsx|go|rs|java|rb|c|h|cpp|md|json|ya?ml|toml|txt|sh|sql|css|html|lock|cfg)\b"
    r"|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}"  # camelCase
    r"|[A-Z]{2,}-\d+|[A-Za-z]+\d+[A-Za-z0-9]{3,}"  # labelled ids
    r"|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}"
    r"|\#\w*\d\w*"
    r"|\$?\d[\d,]*(?:\.\d+)?\s?(?:ms|s|sec|seconds|minutes|hours|days|[kKMG]i?[bB]|bytes|tokens|lines|px|%|USD)"
    r")(?![\w/])"
)

_FEWEST_WORDS = 4
"""A line with fewer words besides the identifier gives it no meaning."""
_LINE_REACH = 100
"""How far the line of an identifier reaches on either side, in characters."""
_NEAR = 150
"""How far from an identifier the words of its line are searched, in characters."""
_REACH = 300
"""How far a statement reaches from its identifier, and how far from it its words are searched, in characters."""
_ENOUGH_RARE = 3
"""A line with fewer rare words is widened."""
_WIDEST = 2
"""By how many lines each way a line is widened at most."""
_MOST_RARE = 8
"""How many of the rarest words stand for a statement."""
_LINES_PER_RARE = 100
"""A word is rare if at most one line in this many contains it."""
_QUERY_REACH, _QUERY_WORDS = 120, 12
"""How far from an identifier the words of a query are taken, in characters, and how many."""
_WORD = re.compile(r"\w+")
_SELF = "\x00"


class Spoken(NamedTuple):
    """A message as text, with its role."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Needed:
    """An identifier that the agent writes after the cut, and its lines before the cut."""

    name: str
    lines: tuple[str, ...]
    around: str = field(default="", compare=False)
    """Words that the agent writes around it after the cut, to search for it without its name."""


@dataclass(frozen=True, slots=True)
class Stated:
    """An identifier that the agent writes after the cut, and what its newest line before the cut says."""

    name: str
    words: frozenset[str]
    """Up to eight of the rarest words. None: the line says nothing that could be kept."""
    names: frozenset[str]
    """Other rare identifiers."""
    pairs: frozenset[tuple[str, str]]
    around: str = field(default="", compare=False)
    """As in `Needed`."""


def spoken(message: Message) -> Spoken:
    """Write a message as text: its words, its results, and the named arguments of its calls."""
    lines = [message.text, *(result.text for result in message.results)]
    lines += [
        line
        for call in message.calls
        for line in _arguments(call.name, call.parsed_arguments() or call.arguments)
    ]
    return Spoken(message.role, "\n".join(filter(None, lines)))


class IdentifierIndex:
    """The identifiers of a session, found once for any number of cuts. Fastest if cuts come in order."""

    def __init__(self, messages: Iterable[Spoken]) -> None:
        self._messages = list(messages)
        self._places: list[list[tuple[str, int, int]] | None] = [None] * len(self._messages)
        self._clips: dict[str, dict[str, None]] = {}
        self._newest: dict[str, tuple[int, int, int]] = {}
        self._clipped = 0
        self._lines = _LineCounts()

    def names_in(self, index: int) -> list[tuple[str, int, int]]:
        """Find the identifiers of a message, every occurrence with its place."""
        found = self._places[index]
        if found is None:
            text = self._messages[index].text
            found = [(match.group(), *match.span()) for match in IDENTIFIER.finditer(text)]
            self._places[index] = found
        return found

    def needed(self, cut: int, recent: Iterable[str] = ()) -> tuple[Needed, ...]:
        """Find what the session needs after a cut and the lines that gave it meaning, except the names in `recent`."""
        found = []
        for name, around in self._written_after(cut, recent):
            lines = tuple(clip for clip in self._clips[name] if len(_words(clip, name)) > _FEWEST_WORDS)
            if lines:
                found.append(Needed(name, lines, around))
        return tuple(found)

    def stated(self, cut: int, recent: Iterable[str] = ()) -> tuple[Stated, ...]:
        """Find what the session needs after a cut and what its newest line says, except the names in `recent`.

        One whose line has no rare word even when widened comes back without words. No context can keep it.
        """
        written = list(self._written_after(cut, recent))
        self._count_up_to(cut)
        return tuple(self._statement(name, around) for name, around in written)

    def _written_after(self, cut: int, recent: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the names before a cut that the agent writes first, with the words around them."""
        self._clip_up_to(cut)
        shown = set(recent)
        for index in range(cut, len(self._messages)):
            said = self._messages[index]
            places: dict[str, tuple[int, int]] = {}
            for name, start, stop in self.names_in(index):
                places.setdefault(name, (start, stop))
            if said.role == "assistant":
                for name, (start, stop) in places.items():
                    if name not in shown and name in self._clips:
                        yield name, _query(said.text, name, start, stop)
            shown |= places.keys()

    def _clip_up_to(self, cut: int) -> None:
        if cut < self._clipped:
            self._clips, self._newest, self._clipped = {}, {}, 0
        for index in range(self._clipped, cut):
            text = self._messages[index].text
            for name, start, stop in self.names_in(index):
                self._clips.setdefault(name, {})[_clip(text, start, stop)] = None
                self._newest[name] = index, start, stop
        self._clipped = max(self._clipped, cut)

    def _count_up_to(self, cut: int) -> None:
        if cut < self._lines.messages:
            self._lines = _LineCounts()
        for index in range(self._lines.messages, cut):
            self._lines.add(self._messages[index].text, self.names_in(index))

    def _statement(self, name: str, around: str) -> Stated:
        index, start, stop = self._newest[name]
        text = self._messages[index].text
        for lines in range(_WIDEST + 1):
            head, end = _widened(text, start, stop, lines)
            before, after = text[head:start], text[stop:end]
            beside = self._lines.rare_words(_words_by_distance(before, after))
            if len(beside) >= _ENOUGH_RARE:
                break
        parts = _parts(before, after, name)
        names = frozenset(part for part in parts if self._lines.is_rare_name(part))
        return Stated(name, frozenset(beside[:_MOST_RARE]), names, frozenset(pairwise(parts)), around)


class _LineCounts:
    """In how many lines a word stands, and an identifier. Identifiers are not words."""

    def __init__(self) -> None:
        self.messages = 0
        self._lines = 0
        self._words: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def add(self, text: str, names: Sequence[tuple[str, int, int]]) -> None:
        """Count the lines of one more message, in which `names` stand."""
        self.messages += 1
        self._lines += sum(1 for line in text.splitlines() if line.strip())
        for line in _without(text, names).lower().splitlines():
            self._words.update(set(_WORD.findall(line)))
        self._names.update(name for name, _ in {(name, text.rfind("\n", 0, at)) for name, at, _ in names})

    def rare_words(self, nearest_first: Iterable[str]) -> list[str]:
        """Sort the rare ones of some words: the rarest first, and of equally rare ones the nearest."""
        words = dict.fromkeys(nearest_first)
        rare = [word for word in words if self._is_rare(self._words[word])]
        return sorted(rare, key=self._words.__getitem__)

    def is_rare_name(self, name: str) -> bool:
        """Whether this is an identifier that few lines have."""
        return name in self._names and self._is_rare(self._names[name])

    def _is_rare(self, lines: int) -> bool:
        """Whether a word that this many lines contain is rare. A word of a single line always is."""
        return lines <= max(1, self._lines // _LINES_PER_RARE)


def is_kept(one: Needed, text: str) -> bool:
    """Whether an identifier is in a text with the meaning of any of its lines."""
    start = text.find(one.name)
    while start >= 0:
        stop = start + len(one.name)
        words = _words(text[max(0, start - _NEAR) : stop + _NEAR], one.name)
        if _agree(_wanted(one.name, one.lines), words):
            return True
        start = text.find(one.name, stop)
    return False


def is_stated(one: Stated, messages: Iterable[str]) -> bool:
    """Whether one of the messages has an identifier with what its newest line says."""
    return any(one.name in text and _states(one, text) for text in messages)


def _states(one: Stated, text: str) -> bool:
    if not one.words:
        return False
    for match in _whole(one.name).finditer(text):
        start, stop = match.span()
        before, after = text[max(0, start - _REACH) : start], text[stop : stop + _REACH]
        near = f"{before}\n{after}".lower()
        if 2 * sum(word in near for word in one.words) < len(one.words):
            continue  # a fast refusal: each word is a part of the text if it stands in it
        parts = _parts(before, after, one.name)
        found = set(parts)
        words, names = len(one.words & found), len(one.names & found)
        if (
            2 * words >= len(one.words)
            and 2 * (words + names) >= len(one.words) + len(one.names)
            and 3 * len(one.pairs & set(pairwise(parts))) >= len(one.pairs)
        ):
            return True
    return False


@lru_cache(maxsize=4096)
def _whole(name: str) -> re.Pattern[str]:
    """Match a name that is no part of a longer word."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _parts(before: str, after: str, name: str) -> list[str]:
    """Split the text around an identifier into words and other identifiers, in order, with a mark for itself."""
    return [*_split(before, name), _SELF, *_split(after, name)]


def _split(text: str, name: str) -> Iterator[str]:
    at = 0
    for match in IDENTIFIER.finditer(text):
        yield from _WORD.findall(text[at : match.start()].lower())
        yield _SELF if match.group() == name else match.group()
        at = match.end()
    yield from _WORD.findall(text[at:].lower())


def _words_by_distance(before: str, after: str) -> list[str]:
    """List the words on both sides of an identifier, the nearest first."""
    left, right = (
        _without(side, [(match.group(), *match.span()) for match in IDENTIFIER.finditer(side)]).lower()
        for side in (before, after)
    )
    found = [(len(left) - match.end(), match.group()) for match in _WORD.finditer(left)]
    found += [(match.start(), match.group()) for match in _WORD.finditer(right)]
    return [word for _, word in sorted(found)]


def _without(text: str, names: Sequence[tuple[str, int, int]]) -> str:
    """Blank out identifiers; everything else keeps its place."""
    pieces, at = [], 0
    for _, start, stop in names:
        pieces += [text[at:start], " " * (stop - start)]
        at = stop
    return "".join([*pieces, text[at:]])


def _widened(text: str, start: int, stop: int, lines: int) -> tuple[int, int]:
    """Find the line of an identifier with `lines` lines before and after it, as far as a statement reaches."""
    head = text.rfind("\n", 0, start) + 1
    end = _end_of_line(text, stop)
    for _ in range(lines):
        head = text.rfind("\n", 0, max(0, head - 1)) + 1
        end = _end_of_line(text, end + 1)
    return max(head, start - _REACH), min(end, stop + _REACH)


def _query(text: str, name: str, start: int, stop: int) -> str:
    around = f"{text[max(0, start - _QUERY_REACH) : start]} {text[stop : stop + _QUERY_REACH]}"
    words = [word for word in _WORD.findall(around.replace(name, " ")) if len(word) > 1]
    return " ".join(words[:_QUERY_WORDS])


def _arguments(name: str, arguments: Any) -> Iterator[str]:
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    for key, value in arguments.items():
        yield f"{name} {key}: {value if isinstance(value, str) else to_json(value)}"


def _clip(text: str, start: int, stop: int) -> str:
    """Cut out the line around an identifier."""
    head, end = text.rfind("\n", 0, start) + 1, _end_of_line(text, stop)
    return text[max(head, start - _LINE_REACH) : min(end, stop + _LINE_REACH)].strip()


@lru_cache(maxsize=4096)
def _wanted(
    name: str, lines: tuple[str, ...]
) -> tuple[tuple[frozenset[str], frozenset[tuple[str, str]]], ...]:
    """The words and the pairs of each line."""
    split = [_words(line, name) for line in lines]
    return tuple((frozenset(words) - {_SELF}, frozenset(pairwise(words))) for words in split)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _agree(wanted: Iterable[tuple[frozenset[str], frozenset[tuple[str, str]]]], words: list[str]) -> bool:
    """Whether any line is here: half of its words, and a third of its pairs."""
    found, pairs = set(words), set(pairwise(words))
    return any(
        2 * len(line & found) >= len(line) and 3 * len(ordered & pairs) >= len(ordered)
        for line, ordered in wanted
    )


def _words(text: str, name: str) -> list[str]:
    pieces = text.split(name)
    found = _WORD.findall(pieces[0].lower())
    for piece in pieces[1:]:
        found += [_SELF, *_WORD.findall(piece.lower())]
    return found
