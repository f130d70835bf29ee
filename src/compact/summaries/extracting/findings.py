"""Finds what the agent established: a cause, a measured number, a path or command that works, what does not. Pure.

A statement counts if its words say so, or if it names what the result just before it showed. Plans, guesses, questions and
reports of edits are none. Of several statements about one subject the last one stands; one that is taken back, by the agent
or by a person, does not stand at all.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compact.messages.cues import (
    ABSENT,
    CAUSE,
    CORRECTS,
    DENIES,
    FOUND,
    HEDGED,
    MEASURE,
    NEXT,
    OUTCOME,
    QUESTION,
    SMALL_TALK,
    VERDICT,
    WORKS,
)
from compact.summaries.extracting.session_reading import Done, Reading, Said, flat
from compact.summaries.ledger.forms import form
from compact.summaries.ledger.phrases import NO

_NAME = re.compile(
    r"`[^`\n]{2,80}`|(?<![\w./-])(?=[\w./:-]*(?:[a-z][A-Z]|_|/|\.[A-Za-z]|[A-Za-z]\d|\d[A-Za-z]|\(\)))[\w./:-]{3,}(?:\(\))?"
    r"|(?<![\w.])\d[\d,.]*\d(?![\w])"
)
"""What a sentence names exactly: code in backticks, paths, identifiers, numbers of two digits or more."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_SIGNS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_STEM = 5
_STATUS = re.compile(
    r"(?:pass|fail|work|succe|build|compi|green|clean|broke|crash|retur|exit|takes|took|actua|longe|still|now|never|always|turns|confi|verif|bestan"
    r"|funkt|fonct|funci|funzi)\w*",
    re.IGNORECASE,
)
"""What is said of a subject, not the subject."""
_COMMON = frozenset((
    "that", "this", "with", "from", "have", "been", "they", "their", "them", "then", "than", "when",
    "what", "which", "while", "will", "also", "only", "into", "onto", "over", "after", "before", "because",
    "about", "there", "here", "very", "just", "more", "most", "some", "such", "each", "other", "using",
    "used", "uses", "being", "does", "done", "make", "made", "found", "shows", "means", "issue", "problem",
    "cause", "reason", "both", "four", "five", "three", "seven", "eight", "nine", "existing", "every",
    "many", "several",
))  # fmt: skip
_HEADINGS = re.compile(
    r"[\W_]*(?:(?:the|key|main|actual|my|our|root|what (?:I|we)) )*(?:root cause|findings?|results?|conclusions?|diagnosis|found|learned|measurements?|benchmarks?"
    r"|the (?:problem|bug|issue|cause)|ursache|ergebnis(?:se)?|befund|cause racine|résultats?|constats?|causa raíz|resultados?|hallazgos|causa raiz|risultati|causa"
    r"|причина|результаты|выводы|sonuçlar|bulgular|wyniki|przyczyna|根本原因|原因|发现|结论|結論|結果|わかったこと|원인|결과)(?: (?:found|so far|analysis|summary))?[\W_]*",
    re.IGNORECASE,
)
_INTENT = re.compile(
    r"[^\w`]*(?:(?:ok(?:ay)?|good|great|perfect|now|so|next|first|then|also|and|but|yes|right|done|alright)\b[\s,.!:—–-]*)*(?:let me|let['’]s|let us|I['’]ll|I will|we['’]ll|I need|I want|I should|I can|I['’]m going"
    r"|we need|we should|we can|we could|you can|you could|next\b|todo|to do\b|try\b|run\b|use\b|add\b|check\b|verify\b|make sure|consider|please|option\b|alternative|proposal|proposed|recommend\w*|suggest\w*|plan\b|goal\b|task \d|step \d"
    r"|test that\b|don['’]t|do not|noted?\b|ensure|refactor|rename\b|reset\b|return\b|new section|read\b|extract\b|pass\b|make\b|put\b|set\b|see\b|note\b|the user (?:wants|asked|said)|you (?:mentioned|want|said|asked|get|need)|create|update|implement|remove|replace|move|fix\b|write\b|keep\b|phase \d|item \d|if\b|want me)\b",
    re.IGNORECASE,
)
"""How a plan, a proposal or an entry of a task list begins."""
_NEEDS = re.compile(
    r"\b(?:needs?|wants?|have|has) to\b|\bneeds? the\b|\bmust\b|\byou (?:can|could|may)\b", re.IGNORECASE
)
"""What has to be done is no finding."""
_EDIT = re.compile(
    r"\W*(?:`[^`]+`\W*(?:[—–:-]\s*)?)?(?:(?:I(?:['’]ve| have)?|we(?:['’]ve| have)?|also|now|and|just|then|successfully) )*(?:added|updated|removed|created|renamed|moved|changed|replaced|fixed|wrote|rewrote|refactored|implemented|extracted"
    r"|deleted|modified|introduced|extended|simplified|converted|made|switched|committed|pushed|merged|rebased|installed|cleaned|addressed|resolved|incorporated|adjusted|applied|wired|documented|used|uses|reads|writes|takes|returns)\b",
    re.IGNORECASE,
)
"""How a report of an edit begins. The calls tell it better."""
_VAGUE = re.compile(
    r"(?:\w+\W+){0,3}?(?:(?:I|we)(?:['’]ve| have)? (?:found|discovered|located)|(?:this|that) (?:confirms|shows|explains|means)|(?:issue|problem|cause|reason) is (?:clear|obvious|that|there|this)\b)"
    r"(?:\W+\w+){0,7}\W*$",
    re.IGNORECASE,
)
"""It says that something was found, but not what: `I found the bug in the parser.`"""
_IS = re.compile(
    r"\b(?:is|are|was|were|went|ist|sind|war|beträgt|est|sont|es|son|era|é|são|è|sono)\b|是|为|です|입니다|составляет",
    re.IGNORECASE,
)
_ARTICLES = r"(?:the|our|my|die|der|das|les?|la|el|los|las|il|lo|gli|o|os|a|as)\s+|l['’]"
_VERB = r"\s(?:is|was|are|were|ist|war|est|était|es|era|è|é)(?P<no>n['’]t\b| not\b| nicht\b| pas\b| kein\w*)?(?=\s)"
_CAUSE_IS = re.compile(
    rf"(?:^\W*|[,:—–]\s+|\b(?:that|so|dass|que)\s+)(?:{_ARTICLES})?(?:(?:root|real|actual|true|underlying|eigentliche|wahre|vraie|настоящая) )*"
    r"(?:(?:cause|culprit|ursache|causa|причина|przyczyną|sebep|neden|السبب|कारण)\b|(?:根本)?原因|근본 원인|원인)(?P<thing>[^.:;!?,]{0,80}?)"
    rf"(?:{_VERB}|\*{{0,2}}\s*[:：]|は|是|在于|은|이)\*{{0,2}}\s*(?!still\b|un\w+)(?P<what>[^;.,:!?]*)",
    re.IGNORECASE,
)
"""`The root cause of the delay is X`: the next such statement takes its place. Of bugs and issues there may be several."""
_THING_IS = re.compile(
    rf"\W*(?:{_ARTICLES})(?P<thing>[^\s.:;!?,]+(?: [^\s.:;!?,]+){{0,5}}?){_VERB}\s+(?P<what>[`\"'“]?\S+)",
    re.IGNORECASE,
)
"""`The config that works is deploy/edge.toml`: a thing, and which one it is."""
_OF_A_THING = re.compile(
    rf"\W*(?:{_ARTICLES}|each\s|every\s|jede[rs]?\s|chaque\s|cada\s|ogni\s)\w", re.IGNORECASE
)
"""How a sentence about the world begins. One about the agent's own doings has no article there."""
_PART = re.compile(r"[^\W_][\w./-]*[^\W_]|\w")
_BARE = re.compile(
    r"(?:\W*)(?:this|that|it(?! turn)|these|those|they|das|dies|es(?! stell)|cela|ça|c['’]est|eso|esto|isso|questo|это)\b",
    re.IGNORECASE,
)
"""A sentence that begins like this needs the one before it."""
_DISPUTED = re.compile(
    r"\W*(?:no\b\W*|nope\b\W*|nein\b\W*|non\b\W*|нет\b\W*|不\W+)?(?:(?:I (?:think|believe) )?(?:that|this|it)(?:['’]s| is| was)? ?(?:not|isn['’]t|wrong|incorrect|false)\b|wrong\b|incorrect\b|not true\b|not correct\b|you(?:['’]re| are) (?:wrong|mistaken)|that isn['’]t"
    r"|(?:das )?(?:stimmt nicht|ist falsch)|falsch\b|c['’]est faux|faux\b|(?:eso )?no es (?:cierto|correcto|así)|está errado|(?:è )?sbagliato|это (?:не так|неверно)|неверно|yanlış|to nieprawda|不对|不對|错了|違います|違う|아니(?:요|에요|다)|틀렸)",
    re.IGNORECASE,
)
_BEHIND_NO = re.compile(r"^\W*\w+\W+")
_ARTICLE_WORDS = frozenset(
    (
        "the",
        "an",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "le",
        "la",
        "les",
        "un",
        "une",
        "el",
        "los",
        "las",
        "una",
        "il",
        "lo",
    )
)
_POINTERS = frozenset(("this", "these", "here"))
"""`The price of this one is` may be said of another one later."""
_NO_STATEMENT = ("|", ">", "...", "✅", "☐", "- [")
"""How a row of a table, a quote, half a sentence or an entry of a list to be checked begins."""
_BEFORE = -1
"""The place of what an earlier summary says."""
_LEAST_WORDS = 4
_LEAST_NAME = 3
"""A shorter number or name stands in every output."""
_MOST_CHARS = 320
_SAME = 0.6
"""The share of the smaller subject that two statements about the same thing have in common."""
_CORRECTED = 0.4
_LASTING = 2
"""The weight of what the words of a statement alone show to be a result."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence that establishes something, and what it is about."""

    place: int
    order: int
    text: str
    weight: int
    names: frozenset[str]
    topic: frozenset[str]
    """Names and stems of its words, without numbers and what is said of them."""
    is_outcome: bool
    corrects: bool
    role: frozenset[str]
    """What it names, if it names something: the cause, the config that works. Only one statement at a time does."""

    def is_about(self, other: _Statement, shared: int) -> bool:
        """Whether it speaks of the same subject as an earlier statement."""
        if self.role and self.role == other.role:
            return True
        if self.corrects and (self.names & other.names or shared >= _CORRECTED * len(other.topic) > 0):
            return True
        if self.names and other.names and not self.names & other.names:
            return False
        small = min(len(self.topic), len(other.topic))
        if small < 2:
            return shared == small == 1 and self.is_outcome and other.is_outcome
        return shared >= _SAME * small


