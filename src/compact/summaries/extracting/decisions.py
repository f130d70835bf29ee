"""Tells whether a sentence of the agent is a decision, and takes it apart: what was decided, and why. Pure.

An alternative alone (`X instead of Y`) describes what a program does as often as what somebody chose. It counts where the
agent speaks of itself, or reports what it did.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from compact.messages.cues import (
    ALTERNATIVE,
    CHOOSING,
    DECISION,
    MADE,
    QUESTION,
    SMALL_TALK,
    UNDECIDED,
)
from compact.summaries.extracting.session_reading import Said

_REASONS = (
    r"(?:because|since|so that|so(?= (?:it|we|they|the|that|a|no|existing)\b)|as otherwise|in order to|due to|given that|weil"
    r"|damit|da(?= \w+ \w+)|denn|parce que|car|afin de|porque|ya que|para que|poiché|perché|потому что|так как|чтобы|çünkü|ponieważ|żeby)"
)
_REASONS_UNSPACED = "因为|因為|由于|なぜなら|왜냐하면|لأن|क्योंकि"
_REASON = re.compile(
    rf"(?:,|;|:|\s[—–-])?\s+(?={_REASONS}\s)|(?:[,;]|\s[—–])\s+(?=as (?!well\b|opposed\b|usual\b|before\b|soon\b|follows\b|an? ))"
    rf"|[，,、]?\s*(?=(?:{_REASONS_UNSPACED}))",
    re.IGNORECASE,
)
_REASON_AHEAD = re.compile(
    rf"(?:(?:{_REASONS}|as\b)\s|(?:{_REASONS_UNSPACED}))(?:[^,，]|,(?=\d)){{4,}}(?:,\s|，)\s*(?=\S)"
    r"|[^、。，,]{4,}(?:(?:ため|ので|から)[、，]|(?:때문에|므로),?\s)\s*(?=\S)",
    re.IGNORECASE,
)
"""A reason in front of what was decided. Japanese and Korean mark it at its end."""
_EXPLAINED = re.compile(r"(?P<decision>[^:：]+)[:：]\s+(?P<reason>\S+(?: \S+){2,})")
"""A decision, a colon, and a clause of three words or more."""
_COUNTS_DOWN = re.compile(
    r"\b(?:th(?:is|ese|ose)|following|things?|steps?|points?|options?|parts?|two|three|four|five|\d+)\W*$",
    re.IGNORECASE,
)
"""Words in front of a colon behind which the decision itself follows."""
_JOKES = re.compile(
    r"\b(?:(?:ha){2,}h?|(?:he){2,}|lol|rofl|j/k|just kidding)\b|[😀-😆😉😊😜😝🤣]", re.IGNORECASE
)
"""What nobody writes beside a decision that they mean."""
_LEAST_CHARS = 4
"""Fewer characters in front of a reason are no decision."""
_DECISIONS_HEADING = re.compile(
    r"[\W_]*(?:(?:key|design|main|final|technical|architectur\w+|implementation|my|the|our) )*(?:decisions?|choices)(?: (?:made|taken|so far))?"
    r"(?: \([^)]*\))?[\W_]*|[\W_]*(?:entscheidungen|décisions|decisiones|decisões|decisioni|решения|kararlar|decyzje|决定|決定事項|결정 사항)[\W_]*",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\b(?:(?:let me|I['’]ll|I will|let['’]s|to) (?:also |now |first )?(?:view|grep|search|find|look|check|read|see|verify|explore|examine|brainstorm\w*|investigate|inspect|list|try)|(?:the )?`?\w+`? (?:tool|command|skill))\b",
    re.IGNORECASE,
)
"""What an agent says of a step that only looks. Nothing is decided by it."""
_WILL = re.compile(
    r"\W*(?:(?:so|then|therefore|instead)\W+)?(?:I['’]ll|I will|we['’]ll|we will|I['’]m going to|we['’]re going to|ich werde|wir werden|je vais|nous allons|voy a|vamos a|vou|vamos)\s+(?:not |also |now |just |nicht |pas |no |não )?"
    r"(?!(?:start|begin|continue|proceed|wait|ask|need|run|rerun|re-run|test|show|tell|explain|walk|trace|go\b|do\b|be\b|have|also|now|just|help|assist|provide|give|get|open|fetch|know|note|summari|analy|review|confirm|process)\w*)\w+",
    re.IGNORECASE,
)
"""What somebody will do. With a reason it is a decision, except for the next look or talk."""
_PROPOSES = re.compile(
    r"\b(?:could|should|would|might|may|can|want me to|shall I|option|alternatively|if (?:you|we)|suggest|recommend|propose|you['’]d|likely|probably|perhaps|maybe)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision, and the reason that the same sentence gives."""

    decision: str
    reason: str = ""


def is_decision(said: Said) -> bool:
    """Whether a sentence says that something is decided."""
    text = said.text
    is_decided, has_alternative = DECISION.search(text), ALTERNATIVE.search(text)
    is_listed = said.is_entry and _DECISIONS_HEADING.fullmatch(said.under) is not None
    if not (is_decided or has_alternative or is_listed or _REASON.search(text) or _REASON_AHEAD.match(text)):
        return False
    if QUESTION.search(text) or text.startswith("|") or SMALL_TALK.fullmatch(text) or UNDECIDED.search(text):
        return False
    if _JOKES.search(text):
        return False
    if text.rstrip("*_ ").endswith((":", "：")):  # it leads to what follows
        return has_alternative and CHOOSING.search(text)
    if is_listed or is_decided:
        return is_listed or _PROPOSES.match(text) is None
    choice = choice_of(text)
    if _PROPOSES.search(choice.decision) or _LOOKS.search(text):
        return False
    if has_alternative and (MADE.match(text) or CHOOSING.search(choice.decision)):
        return True
    return bool(choice.reason) and (
        CHOOSING.search(choice.decision) or _WILL.match(choice.decision) is not None
    )


def choice_of(text: str) -> Choice:
    """Take a decision apart. The reason is empty if the sentence gives none."""
    if ahead := _REASON_AHEAD.match(text):
        return Choice(text[ahead.end() :], ahead.group().rstrip(" ,，、"))
    if behind := _REASON.search(text, _LEAST_CHARS):
        return Choice(text[: behind.start()], text[behind.end() :])
    explained = _EXPLAINED.fullmatch(text)
    if (
        explained
        and DECISION.search(explained["decision"])
        and not _COUNTS_DOWN.search(explained["decision"])
    ):
        return Choice(explained["decision"], explained["reason"])
    return Choice(text)
