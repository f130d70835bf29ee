"""What a session has learned: a secret that was found once is found wherever it stands again as a whole token.

What a person or the host said masks everywhere. What a tool or a model said masks only the words of tools and models, and
only values that a generator made are learned from them: text from outside must not be able to take words out of a session.

Learning and finding are linear, whatever was learned. The memory is bounded in bytes: when it is full it learns no more, so
that nothing can push out what it knows. It is safe between threads, is never printed, and its errors quote nothing.
"""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, TypeAlias

from compact.redaction.disguises import find_as_seen, without_disguise
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.shapes import looks_random, surprise

Origin: TypeAlias = Literal["person", "model", "tool", "compact"]
"""Whose words a text is.

`person`: people and the host. `model`: replies, reasoning, arguments of calls. `tool`: results, and text whose origin is not
known. `compact`: what compact wrote from masked text; it is matched by rules only and teaches nothing.
"""
SEEN_BEFORE = "seen-before"
"""What findings of the memory have in place of a rule's id."""
MAX_BYTES = 1_000_000
"""What the values of one memory may take. A session has two: what was said, and what was taught."""
_ENTRY_BYTES = 120
"""What an entry takes besides its characters."""
_SHORTEST = 8
_LONGEST = 4_096
_LONG = 16
_LONG_SURPRISE = 0.42
"""In a long value, this much is no accident; see `shapes.surprise`."""
_LONGEST_TYPED = 18
"""People do not make up longer passwords out of one word."""
_SHORTEST_PHRASE = 16
_HEAD_CHARS = 6
_MAX_LENGTHS = 16
"""Different lengths of values that begin alike. A generator makes values of one length."""
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ESCAPED_BREAK = re.compile(r"\\+[nr]")

_START = r"(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9])|(?<=\\[nrtbfv0])|(?<=[%x][0-9A-Fa-f]{2})|(?<=u[0-9A-Fa-f]{4})|(?<=[0-9\[][mK]))"
_HEAD = re.compile(rf"{_START}(?=(\S[\s\S]{{{_HEAD_CHARS - 1}}}))")
"""The first characters of anything that may be a whole token."""
_ESCAPE_BEFORE = re.compile(
    r"(?:\\[nrtbfv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}"
    r"|(?:\x1b|\\(?:x1b|033|e|u001b))\[[0-9;]*[mK])\Z",
    re.IGNORECASE,
)
"""An escape whose last letter stands directly before a value: a line break in a log, the end of a colour."""
_LONGEST_ESCAPE = 16
_JOINED_BEFORE = r"(?:\w|[\w/\\~][./\\-]|[/\\])\Z"
_JOINED_AFTER = r"\w|[.-]\w|/|\\(?![nrtbfv0ux\"'\\])"
"""What makes a value a piece of something longer: a word, an identifier, a name with dots, a path."""
_BEFORE = {True: re.compile(_JOINED_BEFORE, re.ASCII), False: re.compile(_JOINED_BEFORE)}
_AFTER = {True: re.compile(_JOINED_AFTER, re.ASCII), False: re.compile(_JOINED_AFTER)}
"""By whether the value's own character there is ASCII: Chinese and Japanese put no blank between their words and such a value."""


def is_memorable(value: str) -> bool:
    """Whether a value of a person or of the host is masked wherever it occurs again."""
    return is_generated(value) or _is_phrase(value)


def is_generated(value: str) -> bool:
    """Whether a generator made the value. Words, numbers, and passwords that people type are no such value."""
    if not _SHORTEST <= len(value) <= _LONGEST or value.isdigit() or any(map(str.isspace, value)):
        return False
    is_random = looks_random(value) or (len(value) >= _LONG and surprise(value) >= _LONG_SURPRISE)
    return is_random and not (len(value) <= _LONGEST_TYPED and _is_typed(value))


def _is_phrase(value: str) -> bool:
    """Whether it is a passphrase: nobody writes these words in this order by chance."""
    return _SHORTEST_PHRASE <= len(value) <= _LONGEST and len(value.split()) >= 3 and "\n" not in value


_LEET = str.maketrans("013457@$!8", "oieastasib")
_ROWS = ("1234567890-=", "qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./")
_KEYS = {key: (column + row * 0.4, row) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}
_DECORATION = "0123456789!@#$%^&*._-+=?"
_WORD_SURPRISE = 0.34
_SHORT_WORD = 8
"""Of a word this short, a few rare neighbours say nothing."""
_ONE_CASE_SURPRISE = 0.6
_LEET_SURPRISE = 0.45
_FEWEST_LETTERS = 3
_CHANGES_OF_CASE = 0.45
_WALKED = 0.6


