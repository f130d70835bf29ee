"""Judge one message: which sentences of it are kept, how they belong together, and what they reply to. Pure, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compact.summaries.ledger.answering import reply_in
from compact.summaries.ledger.changes import ENDS
from compact.summaries.ledger.earlier import has_turn
from compact.summaries.ledger.entry import Kind
from compact.summaries.ledger.forms import form, is_question, word_count
from compact.summaries.ledger.judged import Judged, clean
from compact.summaries.ledger.kinds import (
    SENTENCE,
    SHORT,
    Setting,
    first_words,
    looks_like_code,
    narrates,
    sentence_kind,
)
from compact.summaries.ledger.pasted import own_paragraphs
from compact.summaries.ledger.phrases import (
    ASKS,
    FAILS,
    NOT_STRONG,
    PREFERS,
    REQUESTS,
    RULE,
    STRONG,
    THANKS,
    YES,
)
from compact.summaries.ledger.remarks import Remark, introduces, remarks_in, short_paragraphs
from compact.summaries.ledger.replies import Asked
from compact.summaries.ledger.sentences import Sentence, sentences
from compact.summaries.ledger.taking_back import takes_back, taking_back

_GOAL = 60
"""Words of the first request that are kept."""
_GREETING = 4
"""Words of a greeting at most."""
_LIST_ITEMS, _LIST_WORDS = 15, 150
_HEADINGS = 3
"""Headings that make a message a document."""
_DANGLING = re.compile(
    r"^ (?:(?:all|both|most|none|each|some) of (?:it|them|these|those)|there) |^ (?:(?:and|but|so|or|und|aber|et|mais|y|pero|e|ma|mas|en|maar|i|ale|и|а|но) )?(?:it|that|this|these|those|they|them|otherwise|instead|unless|if so|in that case|das|dies|diese|sonst|ça|cela|sinon|eso|esto|si no|ciò|questo|altrimenti|isso|senão|dat|dit|anders|inaczej|это|иначе|yoksa|bu|وإلا|هذا|वरना|यह|它|这|否则|それ|これ|그것|그렇지) "
)
_RULES_NOUN = re.compile(
    r"\b(?:rules?|conventions?|guidelines?|requirements?|constraints?|preferences?|notes?|ground rules|house rules|remember|keep in mind|important|reminders?|standards?|regeln?|vorgaben|anforderungen|wichtig|règles|consignes|contraintes|important|reglas|normas|requisitos|importante|regole|requisiti|regras|regels|eisen|belangrijk|zasady|wymagania|ważne|правила|требования|важно|kurallar|önemli)\b|规则|規則|规范|要求|注意|ルール|規約|注意|규칙|주의|قواعد|القواعد|नियम",
    re.IGNORECASE,
)
_SMALL = re.compile(
    r"^ (?:hi|hey|hello|thanks|thank you|ok|okay|great|cool|nice|hallo|danke|merci|hola|gracias|ciao|grazie|olá|obrigad[oa]|привет|спасибо|你好|谢谢)[ ,.!]"
)
_OWN_MISTAKE = re.compile(
    r" (?:you're right|you are right|my mistake|my bad|i was wrong|i made a mistake|i misspoke|i mistyped|i mixed up|i must be mistaken|one more try|let me try again|sorry about that|oops|scratch that|wait ,|mein fehler|verzeihung|ich habe mich vertan|pardon|je me suis trompée?|me equivoqué|perdón|mi sono sbagliat[oa]|scusa|me enganei|desculpa|mijn fout|pomyłka|pomyli[łl]\S*|ошибся|ошиблась|извини\S*|pardon|özür) |说错|搞错|弄错|間違え|すみません、|잘못|죄송"
)
"""The user corrects what they said themselves."""
_ADDS = re.compile(
    r" (?:also|another|other|second|too|as well|additionally|auch|aussi|también|anche|também|ook|też|также|ayrıca) "
)
_TOGETHER = 45
"""Words of neighbouring sentences that are kept together."""
_FRAGMENT, _LITTLE = 2, 8
"""Words of what says something only beside others, and of a fact that is kept with its neighbours."""
_STRENGTH: tuple[Kind, ...] = ("correction", "rule", "preference", "decision", "answer", "fact")
_REGRET = 5
_DIGIT = re.compile(r"\d")
_ASKS_BEHIND = re.compile(
    r"(?:[,;]| [-–—])\s+(?:(?:so|and|but|then) )?(?=(?:can|could|would|will|do|does|did|is|are|should|may|might|any|how|what|which|where|when|who|why)\b)",
    re.IGNORECASE,
)
_OWN_WISH = re.compile(r" (?:i|we|i'd|we'd|i'm|we're|i'll|my|our) ")
_SUPPOSES = re.compile(r"^ (?:(?:and|but|so|ok|okay) ,? ?)?(?:if|when|suppose|assuming|say|should) ")
_LEAST_PARTED, _LEAST_OWN_WISH = 10, 5
"""Words of a sentence with a wish and a question in it, and of the wish."""
_SIBLINGS, _SIBLING_WORDS = 8, 8
"""Items of a list that is read as one, and the words of each."""
_QUOTES = re.compile(r"[\"“”„«»]")
_LETTERS = re.compile(r"[^\W\d_]{2}")


def judge(text: str, asked: Asked, *, is_first: bool) -> Iterator[Judged]:
    """Yield what is kept of a message that a person typed, in order."""
    paragraphs = list(own_paragraphs(text))
    said = [
        one
        for number, paragraph in enumerate(paragraphs)
        for whole in _unquoted(list(sentences(paragraph, number)))
        for one in _without_question(whole)
    ]
    if not said:
        return
    words = sum(word_count(one.text) for one in said)
    headings = sum(one.is_heading and not one.text.endswith((":", "：")) for one in said)
    lines = sum(bool(line.strip()) for line in text.split("\n"))
    own_lines = sum(paragraph.count("\n") + 1 for paragraph in paragraphs)
    setting = Setting(words, bool(asked.end), lines - own_lines, headings >= _HEADINGS and words > SHORT)
    remarks = remarks_in(said, text, paragraphs) if words > SHORT else {}
    kinds = _kinds(said, setting, remarks, has_paste=lines > own_lines)
    start = 0
    kept: list[Judged] = []
    if words <= SHORT and (reply := reply_in(said, kinds, words, asked)) is not None:
        start, first = reply
        kept += [first] if first is not None else []
    kept += _others(said, kinds, start, setting)
    if (
        is_first
        and (goal := _goal(said, kinds)) is not None
        and not any(goal.text in one.text for one in kept if not one.only_if_changes)
    ):
        kept.insert(0, goal)
    if words <= SHORT:
        kept = [replace(one, corrects=True) if _corrects(one, said) else one for one in kept]
    yield from kept


def _kinds(
    said: Sequence[Sentence], setting: Setting, remarks: Mapping[int, Remark], *, has_paste: bool
) -> list[Kind | None]:
    """The kinds of the sentences. Those of a remark are read as if they stood alone, and stay together."""
    kinds: list[Kind | None] = []
    alone = short_paragraphs(said) if setting.words > SHORT and not setting.is_document else {}
    for one in said:
        remark = remarks.get(one.block)
        kind = sentence_kind(one, Setting(remark.words, setting.replies) if remark else setting)
        if kind is None and remark is None and one.block in alone:
            # A paragraph that says one thing may be the person's own word, if it is not just a fact.
            found = sentence_kind(one, Setting(alone[one.block], setting.replies))
            kind = None if found == "fact" else found
        says_nothing = introduces(one, remark, has_paste=has_paste) or _only_regrets(one)
        kinds.append(None if kind == "fact" and says_nothing else kind)
    kinds = _with_siblings(said, kinds, setting)
    stating = {one.block for one, kind in zip(said, kinds, strict=True) if kind is not None} & remarks.keys()
    return [
        "fact" if kind is None and one.block in stating and _goes_along(one, has_paste=has_paste) else kind
        for one, kind in zip(said, kinds, strict=True)
    ]


def _with_siblings(
    said: Sequence[Sentence], kinds: Sequence[Kind | None], setting: Setting
) -> list[Kind | None]:
    """The kinds of the sentences, where a short list of which half or more are rules or facts is one of them all.

    "- no tracking / - works offline": what stands in one list is meant in one way.
    """
    found = list(kinds)
    if sum(one.in_list for one in said) > _SIBLINGS or setting.is_document or setting.pasted_lines:
        return found
    start = 0
    for number in range(1, len(said) + 1):
        goes_on = (
            number < len(said)
            and said[number].in_list
            and said[start].in_list
            and said[number].block == said[start].block
        )
        if goes_on:
            continue
        items = range(start, number)
        words = sum(word_count(said[item].text) for item in items)
        is_short = len(items) >= 2 and all(map(_may_be_sibling, said[start:number]))
        # A short list is read as if it stood alone.
        own = [
            kinds[item] or (sentence_kind(said[item], Setting(words, setting.replies)) if is_short else None)
            for item in items
        ]
        if (
            is_short
            and sum(kind is not None for kind in own) * 2 >= len(items)
            and any(kind not in (None, "fact") for kind in own)
        ):
            found[start:number] = [kind or "rule" for kind in own]
        start = number
    return found


def _may_be_sibling(one: Sentence) -> bool:
    """Whether an item is short, and neither a question nor work to be done now."""
    is_short = word_count(one.text) <= _SIBLING_WORDS
    return (
        is_short
        and one.in_list
        and not (is_question(one.text) or REQUESTS.found(form(one.text)) or takes_back(one.text))
    )


def _unquoted(said: list[Sentence]) -> list[Sentence]:
    """The sentences without those that stand whole in a quotation of several. What is quoted is somebody else's."""
    marks = [_QUOTES.findall(one.text) for one in said]
    if not any(len(found) % 2 for found in marks):
        return said
    kept: list[Sentence] = []
    opened = False
    for number, (one, found) in enumerate(zip(said, marks, strict=True)):
        turns = len(found) % 2 == 1
        closes_later = any(len(later) % 2 for later in marks[number + 1 :])
        inside = opened or (turns and closes_later and _QUOTES.match(one.text) is not None)
        if not inside:
            kept.append(one)
        if turns:
            opened = not opened and closes_later
    return kept