@dataclass(frozen=True, slots=True)
class _Dispute:
    """A person's words that contradict the agent."""

    place: int
    answers: int
    """The place of the agent's words just before."""
    text: str
    is_whole: bool
    """They say that it is wrong, not only how it is instead."""


def find(reading: Reading) -> list[Said]:
    """What is established and still stands, the most telling first, then the newest."""
    standing: dict[int, _Statement] = {}
    _follow(reading, standing)
    best = sorted(standing.values(), key=lambda each: (-each.weight, -each.order))
    return [Said(each.place, each.text) for each in best]


def replaced_by(reading: Reading, texts: Sequence[str]) -> list[bool]:
    """For each finding of an earlier summary, whether the session replaces it or takes it back."""
    before = range(-len(texts), 0)
    standing = {
        order: _as_statement(Said(_BEFORE, text), order, 1, text)
        for order, text in zip(before, texts, strict=True)
    }
    if standing:
        _follow(reading, standing)
    return [order not in standing for order in before]


def _follow(reading: Reading, standing: dict[int, _Statement]) -> None:
    """Go through the session: add what it establishes, and drop what it replaces or takes back."""
    disputes = _disputes(reading)
    for statement in _statements(reading):
        while disputes and disputes[0].place < statement.place:
            _withdraw(standing, disputes.pop(0))
        for order in _replaced(standing, statement):
            del standing[order]
        if statement.weight:
            standing[statement.order] = statement
    for dispute in disputes:
        _withdraw(standing, dispute)


