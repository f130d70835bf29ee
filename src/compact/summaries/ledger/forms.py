"""The form of a sentence that phrases are looked for in. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_QUOTED = re.compile(
    r"\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»|‹[^›\n]{0,400}›|「[^」\n]{0,400}」|『[^』\n]{0,400}』|```[^`]{0,400}```|`[^`\n]{0,400}`"
    r"|(?:^|(?<=[\s(:]))'[^'\n]{1,400}'(?=[\s.,;:!?)]|$)|(?:^|(?<=[\s(:]))‘[^’\n]{1,400}’(?=[\s.,;:!?)]|$)"
)
_QUOTATION_MARKS = frozenset("\"“”„«»‹›「」『』`'‘")
_APOSTROPHES = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "ʼ": "'",
        "`": " ",
        "*": None,
        "\u200b": None,
        "\u200c": None,
        "\ufeff": None,
        "\u00ad": None,
    }
)
_APART = re.compile(
    r"([.,;:!?…()\[\]{}\"“”«»—–]+|-{2,})(?=\s|$)|(?<=\s)([(\[{\"“«—–]+)|([，。、；：！？（）「」『』،؛؟।]+)"
)
_TASK_MARK = re.compile(r"^\W{0,3}(?:p\.?s\.?|nb|n\.b\.)\s?:?\s", re.IGNORECASE)
_UNFINISHED_QUOTE = re.compile(
    r"(?:[:：]\s*|\b(?:says|said|reads|states|wrote|writes|sagt|dit|dice|diz|пишет)\b[^\"“„«]{0,20})[\"“„«「『].*$",
    re.DOTALL,
)


_DRAWN_OUT = re.compile(r"([a-z])\1{2,}")
"""A letter that is drawn out, as in "yesss"."""


@lru_cache(maxsize=4_096)
def form(sentence: str) -> str:
    """Lower case, one space between words, punctuation apart, a space at both ends; quotations are masked by `“”`.

    Words that are quoted are somebody else's, or they are mentioned and not used.
    """
    text = sentence
    if not _QUOTATION_MARKS.isdisjoint(sentence):
        text = _QUOTED.sub(" “” ", sentence)
        text = _UNFINISHED_QUOTE.sub(" “” ", text)
    lowered = whole_form(sentence) if text == sentence else _spaced(text)
    return _DRAWN_OUT.sub(r"\1", lowered)


@lru_cache(maxsize=4_096)
def whole_form(sentence: str) -> str:
    """The form with what is quoted in it."""
    return _spaced(sentence)


def is_used(words: str, text: str) -> bool:
    """Whether words stand in a text, and not only inside a quotation."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    quoted += [found.span() for found in _UNFINISHED_QUOTE.finditer(text)]
    return any(
        not any(start < place and place + len(words) < end for start, end in quoted)
        for place in (found.start() for found in re.finditer(re.escape(words), text))
    )


def _spaced(text: str) -> str:
    text = _TASK_MARK.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    # The dotted capital of Turkish becomes two signs in lower case.
    text = text.lower().replace("i\u0307", "i").translate(_APOSTROPHES)
    text = _APART.sub(lambda found: f" {found[0]} ", text)
    return f" {' '.join(text.split())} "


_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SIGNS_PER_WORD = 2


def word_count(text: str) -> int:
    """Approximate word count. In scripts without spaces, every `_SIGNS_PER_WORD` characters count as one word."""
    signs = len(_HAN.findall(text))
    return len(_HAN.sub(" ", text).split()) + (signs + 1) // _SIGNS_PER_WORD


def is_question(sentence: str) -> bool:
    """Whether a sentence ends in a question mark. "..., ok?" asks nothing."""
    end = sentence.rstrip(" \"'”»)*_`😂🤣🤔🙂😅")
    if not end.endswith(("?", "？", "؟")):
        return False
    return _AGREED.search(end.lower()) is None


_AGREED = re.compile(
    r"[,，、.] ?(?:ok|okay|k|alright|all right|got it|understood|clear|deal|please|thanks|bitte|klar|verstanden|d'accord|compris|vale|entendido|de acuerdo|capito|d'accordo|va bene|certo|tá|combinado|begrepen|akkoord|goed|jasne|dobrze|хорошо|ладно|понятно|ясно|tamam mı|anlaştık mı|حسنا|تمام|ठीक है|好吗|好嗎|可以吗|いい|알겠지|알았지) ?[?？؟]+$"
)