def _is_typed(value: str) -> bool:
    """Whether a person typed it: a word with digits put in (`P@ssw0rd1!`), or neighbouring keys (`1q2w3e4r`)."""
    lower = value.lower()
    letters = [char for char in value if char.isalpha()]
    changes = sum(one.islower() != other.islower() for one, other in pairwise(letters))
    core = lower.strip(_DECORATION)
    put_in = sum(not char.isalpha() for char in core)
    word = core.translate(_LEET)
    if word.isalpha() and changes <= 1:
        limit = _ONE_CASE_SURPRISE if not put_in else _LEET_SURPRISE
        if (len(word) <= _SHORT_WORD and put_in * 2 <= len(core)) or surprise(word) < limit:
            return True
    if len(core) - put_in < _FEWEST_LETTERS and len(value) < _LONG:
        return True
    letters_alone = "".join(filter(str.isalpha, word))
    is_regular = changes <= _CHANGES_OF_CASE * len(letters) and put_in * 3 <= len(core)
    if is_regular and surprise(letters_alone) < _WORD_SURPRISE:
        return True
    pairs = list(pairwise(lower))
    return sum(_are_neighbours(one, other) for one, other in pairs) >= _WALKED * len(pairs)


def _are_neighbours(one: str, other: str) -> bool:
    if abs(ord(one) - ord(other)) <= 1:
        return True
    here, there = _KEYS.get(one), _KEYS.get(other)
    return bool(here and there and abs(here[0] - there[0]) <= 1.5 and abs(here[1] - there[1]) <= 1)


def starts_token(text: str, start: int) -> bool:
    """Whether what begins here is not the rest of a longer word, name or path."""
    first, before = text[start : start + 1], text[max(0, start - 2) : start]
    if not before or not (first.isalnum() or first == "_"):
        return True
    if _BEFORE[first.isascii()].search(before) is None:
        return True
    return _ESCAPE_BEFORE.search(text[max(0, start - _LONGEST_ESCAPE) : start]) is not None


def ends_token(text: str, end: int) -> bool:
    """Whether what ends here does not go on as a longer word, name or path."""
    last = text[end - 1 : end]
    return not (last.isalnum() or last in "_=") or _AFTER[last.isascii()].match(text, end) is None