def _statements(reading: Reading) -> Iterator[_Statement]:
    shown = _Shown(reading)
    before: Said | None = None
    for order, said in enumerate(reading.said):
        weight = _weight(said, shown)
        if weight or DENIES.search(said.text):
            text = said.text
            if weight and _BARE.match(text):
                text = _with_context(said, before)
            yield _as_statement(said, order, weight if text else 0, text or said.text)
        before = said


def _as_statement(said: Said, order: int, weight: int, text: str) -> _Statement:
    names = frozenset(_names_in(text))
    role, _, is_not = _role_of(text)
    return _Statement(
        said.place,
        order,
        text,
        weight,
        frozenset(name for name in names if not name[0].isdigit()),
        frozenset(name for name in names if not name[0].isdigit()) | frozenset(_stems_of(text)),
        OUTCOME.search(text),
        CORRECTS.search(text) or DENIES.search(text),
        frozenset() if not weight or is_not or role & _POINTERS else role,
    )


def _with_context(said: Said, before: Said | None) -> str:
    """The sentence behind the one that says what it is about; empty if that is not to be had."""
    if before is None or before.place != said.place or before.is_entry is not said.is_entry:
        return said.text if any(_names_in(said.text)) else ""
    both = f"{before.text} {said.text}"
    return both if len(both) <= _MOST_CHARS else said.text


