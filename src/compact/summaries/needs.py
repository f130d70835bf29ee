"""How likely the agent is to need a word again: the value of having it in the context. Pure, deterministic.

Recorded sessions answer which words an agent writes later without having been shown them again. A few small
decision trees, trained on them by `scripts/train_needs.py`, give every name of a session a probability between 0 and 1. An agent
writes plain words without having seen them, so these are worth little, and those that stand everywhere nothing.

The features of a name are its shape (a path, an id, a number), how many texts of each voice contain it, who said it last, how
long ago that was, and how the agent has used it. The trees are in `needs.json`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias

from compact.messages.excerpts import split_words

Voice: TypeAlias = Literal["agent", "call", "tool", "user"]
VOICES: tuple[Voice, ...] = ("agent", "call", "tool", "user")
_OWN: tuple[Voice, ...] = ("agent", "call")

_CHARS_PER_TOKEN = 4
_COMMON_SHARE = 0.05
"""A word in more than this share of the texts is common."""
_COMMON_TEXTS = 3
"""A word in at most this many texts is never common."""
PLAIN_SHAPES = {"plain": 0.001, "capital": 0.005}
"""What a word is worth that an agent may also write without having seen it, by shape. Nothing is learned from these."""
_SHORTEST_PLAIN = 4
_LONGEST = 120
_NEVER = 1e9
"""Tokens since the agent used a word that it never used."""

_EDGES = ".-/@#"
_HEX = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}")
_FILE = re.compile(r"[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_FIELD = re.compile(r"^(\w[\w.-]{1,40}): |[\"'](\w[\w.-]{1,40})[\"']: ?", re.MULTILINE)
_GREP_SUFFIX = re.compile(r"[-:]\d+[-:]?$")
_SHAPES = ("snake", "camel", "hash", "number", "hyphen")
"""The shapes that are features: of all of them, the trees use these."""
_SHAPE_ROWS: Mapping[str | None, list[float]] = {
    shape: [float(shape == other) for other in _SHAPES] for shape in _SHAPES
}
_OTHER_SHAPE = [0.0] * len(_SHAPES)


class Spoken(NamedTuple):
    """A text of a session, and whose voice it is: the agent's words, its calls, a tool's output or the user's words."""

    voice: Voice
    text: str


class Reading(NamedTuple):
    """The words of a session's texts: where each stands, and how long ago that is."""

    texts: Sequence[Spoken]
    counts: Mapping[Voice, Mapping[str, int]]
    """How many texts of each voice contain a word."""
    last: Mapping[str, int]
    """The newest text that contains a word."""
    first: Mapping[str, int]
    last_own: Mapping[str, int]
    """The newest text of the agent's own that contains a word."""
    newest_user: int
    """The newest text of the user."""
    ages: Sequence[float]
    """How many tokens ago each text began."""
    sizes: Sequence[int]
    """How many different words each text has."""
    total: float
    fields: frozenset[str]
    """Names of fields: before a colon in data, or of a call's arguments."""


def read(texts: Sequence[Spoken]) -> Reading:
    """Find out where every word of a session stands. The texts are in the order of time."""
    counts: dict[Voice, Counter[str]] = {voice: Counter() for voice in VOICES}
    last: dict[str, int] = {}
    last_own: dict[str, int] = {}
    sets: list[set[str]] = []
    starts: list[float] = []
    total = 0.0
    newest_user = len(texts)
    for place, (voice, text) in enumerate(texts):
        words = set(split_words(text))
        sets.append(words)
        counts[voice].update(words)
        here = dict.fromkeys(words, place)
        last.update(here)
        if voice in _OWN:
            last_own.update(here)
        elif voice == "user":
            newest_user = place
        starts.append(total)
        total += len(text) / _CHARS_PER_TOKEN + 4
    first: dict[str, int] = {}
    for place in range(len(texts) - 1, -1, -1):
        first.update(dict.fromkeys(sets[place], place))
    fields = frozenset(name for _, text in texts for found in _FIELD.findall(text) for name in found)
    ages = [total - start for start in starts]
    return Reading(
        texts, counts, last, first, last_own, newest_user, ages, [len(words) for words in sets], total, fields
    )


def weigh(texts: Sequence[Spoken]) -> dict[str, float]:
    """Return how likely the agent is to need each word of a session again. A word without value is left out."""
    reading, score = read(texts), load_trees()
    return {
        word: PLAIN_SHAPES[shape]
        if shape in PLAIN_SHAPES
        else 1 / (1 + math.exp(-score(features_of(word, reading))))
        for word, shape in candidates(reading)
    }


