"""Whether two statements are made alike and speak of two things: "the timeout of the gateway", "the timeout of the worker". Pure.

The words of both are laid beside each other. Where one has a value in the place in which the other one has another value, the value may
be what changed. Where one names a thing in the place in which the other one names another thing, they are about two things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, TypeAlias

from compact.summaries.ledger.topics import content, topic
from compact.summaries.ledger.vocabulary import FUNCTION_WORDS, GENERAL_WORDS

_Sort: TypeAlias = Literal["value", "label", "name", "plain"]
"""A label is a letter, an ordinal or a number that tells things of one name apart."""

_WORD = re.compile(
    r"[\u3400-\u9fff\uf900-\ufaff]|[\u3040-\u30ff]+|[\uac00-\ud7a3]+"
    r"|[^\s,;!?()\[\]{}\"“”«»،؛؟。，、；：！？「」\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]+"
)
_THOUSANDS = re.compile(r"(?<=\d)[,.](?=\d{3}(?!\d))")
_OPENING = re.compile(r"(?:^|(?<=[.!?] ))[A-ZА-ЯÀ-Þ](?=\s[^\W\d_]{2})")
"""A letter with which a sentence begins is a word: "A", "I", "O", "E"."""
_ORDINAL = re.compile(
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|erste[nrsm]?|zweite[nrsm]?|dritte[nrsm]?|vierte[nrsm]?|letzte[nrsm]?|premi(?:er|ère)s?|deuxième|seconde?|troisième|dernière?|primer[oa]?|segund[oa]|tercer[oa]?|últim[oa]"
    r"|prim[oa]|second[oa]|terz[oa]|ultim[oa]|primeir[oa]|terceir[oa]|eerste|tweede|derde|laatste|pierwsz\w{1,3}|drug(?:i|a|ie|iego|iej)|trzeci\w{0,3}|перв\w{2,3}|втор\w{2,3}|трет\w{2,3}|birinci|ikinci|üçüncü)"
)
_ONE = frozenset(("one", "eins", "один"))
_ONE_OR_ARTICLE = frozenset(("uno", "um", "één", "jeden", "bir"))
_SIGN_NUMBERS = frozenset("一二三四五六七八九十百千万萬亿億零两兩")
_GENERAL = frozenset(GENERAL_WORDS)
_NAMING: frozenset[_Sort] = frozenset(("label", "name"))
_MOST = 3
"""Words that name one thing."""
_MADE_ALIKE = 0.6
"""How much of two sentences is the same, beside their values, where both say it in one way."""


@dataclass(frozen=True, slots=True)
class _Word:
    key: str
    """The same for the forms of a word."""
    sort: _Sort


def differ_in_subject(new: str, old: str) -> bool:
    """Whether one names a thing in the place in which the other one names another."""
    places = _replaced(new, old)
    return any(_name_two(one, other) for one, other in places)


def surely_differ_in_subject(new: str, old: str) -> bool:
    """Whether they differ in a label, or in a name and are made alike besides: other words may say something else of the same thing.

    One that names the value of the other and a further one speaks of what that one is about.
    """
    if not differ_in_subject(new, old):
        return False
    said, held = topic(new).values, topic(old).values
    if held and held < said:
        return False
    if any(_have(one, "label") and _have(other, "label") for one, other in _replaced(new, old)):
        return True
    first, second = ([word.key for word in _words(text) if word.sort != "value"] for text in (new, old))
    return SequenceMatcher(a=first, b=second, autojunk=False).ratio() >= _MADE_ALIKE


def differ_in_value(new: str, old: str) -> bool:
    """Whether one has a value in the place in which the other one has another."""
    return any(_have(one, "value") and _have(other, "value") for one, other in _replaced(new, old))


def _name_two(one: tuple[_Word, ...], other: tuple[_Word, ...]) -> bool:
    if _have(one, "label") and _have(other, "label"):
        return True
    names = [sum(word.sort in _NAMING for word in side) for side in (one, other)]
    if all(names):
        return max(names) <= _MOST and abs(len(one) - len(other)) <= 1
    # A name of one language may be a word that says nothing in another one.
    return any(names) and len(one) == len(other) == 1 and not (_have(one, "value") or _have(other, "value"))


def _have(words: tuple[_Word, ...], sort: _Sort) -> bool:
    return any(word.sort == sort for word in words)


@lru_cache(maxsize=4_096)
def _replaced(new: str, old: str) -> tuple[tuple[tuple[_Word, ...], tuple[_Word, ...]], ...]:
    """What stands in the place of what, between or beside words that both have."""
    first, second = _words(new), _words(old)
    matcher = SequenceMatcher(
        a=[word.key for word in first], b=[word.key for word in second], autojunk=False
    ).get_opcodes()
    shared = any(
        word.sort == "name"
        for kind, start, end, _, _ in matcher
        if kind == "equal"
        for word in first[start:end]
    )
    return tuple(
        (first[start:end], second[old_start:old_end])
        for kind, start, end, old_start, old_end in matcher
        if kind == "replace" and shared
    )


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[_Word, ...]:
    text = _THOUSANDS.sub("", _OPENING.sub(lambda found: found[0].lower(), text))
    words: list[_Word] = []
    end = 0
    for found in _WORD.finditer(text):
        token = found[0].strip(".:'’-")
        if token:
            words.append(_word(token, words[-1] if words and text[end : found.start()].isspace() else None))
        end = found.end() - (found[0][-1] in ".:")
    values = [word for word in words if word.sort == "value"]
    if len(values) > 1:
        # Of two numbers, the one right behind a noun is the noun's: "room 12 has 4 seats".
        words = [_Word(word.key, "label") if word.key.startswith("#") else word for word in words]
    return tuple(words)


def _word(token: str, before: _Word | None) -> _Word:
    lowered = token.lower()
    behind_noun = before is not None and before.sort in _NAMING
    if len(token) == 1 and token.isupper():
        return _Word(token, "label")
    if _ORDINAL.fullmatch(lowered):
        return _Word(lowered, "label")
    if token in _SIGN_NUMBERS:
        return _Word(token, "value")
    about = content(token)
    if about.numbers or lowered in _ONE or (behind_noun and lowered in _ONE_OR_ARTICLE):
        number = min(about.numbers, default="1")
        return _Word(f"#{number}" if behind_noun else number, "value")
    if about.names or about.choices:
        return _Word(" ".join(sorted(map(str, about.names | about.choices))), "value")
    if lowered in FUNCTION_WORDS or not about.words:
        return _Word(lowered, "plain")
    return _Word(" ".join(sorted(about.words)), "plain" if lowered in _GENERAL else "name")