def _without_question(one: Sentence) -> list[Sentence]:
    """A question behind a wish in one sentence, apart: "I prefer few dependencies, so how can I ...?"."""
    if not is_question(one.text) or word_count(one.text) < _LEAST_PARTED:
        return [one]
    for gap in _ASKS_BEHIND.finditer(one.text):
        wish = one.text[: gap.start()]
        lowered = form(wish)
        if (
            word_count(wish) >= _LEAST_OWN_WISH
            and _OWN_WISH.search(lowered)
            and (PREFERS.found(lowered) or STRONG.found(NOT_STRONG.removed(lowered)))
            and not (ASKS.found(first_words(wish, 1)) or _SUPPOSES.match(lowered))
        ):
            return [replace(one, text=wish), replace(one, text=one.text[gap.end() :], label="")]
    return [one]


def _goes_along(one: Sentence, *, has_paste: bool) -> bool:
    """Whether a sentence of a remark is kept with the others: it asks for nothing, and is no courtesy."""
    lowered = form(one.text)
    asks = is_question(one.text) or REQUESTS.found(lowered) or one.is_heading or takes_back(one.text)
    courteous = THANKS.found(lowered) or _SMALL.match(lowered) or introduces(one, None, has_paste=has_paste)
    return not (asks or courteous or looks_like_code(one.text))