def establishes(text: str) -> bool:
    """Whether the words of a sentence alone say that something is established."""
    return _weight(Said(_BEFORE, text), None) > 0


def is_lasting(text: str) -> bool:
    """Whether a finding outlasts reports of what was just seen: a cause, a measured result, what works and what does not."""
    return _weight(Said(_BEFORE, text), None) >= _LASTING


def _weight(said: Said, shown: _Shown | None) -> int:
    """How telling a sentence is; 0 if it establishes nothing."""
    text = said.text
    if not _states(text):
        return 0
    is_measured = MEASURE.search(text)
    names = set(_names_in(text))
    is_seen = shown is not None and shown.has_any(names, said.place)
    is_planned = NEXT.search(text) is not None
    if CAUSE.search(text) or FOUND.search(text) or _HEADINGS.fullmatch(said.under):
        says_what = is_seen or is_measured or bool(names) or not _VAGUE.match(text)
        return 3 if says_what and (is_seen or not is_planned) else 0
    ends = OUTCOME.search(text) or (is_measured and _IS.search(text) is not None)
    if (
        VERDICT.search(text)
        or (ends and (is_seen or is_measured))
        or (names and WORKS.search(text) and not said.is_entry)
    ):
        return 0 if NEXT.match(text) else 2
    if is_planned:
        return 0
    if not is_seen:
        is_absent = bool(names) and ABSENT.search(text)
        tells = not said.is_entry and _OF_A_THING.match(text) is not None
        return int(is_absent or (tells and (is_measured or _names_a_thing(text))))
    return 2 if ABSENT.search(text) else int(not said.is_entry)


def _states(text: str) -> bool:
    """Whether a sentence states something: it asks, leads, guesses, plans or reports an edit of its own otherwise."""
    if QUESTION.search(text) or text.rstrip("*_ ").endswith((":", "：")) or text.startswith(_NO_STATEMENT):
        return False
    if _size_of(text) < _LEAST_WORDS and not VERDICT.search(text):
        return False
    others = (_INTENT.match, _EDIT.match, SMALL_TALK.fullmatch, _NEEDS.search, HEDGED.search)
    return not any(matches(text) for matches in others)


