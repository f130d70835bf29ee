"""What an entry is about: its words, its values, and whether it wants or forbids. Pure.

Two entries are about the same thing if they share the words that carry meaning. Words are cut down to stems, so that
"squash" and "squashing" are one; values (numbers, names, one of a known set of alternatives) stand apart, because a change
keeps the words and changes the value.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from compact.summaries.ledger.forms import form, whole_form
from compact.summaries.ledger.phrases import NEGATES, PERMITS
from compact.summaries.ledger.vocabulary import ALTERNATIVES, FUNCTION_WORDS, GENERAL_WORDS, SIGNS

_NAME = re.compile(
    r"https?://\S+|(?<![^\s,;:()<>\[\]\"“”])[^\s,;:()<>\[\]\"“”@]{1,80}@[^\s,;:()<>\[\]\"“”]+|#\w+"
    r"|(?<![\w.-])(?:[a-z0-9_-]{1,63}\.){1,8}[a-z][a-z0-9_-]*(?:/\S*)?|(?<!\w)(?=[^\W_]*_)[a-z]\w{0,80}_\w+"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CLOCK = re.compile(r"(?<!\S)\d{1,2}:\d{2}(?![\d:])")
_WORD = re.compile(
    r"[^\s,;!?()\[\]{}\"“”«»`，。、；：！？「」]{0,60}\d[^\s,;!?()\[\]{}\"“”«»`，。、；：！？「」]{0,60}"
    r"|(?:[^\W\d_]|[\u0900-\u097f\u064b-\u0652])+(?:['-][^\W\d_]+)*"
)
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+|[\u30a0-\u30ff]+|[\uac00-\ud7a3]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")
_ONLY = re.compile(
    r" (?:only|nur|ausschließlich|seulement|uniquement|solo|sólo|solamente|únicamente|soltanto|só|somente|apenas|alleen|uitsluitend|tylko|wyłącznie|только|лишь|исключительно|sadece|yalnızca|فقط|केवल|सिर्फ|सिर्फ़) |只|だけ|のみ|만 "
)
_KATAKANA = re.compile(r"[\u30a0-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_PARTICLES = re.compile(
    r"(?:에서는|으로는|에게는|에서|으로|에게|까지|부터|이나|하고|하지|하는|합니다|하세요|해줘|은|는|이|가|을|를|에|로|의|도|만|와|과|나)$"
)
_SUFFIX = re.compile(
    r"(?:ations?|tions?|ments?|ings?|ungen|ung|iren|ieren|izing|ises?|izes?|ized|ed|es|s|ly|er|ers|en|em|e|n|t|st|te|ten|ar|ir|ando|iendo|endo|ado|ada|ados|adas|ido|ida|os|as|o|a|i|are|ere|ire|ato|ata|ati|ate|ons|ez|ent|ant|é|ée|és|ées"
    r"|ować|owania|owanie|uj|aj|ów|ow|ami|ach|y|ę|ą|ie|ого|ему|ыми|ами|ях|ах|ов|ев|ать|ять|ить|еть|ай|уй|ей|ый|ий|ой|ая|яя|ое|ые|ие|ом|ем|ам|у|ю|ы|и|е|а|я|о|ь|й"
    r"|ları|leri|lar|ler|ların|lerin|ını|ini|unu|ünü|nın|nin|ya|ye|da|de|dan|den|mak|mek|ma|me|ları|yı|yi|ı|ü|u)$"
)
_ARABIC_PREFIX = re.compile(r"^(?:وال|بال|كال|فال|لل|ال)(?=\w{3})")
GENERAL_WEIGHT = 0.25
_NUMBER = re.compile(
    r"^[#~<>=+-]*[$€£¥]?\d+(?:[.,:]\d+)*(?:%|k|m|kb|mb|gb|ms|s|h|min|px|st|nd|rd|th)?[.:]?$", re.IGNORECASE
)
_NUMBER_WORDS = {
    word: str(number)
    for number, words in enumerate(
        ("zero null", "one eins ein eine un une uno uma um één jeden один bir", "two zwei deux dos due dois twee dwa два iki", "three drei trois tres tre três drie trzy три üç",
         "four vier quatre cuatro quattro quatro cztery четыре dört", "five fünf cinq cinco cinque vijf pięć пять beş", "six sechs seis sei zes sześć шесть altı", "seven sieben sept siete sette sete zeven siedem семь yedi",
         "eight acht huit ocho otto oito osiem восемь sekiz", "nine neun neuf nueve nove negen dziewięć девять dokuz", "ten zehn dix diez dieci dez tien dziesięć десять")
    )
    for word in words.split()
    if number != 1
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """What a sentence or one of its clauses is about."""

    words: frozenset[str]
    """Stems of the words that carry meaning."""
    numbers: frozenset[str]
    names: frozenset[str]
    """Identifiers: words with digits in them, addresses."""
    choices: frozenset[tuple[str, str]]
    """Members of known sets of alternatives: ("language", "fr")."""
    forbids: bool
    permits: bool
    restricts: bool
    """It allows one thing only."""
    weight: float = field(init=False, compare=False)
    """How much its words and choices say."""
    values: frozenset[object] = field(init=False, compare=False)
    """Its numbers, names and choices."""
    kinds: frozenset[str] = field(init=False, compare=False)
    """The sets of alternatives of which it names a member."""

    def __post_init__(self) -> None:
        # Topics are compared with many others, so what every comparison asks for is worked out once.
        object.__setattr__(self, "weight", weight(self.words) + len(self.choices))
        object.__setattr__(self, "values", frozenset().union(self.numbers, self.names, self.choices))
        object.__setattr__(self, "kinds", frozenset(kind for kind, _ in self.choices))


def weight(stems: frozenset[str]) -> float:
    """How much stems say together: verbs such as "use" and "run" go with everything."""
    return len(stems) - (1 - GENERAL_WEIGHT) * len(stems & _GENERAL) if stems else 0


@lru_cache(maxsize=8_192)
def topic(text: str) -> Topic:
    """The topic of a text."""
    named, lowered = content(text), form(text)
    forbids, permits = _polarity(lowered)
    return Topic(
        named.words,
        named.numbers,
        named.names,
        named.choices,
        forbids,
        permits,
        restricts=_ONLY.search(lowered) is not None,
    )


class Content(NamedTuple):
    """What a text names: the part of a topic that single words have, too."""

    words: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    choices: frozenset[tuple[str, str]]


@lru_cache(maxsize=8_192)
def content(text: str) -> Content:
    """What a text names."""
    lowered = _THOUSANDS.sub("", whole_form(text))
    choices = {("hour", time) for time in _CLOCK.findall(lowered)}
    said: list[tuple[_Sort, str]] = []
    for name in _NAME.findall(lowered):
        if name in _CHOICES:
            choices.add(_CHOICES[name])
        else:
            said.append(("name", name.strip(".,")))
    lowered = _NAME.sub(" ", lowered)
    for token in _tokens(lowered):
        choice, parts = _read(token)
        said += parts
        if choice is not None:
            choices.add(choice)
    for piece in () if lowered.isascii() else _cjk_words(lowered):
        choice = _CHOICES.get(piece)
        if choice is not None:
            choices.add(choice)
        elif piece not in FUNCTION_WORDS:
            said.append(("word", piece))
    words, numbers, names = (
        frozenset(what for sort, what in said if sort == wanted) for wanted in ("word", "number", "name")
    )
    return Content(words, numbers, names, frozenset(choices))


_Sort: TypeAlias = Literal["word", "number", "name"]


@lru_cache(maxsize=16_384)
def _read(token: str) -> tuple[tuple[str, str] | None, tuple[tuple[_Sort, str], ...]]:
    """The choice that a token is, or what it says: nothing, a word, a number, a name, or a number with its unit."""
    plain = token.strip(".'-:/")
    if (number := _NUMBER_WORDS.get(plain)) is not None:
        return None, (("number", number),)
    if plain in _CHOICES:
        return _CHOICES[plain], ()
    if any(sign.isdigit() for sign in plain):
        if _NUMBER.match(plain):
            return None, (("number", plain.lstrip("#~<>=+-$€£¥").rstrip(".:%").replace(",", "")),)
        if (parts := re.fullmatch(r"(\d+)-?([^\W\d_]{2,})", plain)) is not None:
            return None, (("number", parts[1]), ("word", stem(parts[2])))
        return None, (("name", plain),)
    if plain in FUNCTION_WORDS:
        return None, ()
    if (choice := _CHOICES.get(plain) or _CHOICE_STEMS.get(stem(plain))) is not None:
        return choice, ()
    return None, ((("word", stem(plain)),) if len(plain) > 1 else ())


def _polarity(lowered: str) -> tuple[bool, bool]:
    """Whether a form forbids, and whether it permits. "Not allowed" forbids; "fine again" permits."""
    rest = PERMITS.removed(lowered)
    if NEGATES.found(rest):
        return True, False
    return False, rest != lowered


def _tokens(lowered: str) -> list[str]:
    found: list[str] = []
    for token in _WORD.findall(_UNSPACED.sub(" ", lowered)):
        if "-" in token and not any(sign.isdigit() for sign in token):
            found += [token] if token in _CHOICES else [part for part in token.split("-") if part]
        else:
            found.append(token)
    return found


def _cjk_words(lowered: str) -> list[str]:
    """Words of scripts without spaces: runs of katakana, Korean words without particles, pairs of Han signs."""
    found: list[str] = []
    found += _CJK_CHOICES.findall(lowered)
    for run in _CJK.findall(_CJK_CHOICES.sub(" ", lowered)):
        if _KATAKANA.match(run):
            found.append(run)
        elif _HANGUL.match(run):
            word = _PARTICLES.sub("", run) if len(run) > 1 else run
            if word and word not in FUNCTION_WORDS:
                found.append(word if word in _CHOICES else word[:3])
        else:
            for part in _split_signs(run):
                if part in _CHOICES or len(part) == 1:
                    found.append(part)
                else:
                    found += [part[at : at + 2] for at in range(len(part) - 1)]
    return found


def _split_signs(run: str) -> list[str]:
    """A run of Han signs without function words, in one pass."""
    return [part for part in _SIGN_WORDS.sub(" ", run).split(" ") if part]


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A rough stem, the same for the forms of one word in any of the languages. Too much is cut rather than too little."""
    word = _IRREGULAR.get(word) or unicodedata.normalize("NFC", word)
    if word == _COMMIT:
        return word
    if "\u0600" <= word[0] <= "\u06ff":
        return _ARABIC_PREFIX.sub("", _without_marks(word)).rstrip("ةهات")[:5]
    if "\u0900" <= word[0] <= "\u097f":
        return word.rstrip("ािीुूेैोौंँ")[:6]
    parts = _without_marks(word).split("'")
    plain = parts[0] if parts[-1] in _ENGLISH_ENDS else parts[-1]
    plain = _TURKISH_VERB.sub("", plain)
    if plain.endswith(("mission", "missions")):
        plain = f"{plain[: plain.rindex('ssion')]}t"  # "submission" and "submit"
    short = _SHORT_FORM.fullmatch(plain)
    while short is None and (end := _SUFFIX.search(plain)) is not None:
        while end is not None and end.start() < _LEAST_STEM:
            end = _SUFFIX.search(plain, end.start() + 1)
        if end is None:
            break
        plain = plain[: end.start()]
    if (short := short or _SHORT_FORM.fullmatch(plain)) is not None:
        plain = short[1] or (f"{short[2]}e" if short[2] else short[3])
    if len(plain) >= _LEAST_STEM and plain[-1] == plain[-2]:
        plain = plain[:-1]
    return plain[:6]