class ValueMemory:
    """Values that are found wherever they stand as whole tokens. Safe between threads: readers see whole entries."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        """How long the values with the same first characters are, longest first. Many keys begin alike."""
        self._room = MAX_BYTES
        self._lock = threading.Lock()
        self.learned = 0
        """How many values were learned so far."""

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, value: str) -> bool:
        return value in self._places

    def learn(self, value: str, place: int = 0) -> bool:
        """Remember a value that stands in the message at a place. Returns whether it is new and there was room."""
        if value in self._places or len(value) < _HEAD_CHARS:
            return False
        with self._lock:
            head, size = value[:_HEAD_CHARS], len(value)
            lengths = self._lengths.get(head, ())
            cost = size + _ENTRY_BYTES
            is_full = cost > self._room or (size not in lengths and len(lengths) >= _MAX_LENGTHS)
            if is_full or value in self._places:
                return False
            self._room -= cost
            self._places[value] = place
            if size not in lengths:
                self._lengths[head] = tuple(sorted((*lengths, size), reverse=True))
            self.learned += 1
        return True

    def find(self, text: str) -> list[Finding]:
        """Find the values in a text, in their order. Those of one start are given longest first."""
        if not self._places:
            return []
        return [
            Finding(start, start + length, SEEN_BEFORE, MASK)
            for start, head in ((found.start(), found[1]) for found in _HEAD.finditer(text))
            if head in self._lengths
            for length in self._lengths[head]
            if start + length <= len(text)
            and text[start : start + length] in self._places
            and starts_token(text, start)
            and ends_token(text, start + length)
        ]

    def rewind(self, place: int) -> None:
        """Forget what was learned at a place or behind it."""
        with self._lock:
            kept = {value: at for value, at in self._places.items() if at < place}
            self._room += sum(len(value) + _ENTRY_BYTES for value in self._places.keys() - kept.keys())
            self._places = kept

    def settle(self) -> None:
        """Everything was learned before the list that begins now."""
        with self._lock:
            self._places = dict.fromkeys(self._places, -1)


class SecretMemory:
    """The secrets of one session, by who said them."""

    def __init__(self) -> None:
        self._said = ValueMemory()
        self._taught = ValueMemory()
        self._sealed: dict[str, SealedValues] = {}
        self._salt = ""
        self._lock = threading.Lock()
        self._unsaved: dict[str, list[str]] = defaultdict(list)

    @property
    def learned(self) -> int:
        """How many values were learned so far."""
        return self._said.learned + self._taught.learned

    def masks(self, origin: Origin) -> bool:
        """Whether a text of this origin can hold anything that was learned."""
        if origin == "compact":
            return False
        return bool(self._said or self._sealed or (self._taught and origin != "person"))

    def learn(self, secret: str | float, origin: Origin) -> None:
        """Remember a secret, unless it is short, or a word that stands elsewhere by chance."""
        if origin == "compact" or (not isinstance(secret, str) and abs(secret) >= 10**_LONGEST):
            return
        value = (secret if isinstance(secret, str) else str(secret)).strip()
        if len(value) > _LONGEST or "\n" in value or value.startswith("-----BEGIN"):
            # A key block may be quoted line by line, and a very long value in part.
            for line in _KEY_LINE.findall(_ESCAPED_BREAK.sub("\n", value)):
                for at in range(0, len(line), _LONGEST):
                    self._remember(line[at : at + _LONGEST], origin)
        else:
            for written in dict.fromkeys((value, without_disguise(value))):
                self._remember(written, origin)

    def find(self, text: str, origin: Origin) -> list[Finding]:
        """Find what masks a text of this origin, also in disguise, in no particular order."""
        return find_as_seen(text, lambda seen: self._find(seen, origin)) if self.masks(origin) else []

    def _find(self, text: str, origin: Origin) -> list[Finding]:
        found = self._said.find(text)
        if origin != "person":
            found += self._taught.find(text)
        for sealed in tuple(self._sealed.values()):
            found += self._unseal(text, sealed, origin)
        return found

    def seal(self) -> dict[str, str]:
        """What was learned since the last note, as a note for the archive: keyed hashes, never values; empty if nothing.

        `unseal_note` reads it. A note that could not be written is given back with `keep_unsaved`.
        """
        with self._lock:
            unsaved, self._unsaved = self._unsaved, defaultdict(list)
            if not unsaved:
                return {}
            self._salt = self._salt or os.urandom(16).hex()
        return {
            "salt": self._salt,
            **{
                who: " ".join(_seal(value, self._salt) for value in values) for who, values in unsaved.items()
            },
        }

    def adopt(self, notes: Iterable[Mapping[str, str]]) -> None:
        """Mask what this or another process has learned, by the notes that `seal` made. Unreadable ones are left out."""
        for note in notes:
            salt = note.get("salt", "")
            if not re.fullmatch(r"[0-9a-f]{32}", salt):
                continue
            with self._lock:
                self._salt = self._salt or salt
                sealed = self._sealed.get(salt) or SealedValues(salt)
                sealed.add(note.get("said", ""), "said")
                sealed.add(note.get("taught", ""), "taught")
                if sealed:
                    self._sealed[salt] = sealed

    def _remember(self, value: str, origin: Origin) -> None:
        if MASK in value:
            return
        if origin == "person":
            if is_memorable(value) and self._said.learn(value):
                self._unsaved["said"].append(value)
        elif is_generated(value) and value not in self._said and self._taught.learn(value):
            self._unsaved["taught"].append(value)

    def _unseal(self, text: str, sealed: SealedValues, origin: Origin) -> Iterator[Finding]:
        for finding, who in sealed.find(text):
            if who == "said" or origin != "person":
                (self._said if who == "said" else self._taught).learn(text[finding.start : finding.end])
                yield finding


class SealedValues:
    """Values of which only keyed hashes are known. A few bits of the hash of its head say where a value may begin."""

    def __init__(self, salt: str) -> None:
        self._salt = salt
        self._key = bytes.fromhex(salt)
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._seals: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._seals)

    def add(self, entries: str, who: str) -> None:
        """Add the entries of a note. One that is not readable is left out."""
        for entry in entries.split():
            tag, _, rest = entry.partition(":")
            length, _, seal = rest.partition(":")
            if not length.isdigit() or not _SHORTEST <= int(length) <= _LONGEST:
                continue
            lengths = self._lengths.get(tag, ())
            if int(length) not in lengths:
                self._lengths[tag] = (*lengths, int(length))
            self._seals.setdefault(seal, who)

    def find(self, text: str) -> Iterator[tuple[Finding, str]]:
        """Find the values in a text, and who said each."""
        for match in _HEAD.finditer(text):
            start = match.start()
            if not starts_token(text, start):
                continue
            for length in self._lengths.get(_tag(text[start : start + _SHORTEST], self._key), ()):
                end = start + length
                if end > len(text) or not ends_token(text, end):
                    continue
                who = self._seals.get(_digest(text[start:end], self._key))
                if who is not None:
                    yield Finding(start, end, SEEN_BEFORE, MASK), who


def _seal(value: str, salt: str) -> str:
    key = bytes.fromhex(salt)
    return f"{_tag(value[:_SHORTEST], key)}:{len(value)}:{_digest(value, key)}"


def _tag(head: str, key: bytes) -> str:
    """Twelve bits: enough to skip nearly every place of a text, too few to guess the characters."""
    return blake2b(head.encode("utf-8", "surrogatepass"), key=key, digest_size=2).hexdigest()[:3]


def _digest(value: str, key: bytes) -> str:
    return blake2b(value.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()