def _role_of(text: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """What a sentence names, by its words, what it says that this is, and whether it says that it is not."""
    found, named = _CAUSE_IS.search(text), {"cause"}
    if found is None:
        found, named = _THING_IS.match(text), set()
        if found is None or not any(_names_in(found["what"])):
            return frozenset(), frozenset(), False
    thing, what = (
        frozenset(part.lower() for part in _PART.findall(found[group]) if len(part) > 1)
        for group in ("thing", "what")
    )
    return thing | named, what - _ARTICLE_WORDS, found["no"] is not None


def _names_a_thing(text: str) -> bool:
    """Whether a sentence says which one or how much a thing is."""
    role, _, is_not = _role_of(text)
    return bool(role) and not is_not


class _Shown:
    """What the results just before a sentence showed."""

    def __init__(self, reading: Reading) -> None:
        self._done: Sequence[Done] = reading.done
        self._places = sorted({said.place for said in reading.said})
        self._texts: dict[int, str] = {}

    def has_any(self, names: Iterable[str], place: int) -> bool:
        """Whether a result between these words and the ones before them shows one of these names."""
        text = self._text_before(place)
        return bool(text) and any(name in text for name in names if len(name) >= _LEAST_NAME)

    def _text_before(self, place: int) -> str:
        if place not in self._texts:
            here = bisect_left(self._places, place)
            earlier = self._places[here - 1] if here else -1
            first = bisect_left(self._done, earlier, key=lambda done: done.place)
            last = bisect_left(self._done, place, key=lambda done: done.place)
            self._texts[place] = "\n".join(done.result or "" for done in self._done[first:last]).lower()
        return self._texts[place]


def _names_in(text: str) -> Iterator[str]:
    for match in _NAME.finditer(text):
        name = match.group().strip("`.:,-").removesuffix("()").lower()
        if len(name) > 1:
            yield name


def _stems_of(text: str) -> Iterator[str]:
    for word in _WORD.findall(_NAME.sub(" ", text).lower()):
        if word not in _COMMON and not _STATUS.fullmatch(word):
            yield word.rstrip("s")[:_STEM]
    signs = _SIGNS.findall(text)
    yield from map("".join, pairwise(signs))


def topic_of(text: str) -> frozenset[str]:
    """What a text is about: the names in it, and the stems of its words."""
    return frozenset([*_names_in(text), *_stems_of(text)])


def _size_of(text: str) -> int:
    return len(text.split()) + len(_SIGNS.findall(text)) // 2


def _replaced(standing: dict[int, _Statement], later: _Statement) -> list[int]:
    """The statements that a later one replaces or takes back."""
    shared = {order: len(each.topic & later.topic) for order, each in standing.items()}
    found = [
        order
        for order, each in standing.items()
        if (shared[order] or each.names & later.names or (later.role and each.role == later.role))
        and each.place < later.place
        and later.is_about(each, shared[order])
    ]
    if not found and not later.weight:
        found = [order for order, each in standing.items() if each.place < later.place][-1:]
    return found


def _disputes(reading: Reading) -> list[_Dispute]:
    """Where a person contradicts the agent."""
    found = []
    places = sorted({said.place for said in reading.said})
    for place, message in enumerate(reading.messages):
        if not message.starts_turn:
            continue
        here = bisect_left(places, place)
        answers = places[here - 1] if here else _BEFORE
        if _DISPUTED.match(message.text):
            found.append(_Dispute(place, answers, flat(message.text), is_whole=True))
        elif NO.found(form(message.text[:_MOST_CHARS])):
            said = _BEHIND_NO.sub("", flat(message.text), count=1)
            if not (QUESTION.search(said) or _INTENT.match(said)):
                found.append(_Dispute(place, answers, said, is_whole=False))
    return found


def _withdraw(standing: dict[int, _Statement], dispute: _Dispute) -> None:
    """Take back what a person contradicted: what they name of the message they answer, or else all of it.

    Who only says no and how it is instead contradicts what names the same thing, and elsewhere only what they say it is not.
    """
    topic = {*_names_in(dispute.text), *_stems_of(dispute.text)}
    role, what, is_not = _role_of(dispute.text)
    answered = [order for order, each in standing.items() if each.place == dispute.answers != _BEFORE]
    if dispute.is_whole:
        gone = [order for order in answered if standing[order].topic & topic] or answered
    else:
        gone = [order for order in answered if role and standing[order].role == role]
    for order, each in standing.items():
        is_named = is_not and what and what <= {part.lower() for part in _PART.findall(each.text)}
        if order not in gone and each.place < dispute.place and role and each.role == role and is_named:
            gone.append(order)
    for order in gone:
        del standing[order]