def _only_regrets(one: Sentence) -> bool:
    return word_count(one.text) <= _REGRET and _OWN_MISTAKE.search(form(one.text)) is not None


def _corrects(one: Judged, said: Sequence[Sentence]) -> bool:
    """Whether it stands in or behind a sentence in which the user says that they were wrong."""
    mistaken = False
    for sentence in said:
        mistaken = mistaken or _OWN_MISTAKE.search(form(sentence.text)) is not None
        if mistaken and sentence.text in one.text and not _ADDS.search(form(sentence.text)):
            return True
    return False


def _others(
    said: Sequence[Sentence], kinds: Sequence[Kind | None], start: int, setting: Setting
) -> list[Judged]:
    """The sentences that are kept, behind the reply. A list stays with the heading that makes it a rule."""
    kept: list[Judged] = []
    number = start
    while number < len(said):
        one = said[number]
        if takes_back(one.text):
            kept.append(taking_back(one.text, kinds[number]))
        elif one.is_heading and (items := _items_behind(said, number)):
            behind = kinds[number + 1 : number + 1 + len(items)]
            kept += _list(one, items, behind, "" if setting.is_document else form(one.text))
            number += len(items)
        elif run := _run(said, kinds, number):
            texts = [each.text for each in said[number : number + run]]
            if number > start and _needs(said[number - 1], one, kinds[number - 1]):
                texts.insert(0, said[number - 1].text)
            found = [kind for kind in kinds[number : number + run] if kind is not None]
            kept.append(Judged(clean(" ".join(texts)), min(found, key=_STRENGTH.index, default="fact")))
            number += run - 1
        elif _may_change(one) and not (setting.words > SHORT and narrates(form(one.text))):
            kept.append(Judged(clean(one.text), "rule", only_if_changes=True))
        number += 1
    return kept