def candidates(reading: Reading) -> Iterator[tuple[str, str]]:
    """The words that may have a value, with their shapes: names, and plain words that do not stand everywhere."""
    limit = max(_COMMON_TEXTS, int(len(reading.texts) * _COMMON_SHARE))
    counts = [reading.counts[voice] for voice in VOICES]
    for word in reading.last:
        shape = shape_of(word)
        if shape is None:
            continue
        if shape in PLAIN_SHAPES and sum(count.get(word, 0) for count in counts) > limit:
            continue
        yield word, shape


FEATURES = (
    *_SHAPES, "length",
    "texts of the agent", "calls", "outputs", "texts of the user", "own texts", "texts",
    "last in a call", "last said by the user", "in the newest words of the user", "first said by the user",
    "age", "relative age", "tokens since its use", "relative place of its use", "shown since its use", "span", "relative start",
    "words beside it in an output", "words beside it in speech", "size of the session", "is a field", "is a field, never used",
)  # fmt: skip
"""The names of the features, in their order."""


def features_of(word: str, reading: Reading) -> list[float]:
    """The features of a word, in the order of `FEATURES`."""
    place, first, own = reading.last[word], reading.first[word], reading.last_own.get(word)
    voice, total, ages = reading.texts[place].voice, max(reading.total, 1.0), reading.ages
    agent, call, tool, user = [reading.counts[each].get(word, 0) for each in VOICES]
    age, born, size, is_field = ages[place], ages[first], reading.sizes[place], word in reading.fields
    return [
        *_SHAPE_ROWS.get(shape_of(word), _OTHER_SHAPE), len(word),
        agent, call, tool, user, agent + call, agent + call + tool + user,
        voice == "call", voice == "user", user > 0 and place >= reading.newest_user,
        reading.texts[first].voice == "user",
        age, age / total,
        _NEVER if own is None else ages[own], 0.0 if own is None else 1 - ages[own] / total, own is not None and place > own,
        (born - age) / total, 1 - born / total,
        size if voice == "tool" else 0, 0 if voice == "tool" else size, total, is_field, is_field and own is None,
    ]  # fmt: skip


@lru_cache(maxsize=1 << 16)
def shape_of(word: str) -> str | None:
    """What a word looks like; None if it names nothing: a number of a line, a short word, a rule of dashes."""
    if len(word) > _LONGEST or len(word) < 3:
        return None
    bare = word.strip(_EDGES)
    if not bare:
        return None
    if word.startswith("#") and any(map(str.isdigit, bare)):
        return "hash"
    if word.isalpha():
        if _INNER_CAPITAL.search(word):
            return "camel"
        if len(word) < _SHORTEST_PLAIN and word.isascii():
            return None
        return "capital" if word[0].isupper() else "plain"
    bare = _GREP_SUFFIX.sub("", bare) or bare
    if "/" in bare:
        return "path"
    if _HEX.fullmatch(bare):
        return "hex"
    if bare.replace(".", "").isdigit():
        return "number" if len(bare) > 3 else None
    if _FILE.fullmatch(bare):
        return "file"
    if "." in bare:
        return "dotted"
    if "_" in bare.strip("_"):
        return "snake"
    if _INNER_CAPITAL.search(bare):
        return "camel"
    if any(map(str.isdigit, bare)):
        return "mixed"
    return "hyphen" if "-" in bare else "plain"


@cache
def load_trees() -> Callable[[Sequence[float]], float]:
    """The trees as one expression over the features, which Python evaluates several times faster than it walks trees."""
    data = json.loads((files("compact.summaries") / "needs.json").read_text(encoding="utf-8"))
    places = {name: place for place, name in enumerate(FEATURES)}
    terms = [str(float(data["start"])), *(_expression(tree, places) for tree in data["trees"])]
    # Only numbers of the package's own file stand in the expression, and each went through `float` or `int`.
    score: Callable[[Sequence[float]], float] = eval(f"lambda f: {'+'.join(terms)}", {})  # noqa: S307
    return score


def _expression(node: Any, places: Mapping[str, int]) -> str:
    """A leaf, or a feature with its threshold, and what follows up to it and above it. Only numbers come from the data."""
    if isinstance(node, float | int):
        return str(float(node))
    name, threshold, below, above = node
    return f"({_expression(below, places)} if f[{places[name]}] <= {float(threshold)} else {_expression(above, places)})"
