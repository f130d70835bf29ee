"""Sentences that take something back, and what they say besides. Pure, without a model."""

from __future__ import annotations

import re

from compact.summaries.ledger.entry import Kind
from compact.summaries.ledger.forms import form, is_question, word_count
from compact.summaries.ledger.judged import Judged, clean
from compact.summaries.ledger.phrases import AGAIN, DECIDES, RULE, STRONG, TAKES_BACK_LAST, WITHDRAWS
from compact.summaries.ledger.topics import specific, topic

_PARTS = re.compile(
    r"\s*[,;—–]\s+|[，；]|\s+-\s+|:\s+|\s+(?:and|but|und|et|y|e|en|i|и|ve)\s+(?=(?:use|just|please|go|from|let's|do|keep|make|instead|we|you)\b)"
)
_KEEPS = re.compile(
    r" (?:don't|do not|dont|never|didn't|doesn't|won't|not|cannot|can't) (?:[^\s,;.!]+ ){0,3}?(?:forget|skip|drop|ignore|disregard|scrap|cancel|remove|lift|withdraw|saying) "
    r"| (?:wants?|told|asked|tells|asks|wrote|says|suggests?|suggested|thinks?|insists?) (?:\S+ ){0,4}?(?:forget|skip|drop|ignore|disregard|scrap|cancel|remove|lift) "
    r"|^ (?:\S+ ){0,2}vergiss (?:\S+ ){1,10}nicht [!.]? ?$|^ (?:\S+ ){0,2}vergiss nicht "
)
"""Words that ask not to forget a rule, or tell that somebody else wants it forgotten."""
_NEW_HALF = re.compile(
    r"^ (?:(?:and|but|so|instead|rather) )?(?:use|go|make|take|do|we|it's|it is|treat|just|let's|switch|put|set|write|keep|send|all) "
)
_POINTS = re.compile(r" (?:it|them|that|those|this|these) ")
_POINTING = 4
"""Words of a part that says only once more what is taken back: "leave them out"."""


def takes_back(text: str) -> bool:
    """Whether a sentence takes something back. A reminder not to forget a rule does not."""
    lowered = form(text)
    says_so = WITHDRAWS.found(lowered) or TAKES_BACK_LAST.found(lowered)
    return says_so and not (is_question(text) or reminds(text))


def _only_points(part: str) -> bool:
    """Whether a part says only once more what is taken back. "Make it 100" says something else."""
    return word_count(part) <= _POINTING and _POINTS.search(form(part)) is not None and not topic(part).values


def _says_what_is_new(lowered: str) -> bool:
    """Whether a form says what holds instead, and does not only point to what is taken back."""
    return AGAIN.found(lowered) and not _POINTS.search(lowered) and bool(specific(topic(lowered)))


def reminds(text: str) -> bool:
    """Whether a sentence asks not to forget a rule, or tells that somebody else wants it forgotten. It changes nothing."""
    return _KEEPS.search(form(text)) is not None


def taking_back(text: str, kind: Kind | None) -> Judged:
    """Split what is taken back from what the sentence says besides."""
    parts = [part for part in _PARTS.split(text) if part.strip()]
    back = [part for part in parts if WITHDRAWS.found(form(part))]
    rest = [part for part in parts if part not in back and not TAKES_BACK_LAST.found(form(part))]
    says_more = (bool(back) or not WITHDRAWS.found(form(text))) and any(
        STRONG.found(form(part))
        or RULE.found(form(part))
        or DECIDES.found(form(part))
        or _says_what_is_new(form(part))
        or _NEW_HALF.match(form(part))
        for part in rest
        if word_count(part) >= 2 and not _only_points(part)
    )
    return Judged(
        clean(text),
        kind or ("rule" if says_more else None),
        target=" ".join(back) if says_more else "",
        goes_on=says_more,
    )
