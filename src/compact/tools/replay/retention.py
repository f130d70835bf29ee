"""Retention: how much of what a session needed later is still in its context.

*Needed* at a cut are identifiers (paths, names, ids, numbers with a unit or a label) that appear before the cut, that the agent
itself writes after it before anything shows them again, and that the newest messages alone would not keep. An identifier is
*kept* if it is in a context with at least half of the words of its original line around it, and a third of their neighbouring
pairs in order. A bare list of names therefore keeps nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    """The identifiers of a session, found once for any number of cuts."""

    def __init__(self, messages: Iterable[Spoken]) -> None:
        self._messages = list(messages)
        self._places: list[list[tuple[str, int, int]] | None] = [None] * len(self._messages)
        self._clips: dict[str, dict[str, None]] = {}
        self._clipped = 0

    def names_in(self, index: int) -> list[tuple[str, int, int]]:
        """Find the identifiers of a message, every occurrence with its place."""
        found = self._places[index]
        if found is None:
            text = self._messages[index].text
            found = [(match.group(), *match.span()) for match in IDENTIFIER.finditer(text)]
            self._places[index] = found
        return found

    def needed(self, cut: int, recent: Iterable[str] = ()) -> tuple[Needed, ...]:
        """Find what the session needs after a cut, except the names in `recent`. Fastest if cuts come in order."""
        self._clip_up_to(cut)
        left_out = set(recent)
        shown: set[str] = set()
        found = []
        for index in range(cut, len(self._messages)):
            said = self._messages[index]
            names = dict.fromkeys(name for name, _, _ in self.names_in(index))
            for name in names:
                if said.role != "assistant" or name in shown or name in left_out or name not in self._clips:
                    continue
                clips = self._clips[name]
                lines = tuple(clip for clip in clips if len(_words(clip, name)) > _FEWEST_WORDS)
                if lines:
                    found.append(Needed(name, lines))
            shown |= names.keys()
        return tuple(found)

    def _clip_up_to(self, cut: int) -> None:
        if cut < self._clipped:
            self._clips, self._clipped = {}, 0
        for index in range(self._clipped, cut):
            text = self._messages[index].text
            for name, start, stop in self.names_in(index):
                self._clips.setdefault(name, {})[_clip(text, start, stop)] = None
        self._clipped = max(self._clipped, cut)


def is_kept(one: Needed, text: str) -> bool:
    """Whether an identifier is in a text with its meaning."""
    wanted: list[list[str]] | None = None
    start = text.find(one.name)
    while start >= 0:
        stop = start + len(one.name)
        words = _words(text[max(0, start - _NEAR) : stop + _NEAR], one.name)
        wanted = wanted or [_words(line, one.name) for line in one.lines]
        if any(_agree(line, words) for line in wanted):
            return True
        start = text.find(one.name, stop)
    return False


def _arguments(name: str, arguments: Any) -> Iterator[str]:
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    for key, value in arguments.items():
        yield f"{name} {key}: {value if isinstance(value, str) else to_json(value)}"


def _clip(text: str, start: int, stop: int) -> str:
    """Cut out the line around an identifier."""
    head = text.rfind("\n", 0, start) + 1
    tail = text.find("\n", stop)
    end = len(text) if tail < 0 else tail
    return text[max(head, start - _LINE_REACH) : min(end, stop + _LINE_REACH)].strip()


def _agree(line: list[str], words: list[str]) -> bool:
    wanted = set(line) - {_SELF}
    if 2 * len(wanted & set(words)) < len(wanted):
        return False
    pairs = set(pairwise(line))
    return 3 * len(pairs & set(pairwise(words))) >= len(pairs)


def _words(text: str, name: str) -> list[str]:
    pieces = text.split(name)
    found = _WORD.findall(pieces[0].lower())
    for piece in pieces[1:]:
        found += [_SELF, *_WORD.findall(piece.lower())]
    return found