_LEAST_STEM = 4
_IRREGULAR_LIST = (
    "commits commit,committed commit,committing commit,paid pay,payment pay,payments pay,shipment ship,shipments ship,sent send,kept keep,met meet,built build,held hold,sold sell,bought buy,wrote write,written write,spoke speak,spoken speak,lent lend,spent spend"
    ",chose choose,chosen choose,drove drive,driven drive,ate eat,eaten eat,flew fly,flown fly,drew draw,drawn draw,slept sleep,taught teach,won win,broke break,broken break"
    ",children child,people person,men man,women woman,mice mouse,feet foot,teeth tooth,indices index,queries query,replies reply,copies copy,entries entry,categories category,companies company"
)
_IRREGULAR = dict(pair.split() for pair in _IRREGULAR_LIST.split(","))
"""Forms that the endings do not show, and the word of each."""
_COMMIT = "commit"
"""Without its ending it is the same as "comment"."""
_SHORT_FORM = re.compile(
    r"([a-z]{2}[a-hj-rtv-z])s|([bcdfghjklmnprstvz][aeiou][bcdfgklmnprstvz])(?:ed|ing)|([a-z]{0,2}[aeiouy][a-z]{0,2}(?<=[a-z]{3})(?<![a-z]{4}))(?:ed|ing)"
)
"""A form of a word of three or four letters: "rows", "saving", "asking"."""
_ENGLISH_ENDS = ("s", "ing", "ed", "d", "ll", "re", "ve", "er")
_TURKISH_VERB = re.compile(r"(?<=\w{3})(?:[ae]bilir\w*|m[ae]y[ıi]n\w*|m[ae])$")


