"""The beginning of a message that answers the agent's question or confirms its proposal. Pure, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compact.summaries.ledger.entry import Kind
from compact.summaries.ledger.forms import form, is_question, word_count
from compact.summaries.ledger.judged import Judged, clean
from compact.summaries.ledger.phrases import NO, THANKS, YES, is_english
from compact.summaries.ledger.replies import Asked, answered
from compact.summaries.ledger.sentences import Sentence
from compact.summaries.ledger.taking_back import takes_back
from compact.summaries.ledger.topics import topic

_REPLY = 45
"""Words of a reply that are kept with the question."""
_LEAST_OWN = 3
"""Words. A shorter reply is an answer, whatever its words."""
_LEAST_OWN_BEHIND_YES = 6
_ALONE = 9
"""Words. A sentence of its own kind this short is kept with the question too."""
_BARE = 2
"""Words of a bare yes at most."""
_WANTS_DATA = re.compile(
    r" (?:could|can|would|may|please) (?:you |i )?(?:please )?(?:have|provide|tell|give|share|confirm|send|specify) (?:me )?(?:with )?(?:your|the|which|what) "
)
_LEAST_ELSE, _LEAST_ELSE_FACT = 4, 7
"""Words of what answers a question in no way, and of a fact that does not."""
_YES_OR_NO = re.compile(
    r"(?:^|[.:!,?—*-]) (?:\*\*)?(?:(?:so|and|or|also) )?(?:does|is|are|do you|did|was|were|has|have|ready|want me|shall i|should i|would you like|would that|can i|may i|could you (?:please )?confirm|please confirm) [^?]*\? $"
)
_OR = re.compile(r" (?:or|oder|ou|o|of|lub|или|veya|أو|या) |还是|または|또는")
_OFFERED = re.compile(r"(?<!\S)\(([a-z]|\d{1,2})\)|(?<!\S)([a-z]|\d{1,2})[.)](?=\s)", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<![\w.,])(?:\d{1,2}(?![\w%])|[a-z](?=[).,;:!]|\s*$|\s+(?:and|not|or|but|then|please)\b))"
)


def reply_in(
    said: Sequence[Sentence], kinds: Sequence[Kind | None], words: int, asked: Asked
) -> tuple[int, Judged | None] | None:
    """The beginning of a message that answers or confirms, and how many sentences it takes; no entry if it says nothing."""
    first = said[0]
    if takes_back(first.text):
        return None
    if _speaks_of_else(first, kinds[0], asked):
        return None
    answers, was_asked = answered(first.text, words, asked)
    if not answers and asked.waits and words <= _REPLY and is_question(first.text) and len(said) > 1:
        # "Hm, I think (b)? Yes, (b)."
        answers, was_asked = answered(said[1].text, words, asked)
        if answers and (YES.found(form(said[1].text)) or NO.found(form(said[1].text))):
            return 2, Judged(clean(f"{first.text} {said[1].text}"), "answer", answers)
        answers = ""
    if not answers:
        return None
    if (
        kinds[0] is not None
        and word_count(first.text) > _ALONE
        and not (asked.waits and kinds[0] in ("fact", "decision"))
        and not (YES.found(form(first.text)) or NO.found(form(first.text)))
    ):
        return 1, Judged(clean(first.text), kinds[0])
    taken = [first.labelled]
    count = word_count(first.text)
    for one, kind in zip(said[1:], kinds[1:], strict=True):
        count += word_count(one.text)
        if (
            kind is not None
            or is_question(one.text)
            or count > _REPLY
            or takes_back(one.text)
            or one.is_heading
        ):
            break
        taken.append(one.labelled)
    if (
        len(taken) == 1 < len(said)
        and word_count(first.text) <= _BARE
        and YES.found(form(first.text))
        and _WANTS_DATA.search(form(answers))
    ):
        return 1, None  # "Sure!" is said before the data that were asked for
    length = len(taken)
    while len(taken) > 1 and THANKS.found(form(taken[-1])):
        taken.pop()
    reply: Kind = "answer" if was_asked else "decision"
    agrees = YES.found(form(first.text)) or NO.found(form(first.text))
    own = kinds[0] if word_count(first.text) >= (_LEAST_OWN_BEHIND_YES if agrees else _LEAST_OWN) else None
    kind = (
        reply
        if own is None
        or own == "fact"
        or (was_asked and own in ("fact", "decision", "preference", *(() if agrees else ("correction",))))
        else own
    )
    return length, Judged(
        clean("\n".join(taken) if any(one.in_list for one in said[:length]) else " ".join(taken)),
        kind,
        answers,
    )


def _speaks_of_else(first: Sentence, kind: Kind | None, asked: Asked) -> bool:
    """Whether a sentence with a meaning of its own stands behind a question, and answers it in no way.

    It says neither yes nor no, and shares no word with the question, which wants one of both or is in another language.
    """
    lowered, question = form(first.text), form(asked.question)
    if (
        kind is None
        or word_count(first.text) < (_LEAST_ELSE_FACT if kind == "fact" else _LEAST_ELSE)
        or YES.found(lowered)
        or NO.found(lowered)
        or not (asked.question or asked.proposal)
        or _names_option(first.text, f"{asked.proposal}\n{asked.question}")
    ):
        return False
    if is_english(question) and not lowered.isascii() and not is_english(lowered):
        return True
    wants_yes = not asked.question or (_YES_OR_NO.search(question) is not None and not _OR.search(question))
    about = topic(f"{asked.question} {asked.proposal}")
    said = topic(first.text)
    return wants_yes and not (
        said.words & about.words or said.choices & about.choices or said.names & about.names
    )


def _names_option(reply: str, asked: str) -> bool:
    """Whether a reply names one of the numbered things that are asked about: "do 1, not 2"."""
    offered = {(found[1] or found[2]).lower() for found in _OFFERED.finditer(asked)}
    return len(offered) > 1 and not offered.isdisjoint(_NAMED.findall(reply.lower()))