def _run(said: Sequence[Sentence], kinds: Sequence[Kind | None], start: int) -> int:
    """How many sentences from here on are kept together, because one of two neighbours says little alone; 0 if none is kept."""
    last, words = start - 1, 0
    for number in range(start, len(said)):
        one, kind = said[number], kinds[number]
        words += word_count(one.text)
        if kind is None and not _is_fragment(one):
            break
        if number > start:
            before = said[number - 1]
            says_little = (
                _says_little(before, kinds[number - 1])
                or _says_little(one, kind)
                or _DANGLING.match(form(one.text)) is not None
            )
            if (
                one.block != before.block
                or one.in_list
                or before.in_list
                or one.is_heading
                or takes_back(one.text)
                or words > _TOGETHER
                or not says_little
            ):
                break
        last = number
    says_something = last > start or kinds[start] is not None
    return last - start + 1 if says_something else 0


def _says_little(one: Sentence, kind: Kind | None) -> bool:
    return kind in (None, "fact") and word_count(one.text) <= _LITTLE


def _is_fragment(one: Sentence) -> bool:
    """Whether it is a word or two that say something only beside others: "Plots. Not tables."."""
    lowered = form(one.text)
    return (
        word_count(one.text) <= _FRAGMENT
        and _LETTERS.search(one.text) is not None
        and not (one.is_heading or is_question(one.text) or THANKS.found(lowered))
        and not (
            YES.found(lowered)
            or _SMALL.match(lowered)
            or takes_back(one.text)
            or _OWN_MISTAKE.search(lowered)
        )
    )


def _needs(before: Sentence, one: Sentence, kind_before: Kind | None) -> bool:
    """Whether a sentence cannot be understood without the one before, which is not kept itself: "It must stay as it is."."""
    return (
        _DANGLING.match(form(one.text)) is not None
        and before.block == one.block
        and kind_before is None
        and not (is_question(before.text) or before.is_heading or takes_back(before.text))
        and word_count(before.text) <= SENTENCE
    )


def _may_change(one: Sentence) -> bool:
    """Whether a sentence without a rule's words may still turn an earlier rule."""
    lowered = form(one.text)
    return (
        not is_question(one.text)
        and 3 <= word_count(one.text) <= SENTENCE
        and (has_turn(lowered) or ENDS.search(lowered) is not None or _DIGIT.search(one.text) is not None)
        and not FAILS.found(lowered)
    )


def _items_behind(said: Sequence[Sentence], number: int) -> list[Sentence]:
    items: list[Sentence] = []
    for one in said[number + 1 :]:
        if not one.in_list:
            break
        items.append(one)
    return items


def _list(
    heading: Sentence, items: Sequence[Sentence], kinds: Sequence[Kind | None], lowered: str
) -> Iterator[Judged]:
    """A list under a heading: its items if the heading only says that they are rules, else both together."""
    bare = _RULES_NOUN.sub(" ", heading.text)
    orders = (
        lowered != ""
        and not NOT_STRONG.found(lowered)
        and (STRONG.found(form(bare)) or (RULE.found(form(bare)) and len(items) <= _LIST_ITEMS))
    )
    sizes = [word_count(item.text) for item in items]
    if orders and len(items) <= _LIST_ITEMS and max(sizes) <= SENTENCE and sum(sizes) <= _LIST_WORDS:
        yield Judged("\n".join([clean(heading.text), *(f"- {clean(item.text)}" for item in items)]), "rule")
        return
    of_rules = lowered != "" and len(items) <= _LIST_ITEMS and _RULES_NOUN.search(heading.text) is not None
    for item, kind in zip(items, kinds, strict=True):
        if kind is not None or (
            of_rules and not is_question(item.text) and word_count(item.text) <= SENTENCE
        ):
            yield Judged(clean(item.text), kind or "rule")


def _goal(said: Sequence[Sentence], kinds: Sequence[Kind | None]) -> Judged | None:
    """The first request of a session: what it is all about. A question that only asks is none."""
    start = next((number for number, one in enumerate(said) if not _says_nothing(one.text)), None)
    if start is None or kinds[start] is not None:
        return None
    first = said[start]
    if is_question(first.text) and ASKS.found(first_words(first.text, 1)):
        return None
    taken = [first.text]
    if len(said) > start + 1:
        second = said[start + 1]
        goes_on = second.block == first.block and kinds[start + 1] is None
        joins = goes_on or (first.is_heading and kinds[start + 1] is None)
        fits = word_count(first.text) + word_count(second.text) <= _GOAL
        if fits and joins and not takes_back(second.text):
            taken.append(second.text)
    if len(taken) == 1 and first.is_heading and first.text.endswith((":", "：")):
        return None  # it only announces what stands behind it
    return Judged(clean(" ".join(taken)), "fact")


def _says_nothing(text: str) -> bool:
    is_greeting = _SMALL.match(form(text)) is not None and word_count(text) <= _GREETING
    return is_greeting or not _LETTERS.search(text) or looks_like_code(text)