def _without_marks(word: str) -> str:
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))


_SIGN_WORDS = re.compile("|".join(sorted(SIGNS, key=lambda sign: (-len(sign), sign))))
_CHOICES: dict[str, tuple[str, str]] = {}
_CHOICE_STEMS: dict[str, tuple[str, str]] = {}
for _name, _members in ALTERNATIVES.items():
    for _member in _members.split(";"):
        for _spelling in _member.split()[1 if _name == "language" else 0 :]:
            _CHOICES[_spelling] = (_name, _member.split()[0])
            if _name in ("language", "weekday", "indent", "manner", "currency"):
                _CHOICE_STEMS.setdefault(stem(_spelling), (_name, _member.split()[0]))
_GENERAL = frozenset(stem(word) for word in GENERAL_WORDS)
_CJK_CHOICES = re.compile(
    "|".join(sorted((word for word in _CHOICES if _CJK.fullmatch(word)), key=lambda word: (-len(word), word)))
)


def overlap(new: Topic, old: Topic) -> float:
    """How much of what two topics name is the same."""
    return (
        weight(new.words & old.words)
        + len(new.numbers & old.numbers)
        + len(new.names & old.names)
        + len(new.kinds & old.kinds)
    )


def is_general(word: str) -> bool:
    """Whether a stem is one of a verb or noun that goes with everything."""
    return word in _GENERAL


def specific(of: Topic) -> frozenset[str]:
    """The words that are not general."""
    return of.words - _GENERAL
