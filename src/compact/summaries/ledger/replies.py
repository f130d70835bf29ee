"""What a short reply answers or confirms: the agent's question or proposal, verbatim. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from compact.summaries.ledger.forms import form, is_question, word_count
from compact.summaries.ledger.pasted import own_paragraphs
from compact.summaries.ledger.phrases import (
    ACTS,
    ASKS,
    CLOSING_QUESTION,
    DECIDES,
    NO,
    PROPOSES,
    REQUESTS,
    THANKS,
    YES,
)
from compact.summaries.ledger.sentences import Sentence, sentences

_LONGEST_CHARS = 480
"""What is kept of a question, with the options it lists."""
_OPTIONS = 8
_TAIL = 14
"""The last sentences of the agent's message in which a question or a proposal is looked for."""
_LAST_CHARS = 12_000
_ITEM = re.compile(
    r"^[ \t]*(?:[-*•]|\(?(?:\d{1,2}|[A-Za-z])[.):]|\*\*(?:\d{1,2}|[A-Za-z]|Option \w{1,3})[.):]?)[ \t*]{0,4}\S|^[ \t]*\**Option \w{1,3}\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r" (?:i can see|i see|(?:let me|i'll|i will)(?: now| first| just| also)? (?:see|check|look|search|find|read|analyze|analyse|verify|examine|inspect|take a look|explore|run|trace|understand)) "
)
_ASKS_FOR = re.compile(
    r" (?:(?:tell me|let me know|say|pick|choose|decide|i need to know|please confirm) (?:which|what|whether|how|who|where|when|one|between|if you (?:want|would|prefer|agree))|whichever you prefer|(?:your|you) (?:call|choice|pick|decide|choose)|up to you|(?:waiting for|need) your (?:decision|answer|approval|ok|choice)) "
)
"""Words that want an answer without a question mark."""
_UNLESS = re.compile(
    r" (?:unless you|if you don't (?:object|mind)|if you do not object|if that's (?:ok|okay|fine|all right)|es sei denn,? (?:du|sie)|sauf si (?:tu|vous)|a menos que|a meno che|tenzij (?:je|u)|chyba że|если (?:ты|вы) не (?:против|возража\S*)) "
)
"""Words that make what the agent will do a proposal."""
_FENCES = re.compile(r"^[ \t]*```", re.MULTILINE)
_INVITES = re.compile(
    r" (?:let me know if|let me know when|feel free|if you (?:have|need) any|if you need|should you need|don't hesitate|sag bescheid|melde dich) "
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the agent's last message asks or proposes."""

    question: str = ""
    proposal: str = ""
    end: str = ""
    """The last sentences, for a reply that says itself that it agrees to something."""
    waits: bool = False
    """The message ends with the question: the agent waits for the answer."""


def asked_in(text: str) -> Asked:
    """Read the end of an agent's message."""
    head, end = text[:-_LAST_CHARS], text[-_LAST_CHARS:]
    # The end may begin inside a piece of code.
    opened = "```\n" if len(_FENCES.findall(head)) % 2 else ""
    return _asked_in(opened + end) if text.strip() else Asked()


@lru_cache(maxsize=256)
def _asked_in(text: str) -> Asked:
    lines = [line for paragraph in own_paragraphs(text) for line in paragraph.split("\n")]
    tail = _last_sentences(lines)
    questions = [
        (number, one)
        for number, one in tail
        if (is_question(one.text) or _ASKS_FOR.search(form(one.text)))
        and not CLOSING_QUESTION.found(form(one.text))
    ]
    proposals = [(number, one) for number, one in tail if _proposes(lines, number, one)]
    proposals = [found for found in proposals if not (questions and _CONFIRMS.search(form(found[1].text)))]
    if questions and proposals and proposals[-1][0] > questions[-1][0]:
        # What is proposed in a line of its own behind the question is what a reply agrees to.
        questions = []
    asked = _with_options(lines, _understandable(lines, tail, questions)) if questions else ""
    proposed = _with_options(lines, _together(proposals)) if proposals else ""
    last = _clip([one.text for _, one in tail[-2:] if not CLOSING_QUESTION.found(form(one.text))])
    waits = bool(questions) and all(
        one is questions[-1][1] or one.in_list or CLOSING_QUESTION.found(form(one.text))
        for _, one in tail[tail.index(questions[-1]) :]
    )
    return Asked(asked, proposed, last, waits)


_CONFIRMS = re.compile(r"^ (?:please |kindly )?confirm | ?\( ?yes ?/ ?no ?\)")
"""Asks for a yes to what stands before it."""


def _last_sentences(lines: list[str]) -> list[tuple[int, Sentence]]:
    """The last sentences, each with the number of its line."""
    found: list[tuple[int, Sentence]] = []
    for number in range(len(lines) - 1, -1, -1):
        found = [*((number, one) for one in sentences(lines[number])), *found]
        if len(found) >= _TAIL:
            break
    return found[-_TAIL:]


def _proposes(lines: list[str], number: int, one: Sentence) -> bool:
    """Whether a sentence proposes something. What the agent is about to look at is no proposal."""
    lowered = form(one.text)
    announces = one.is_heading and not _items(lines, range(number + 1, min(number + 2, len(lines))))
    return (
        not (is_question(one.text) or announces)
        and (PROPOSES.found(lowered) or _UNLESS.search(lowered) is not None)
        and not (_INVITES.search(lowered) or _LOOKS.search(lowered))
    )


def _are_asked_together(
    lines: list[str], tail: list[tuple[int, Sentence]], questions: list[tuple[int, Sentence]]
) -> bool:
    """Whether the last two questions are one: nothing stands between them, and not one alone is in a list.

    A question in a line of its own is another one, if it is understood alone.
    """
    if len(questions) < 2:
        return False
    first, last = questions[-2:]
    in_list = {_ITEM.match(lines[number]) is not None for number, _ in (first, last)}
    says_itself = word_count(last[1].text) > _BARE_QUESTION and not _REFERS.search(form(last[1].text))
    is_alone = first[0] != last[0] and in_list == {False} and says_itself
    return tail.index(last) - tail.index(first) == 1 and len(in_list) == 1 and not is_alone


def _understandable(
    lines: list[str], tail: list[tuple[int, Sentence]], questions: list[tuple[int, Sentence]]
) -> list[tuple[int, Sentence]]:
    """The last questions; if they are as short as "Shall I do that?", with the sentence before."""
    asked = questions[-2:] if _are_asked_together(lines, tail, questions) else questions[-1:]
    place, first, last = tail.index(asked[0]), asked[0][0], asked[-1][0]
    words = sum(word_count(one.text) for _, one in asked)
    beside = lines[max(first - 1, 0) : first + 1] + lines[last + 1 : last + 2]
    goes_on = place > 0 and tail[place - 1][0] == first
    if words > _LONG_QUESTION or (any(map(_ITEM.match, beside)) and not goes_on):
        return asked
    lowered = [form(one.text) for _, one in asked]
    points = (
        (words <= _BARE_QUESTION and (not ASKS.found(lowered[0]) or " which " in lowered[0]))
        or (words <= _SHORT_QUESTION and any(_REFERS.search(one) for one in lowered))
        or any(_CHOOSES.search(one) for one in lowered)
    )
    before: list[tuple[int, Sentence]] = []
    size = sum(len(one.text) for _, one in asked)
    for number, one in reversed(tail[:place]):
        size += len(one.text)
        so_far = sum(word_count(held.text) for _, held in before)
        is_far = number != (before or asked)[0][0] and (before or not points)
        is_needed = (
            points
            or _OFFERS.search(form(one.text)) is not None
            or PROPOSES.found(form(one.text))
            or words + so_far + word_count(one.text) <= _SHORT_PARAGRAPH
        )
        if is_question(one.text) or size > _LONGEST_CHARS or is_far or so_far >= _ENOUGH or not is_needed:
            break
        before.insert(0, (number, one))
    return [*before, *asked]


_LONG_QUESTION = 35
"""Words of a question that is understood alone."""
_BARE_QUESTION, _SHORT_QUESTION = 3, 6
"""Words of a question that needs what stands before it, whatever it says or if it points to it."""
_SHORT_PARAGRAPH = 40
"""Words of a question with what stands before it in its paragraph that are kept together."""
_CHOOSES = re.compile(
    r" (?:which(?: one| two| option|(?: of (?:them|these|those|the two|both))| do you| would you| should i take| is it| is right)|either|what do you prefer|your (?:choice|pick|call)|welche[rsn]? (?:von|davon|der beiden|soll ich nehmen|möchten|willst)|lequel|laquelle|lesquels|cuál de|cuál prefieres|quale dei|quale delle|quale preferi\S+|qual dos|qual das|qual prefere|welke van|który z|która z|które z|какой из|какую из|какое из|hangisi|أيهما) |哪(?:一个|一種|一种)|どちら|どれ|어느 (?:것|쪽)"
)
_REFERS = re.compile(
    r" (?:that|this|it|them|those|so|both|ahead|proceed|continue|start|preference|prefer|think|thoughts?|sounds?|ok|okay|right|agreed?|correct|good|fine|acceptable|das|dies|recht|einverstanden|ça|cela|convient|eso|esto|lo|bien|ciò|questo|isso|dat|dit|goed|это|так|bunu|uygun|ذلك|هذا|यह|ठीक) |这|那|吗|それ|これ|いい|그|이렇"
)
_ENOUGH = 25
"""Words of sentences before it that make a question understood."""


def _together(found: list[tuple[int, Sentence]]) -> list[tuple[int, Sentence]]:
    """The last of them, with the one before it if it stands directly beside it."""
    last = found[-1]
    return [one for one in found[-2:] if last[0] - one[0] <= 1]


def _with_options(lines: list[str], found: list[tuple[int, Sentence]]) -> str:
    """The sentences with the list that stands directly before or behind them."""
    first, last = found[0][0], found[-1][0]
    if last - first > 1 + _OPTIONS:
        found, first = found[-1:], last
    if any(_ITEM.match(lines[number]) for number, _ in found):
        # The question is itself an item: its list is what is asked.
        return _clip([one.text for _, one in found])
    before = _items(lines, range(first - 1, max(first - 1 - _OPTIONS, -1), -1))[::-1]
    behind = _items(lines, range(last + 1, min(last + 1 + _OPTIONS, len(lines))))
    asked = [one.text for _, one in found]
    size = sum(map(len, asked))
    if behind and size + sum(map(len, behind)) <= _LONGEST_CHARS:
        return "\n".join([_joined(asked), *behind])
    if before and size + sum(map(len, before)) <= _LONGEST_CHARS:
        return "\n".join([*before, _joined(asked)])
    return _clip(asked)


def _items(lines: list[str], numbers: range) -> list[str]:
    found: list[str] = []
    for number in numbers:
        if not _ITEM.match(lines[number]):
            break
        found.append(lines[number].strip())
    return found


def _joined(texts: list[str]) -> str:
    return " ".join(texts)


def _clip(texts: list[str]) -> str:
    """As many of the last sentences as there is room for; the end of the last one if it is too long alone."""
    while len(texts) > 1 and len(_joined(texts)) > _LONGEST_CHARS:
        texts = texts[1:]
    text = _joined(texts)
    if len(text) <= _LONGEST_CHARS:
        return text
    cut = text[-_LONGEST_CHARS:]
    return f"[...] {cut.partition(' ')[2] or cut}"


_PRAISE = re.compile(
    r"^ (?:great|cool|nice|perfect|done|fine|correct|right|super|deal) ,? ?(?!(?:by|with|for) (?:me|us)|one|that|idea|choice|let|do|go|yes|please|thanks|thank|plan|with)[^\s.!] ?\S"
)
"""Praise before something new agrees to nothing."""
_AGREES = re.compile(
    r" (?:yes|yep|yeah|yup|sure|please|correct|right|exactly|absolutely|go ahead|do it|ja|gerne|oui|sí|si|claro|sim|certo|tak|да|evet|نعم|हाँ|हां) |是|好|はい|네|예"
)
_SIGHS = re.compile(
    r"^ (?:(?:oh|oh shoot|okay|ok) ,? ?)?(?:ugh|i|well|and|but|so|you're right|you are right|sorry about that|sorry|my bad|my mistake|i must be mistaken|one more try|hm+|argh+|oh no|ah|oh|wow|lol|haha|damn|uh|um|meh|huh|oops|let me (?:check|see|think)|one moment|hold on|wait|just a (?:sec|moment|minute))[ .!…]+$"
)
_MOVES_ON = re.compile(
    r"^ (?:keep going|carry on|go on|continue|next(?: one)?|weiter|dalej|дальше|devam) [.!]? ?$"
)
_OFFERED = re.compile(
    r" (?:shall|should|want me|would you like|do you want|ready to|may i|can i|ok to|okay to) "
)
"""A question to which a word that lets the agent work on is a yes."""
_SHORT = 15
"""Words. A reply this short needs the question to be understood."""
_OFFERS = re.compile(
    r" (?:i|we|you) (?:can|could|would|might) | (?:i'd|we'd|what if|how about|suggest\w*|propos\w*|recommend\w*|or) |\( ?[a-d1-4] ?\)"
)
"""Words by which an agent offers something."""
_ASSENT = 6
"""Words of a reply to a proposal that is taken for an answer whatever it says."""
_LEAST_ALONE = 24
"""Words. A longer reply says itself what it is about."""


def _wants_assent(proposal: str) -> bool:
    return (_OFFERS.search(proposal) or _UNLESS.search(proposal)) is not None


def answered(first: str, words: int, asked: Asked) -> tuple[str, bool]:
    """What a reply with this first sentence answers, and whether it was a question. Empty if it answers nothing."""
    lowered = form(first)
    says_yes, says_no = YES.found(lowered), NO.found(lowered)
    waits = asked.waits and words <= _LEAST_ALONE
    if (
        is_question(first)
        or first.endswith((":", "："))
        or (_PRAISE.search(lowered) and not (ACTS.found(lowered) or waits))
    ):
        return "", False
    if not (says_yes or says_no or any(map(str.isalnum, first))) or _SIGHS.search(lowered):
        return "", False
    if _MOVES_ON.match(lowered) and not _OFFERED.search(form(asked.question)):
        return "", False
    if THANKS.found(lowered) and not (asked.question and (waits or _AGREES.search(lowered))):
        return "", False
    if asked.question and (says_yes or says_no or (words <= _LEAST_ALONE and not is_question(first))):
        return asked.question, True
    if asked.proposal and (
        says_yes
        or says_no
        or (words <= _ASSENT and _wants_assent(form(asked.proposal)) and not REQUESTS.found(lowered))
    ):
        return asked.proposal, False
    if (ACTS.found(lowered) or (says_yes and DECIDES.found(lowered))) and word_count(first) <= _SHORT:
        return asked.end, False
    return "", False
