"""What was said before on the same matter, where it is not sure whether it still holds. Pure.

`changes` finds what a sentence changes for sure. Here a weaker sign is enough: later words share rare words with an earlier
entry, and have another value or a word of change. Both are then shown in one entry, the later words first, so a reader sees
what came last, and nothing is lost where both hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from compact.summaries.ledger.changes import Standing
from compact.summaries.ledger.entry import Entry
from compact.summaries.ledger.forms import form, word_count
from compact.summaries.ledger.phrases import AGAIN, PERMITS, REQUESTS, WITHDRAWS, is_english
from compact.summaries.ledger.sentences import sentences
from compact.summaries.ledger.subjects import differ_in_value, surely_differ_in_subject
from compact.summaries.ledger.topics import GENERAL_WEIGHT, Topic, content, is_general, stem, topic, weight
from compact.summaries.ledger.vocabulary import FUNCTION_WORDS

_LEAST = 1.6
"""The score from which on two texts may speak of the same matter: a rare word, and news or another value."""
_SURE = 2.0
"""The score from which on they do, so that what was shown with the earlier one goes, too."""
_LEAST_OF_REQUEST = 2.7
"""That of work to be done now, which speaks of many things in passing."""
_RARE, _RATHER_RARE, _COMMON = 1.0, 0.6, 0.3
"""What a shared word counts that no other entry has, one other has, and several have."""
_EVERYDAY_COUNTS = 0.5
"""What a word counts that goes with many things, where a change is said besides."""
_NAME, _SAME_CHOICE, _OTHER_VALUE = 0.7, 0.6, 1.1
_OLD_NUMBER = 1.6
"""What a number counts that both have, where the later text has another one besides: "64 is too much, 32"."""
_CONDITION = re.compile(
    r"^ (?:if|when|whenever|before|after|once|unless|until|wenn|bevor|si|quand|avant|cuando|antes|se|quando|prima|als|jeśli|если|когда) "
)
"""A rule for some case is another one than the rule for all."""
_MOST = 0.4
"""The part of an earlier text's words that says what it is about."""
_TIMES = 10
"""How many times as large as the old one a new number may be whose unit is not said."""
_LEAST_WORDS, _MOST_WORDS = 3, 45
"""Words of a text that speaks of an earlier one again. A longer one speaks of many things."""
_SAYS_SOMETHING = 2
"""The weight of an earlier text that says something of what it is about."""
_CUE, _MAY = 1.0, 0.75
"""What a word of change counts, and a permission: what is allowed may be something else than what was forbidden."""
_LEAST_SHARE, _LEAST_SHARE_TURNED = 0.3, 0.15
"""The part of the shorter text's words that both have, without and with words of change."""
_PARALLEL = 0.6
_BARE_ORDER = 4
"""Words of an order that has nothing but its verb and one thing."""
_SAYS_ITSELF = 5
"""Words of an answer that says itself what it is about."""
_EVERYDAY = frozenset(
    map(
        stem,
        [
            "max",
            "maximum",
            "minimum",
            "limit",
            "least",
            "most",
            "leave",
            "keep",
            "push",
            "commit",
            "merge",
            "deploy",
            "post",
            "send",
            "mail",
            "ship",
            "buy",
            "pay",
            "sign",
            "order",
            "ask",
            "call",
            "tell",
            "wait",
            "kb",
            "mb",
            "gb",
            "tb",
            "ms",
            "px",
            "min",
            "minutes",
            "hours",
            "seconds",
            "weeks",
            "months",
            "years",
            "euros",
            "dollars",
            "pounds",
            "percent",
            "words",
            "lines",
            "number",
            "id",
            "user",
            "figure",
            "item",
            "name",
            "day",
            "time",
            "address",
            "version",
            "page",
            "link",
            "file",
            "list",
            "read",
            "write",
            "arrive",
            "type",
            "store",
        ],
    )
)
"""Verbs, units and nouns that go with many things."""
_TITLES = frozenset(
    map(
        stem,
        [
            "mr",
            "mrs",
            "ms",
            "miss",
            "dr",
            "prof",
            "sir",
            "madam",
            "herr",
            "frau",
            "mme",
            "monsieur",
            "madame",
            "señor",
            "señora",
            "signora",
            "signor",
        ],
    )
)
_MEASURES = frozenset(
    map(
        stem,
        ["kb", "mb", "gb", "tb", "ms", "seconds", "minutes", "hours", "days", "weeks", "months", "years"],
    )
)
"""Units of which one takes another's place: "90 minutes", "two hours"."""
_TURNS = re.compile(
    r" (?:(?:has|have|is|are|was|were|'s|got|been) (?:finished|done|over|gone|left|back|ready|ended|closed|open|completed?|fixed|resolved|retired|decommissioned|expired|history|moot|settled|off)"
    r"|finished|no need|needn't|leave out|enough|(?:wants?|needs?) (?:more|less|fewer)|as of|from (?:this|that|here|monday|tuesday|wednesday|thursday|friday|saturday|sunday|next|tomorrow|today)|this week|next week|moves?|moved|shrank|shrunk|grew|(?:went|gone|go|goes) (?:up|down)|(?:down|up) to"
    r"|(?:was|is|are|were|am|'m|'re) (?:here|back)|yours to|(?:is|are) yours|(?:pulled|brought|moved|pushed|put) (?:forward|back|up|out|off)|postponed|delayed|rescheduled|slid|slipped|falls? away|fell away|in (?:his|her|their|its) place|takes over|taken over|took over|replaces?|replaced|(?:isn't|aren't|is not|are not|not) (?:necessary|needed|required)|no (?:\S+ ){1,3}needed|(?:is|are) (?:public|out|official|approved|built in|automatic|pointless|useless)|stop it|off please|history|lifted|dropped|scrapped|abandoned|abolished|waived|relaxed|tightened|raises?|bumps?|bumping|cuts?|lowers?|extends?|finally|for the time being|for now|meanwhile|in the meantime|whenever (?:you|they|we|it) (?:like|likes|want|please|suits)|whenever [.!,;]|whenever$|any ?time|any (?:day|hour|amount|number|size)|as (?:you|often as|much as|many as) (?:you )?(?:like|please|want)|(?:turns|turned) out|came back|not (?:any|a) longer|doesn't matter|don't bother|never mind|after all|either way|whatever|open to|free to|allowed|optional) "
)

_MOVED = re.compile(
    r" (?:(?:pulled|brought|moved|pushed|put|shifted) (?:(?:it|that|this|them) )?(?:forward|back|up|out|off|to)|postponed|delayed|rescheduled|make (?:it|that)|(?:want|wants|need|needs) it|verschoben|vorgezogen|reporté|avancé|aplazado|adelantado|spostato|rinviato|adiado|antecipado) "
)
"""What a text says of something that it does not name again: "they moved it to Wednesday"."""
_TIMES_OF = frozenset(("weekday", "month", "hour"))
_YEAR = re.compile(r"(?:19|20)\d\d")
_TURNS_ELSEWHERE = re.compile(
    r" (?:(?:ist|sind|wurde|wurden) (?:\S+ ){0,3}?(?:fertig|durch|vorbei|weg|zurück|informiert|abgeschlossen|beendet|erledigt|verlegt|aufgehoben|offen|frei)|verlegt|rückt|zieht um|angehoben|dürfen?|dürft|könnt|kannst|ab (?:montag|dienstag|mittwoch|donnerstag|freitag|januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|morgen|heute)"
    r"|(?:a|ont|est|sont|a été|ont été) (?:\S+ ){0,2}?(?:fini|terminée?s?|changée?s?|reportée?s?|déplacée?s?|avancée?s?|décalée?s?|levée?s?|rendue?s?|partie?s?|validée?s?|publiée?s?)|se fera|passe au|passe à|décalée?|reportée?|on peut"
    r"|(?:ha|han|ya) (?:\S+ )?(?:cambiado|subido|bajado|terminado|acabado|pasado|movido|aplazado|aprobado|salido|firmado)|terminó|acabó|se jubiló|se fue|cambió|se movió|se aplazó|subió|bajó|ya (?:está|puedes|se puede)"
    r"|(?:ha|è|hanno|sono) (?:\S+ ){0,2}?(?:finit[oaie]|terminat[oaie]|cambiat[oaie]|spostat[oaie]|rinviat[oaie]|anticipat[oaie]|aumentat[oaie]|ripensato|conclus[oaie]|approvat[oaie])|slitta|passa al|passa alle"
    r"|passou|mudou|terminou|acabou|adiada|adiado|antecipad[oa]|subiu|aumentou|saiu|já (?:pode|está|terminou)|pode mexer"
    r"|verhuist|verplaatst|verzet|verschoven|klaar|afgerond|voorbij|afgelopen|is over|wordt voortaan|gaat naar"
    r"|przenie\S+|przesun\S+|przełoż\S+|skończ\S+|zakończ\S+|zmieni\S+|będzie|podniesion\S+|odwołan\S+"
    r"|перен\S+|сдвину\S+|законч\S+|заверш\S+|измени\S+|повыс\S+|подня\S+|отмен\S+|сняли|готов[аоы]?"
    r"|bitti|tamamlandı|\S*(?:ertelendi|alındı|aldık|taşındı|değişti|kaldırıldı|serbest)"
    r"|تأجل\S*|تغير\S*|انته\S*|نقل\S*|ارتفع\S*|أصبح\S*|صار\S*|सरक\S*|टल\S*|होगी|होगा|खत्म|पूरा|बढ़\S*) "
    r"|改到|改在|推迟|推遲|提前|搬到|挪到|结束|結束|完成了|定了|好了|变成|變成|提高到|可以.{0,6}了|早ま|延期|終わ|移[しりっる]|繰り上|に(?:なりました|なった)|미뤄|미루|연기|앞당|옮[겨기]|끝[났나]|늘[었어]|줄[었어]|풀[렸려]"
)
"""The same in other languages: what was moved, finished, raised or opened."""
_NEWS = re.compile(
    r" (?:has|have|'s|i've|we've|they've|had|got|gets|was|were|been) (?:\S+ )?(?!need|want|suppos|interest|call|nam)[a-z]+(?:ed|wn|ept|eft) | (?:this morning|yesterday|last night|today|at noon|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)[ ]"
    r"| \S+'s (?:back|in|out|on|off|better|done|over|gone|here|signed|happy|fine|ok|okay|ready|open|free) |(?:the|our|a|an|their|my) new |, so (?!that)| (?:then|it is) [.!]? ?$|^ \S+ (?:reopened|moved|swapped|signed|approved|cleared|agreed|dropped|opened|closed|changed|switched|slid|landed|went|came|left|found) "
)
"""News, or what follows from it."""
_NEWS_COUNTS = 0.6
_NOW, _NOW_COUNTS = re.compile(r" (?:now|actually) "), 0.99
"""What is so now may be so beside a ban."""
_UPDATE = re.compile(r" update (?=(?:the|a|an|every|each|all|it|my|our|your|its) )")
"""Work, not news."""


def has_turn(lowered: str) -> bool:
    """Whether a form has words by which something changes, ends or is allowed."""
    return _turn(lowered) > 0


def earlier_than(new: Entry, standing: Standing) -> Entry | None:
    """The entry that this one speaks of again; None if there is none. Of those that are equally near, the newest.

    What a host pinned, work that was to be done, a short answer, and what the same message says is none.
    """
    said = _Said.of(new.text)
    near = [
        old for old in standing.about([said.topic]) if old.id not in standing.work and _may_be_meant(old, new)
    ]
    have: Counter[str] = Counter()
    for old in near:
        have.update(said.topic.words & standing.topics[old.id][0].words)

    def rarity(word: str) -> float:
        return _RARE if have[word] <= 1 else _RATHER_RARE if have[word] == 2 else _COMMON

    best, found = 0.0, None
    for old in near:
        score = said.score(old.text, rarity, is_mixed=(old.kind == "fact") != (new.kind == "fact"))
        if score and score >= best:
            best, found = score, old
    return found


def part_that_is_meant(old: str, new: str) -> tuple[str, str]:
    """The sentences of an earlier entry of which a text speaks again, and the others."""
    said = _Said.of(new)
    parts = [one.text for one in sentences(old)]
    meant = [said.score(part, _alone) > 0 for part in parts]
    if not any(meant) or all(meant):
        return old, ""
    both = list(zip(parts, meant, strict=True))
    return " ".join(part for part, is_it in both if is_it), " ".join(
        part for part, is_it in both if not is_it
    )


def nearness(new: str, old: str) -> float:
    """How sure it is that a text speaks again of what an earlier one says; 0 if that is not likely."""
    return _Said.of(new).score(old, _alone)


def says_only_a_value(new: str, old: str) -> bool:
    """Whether a text has another number than an earlier one and names nothing of what that is about: "150 words is fine too"."""
    about, held = topic(new), topic(old)
    return (
        not (about.words & held.words) - _EVERYDAY
        and not about.names & held.names
        and _has_other_number(new, old)
    )


def is_about(new: str, old: str) -> bool:
    """Whether a text surely speaks again of what an earlier one says."""
    return nearness(new, old) >= _SURE


def _alone(_word: str) -> float:
    return _RARE


def _may_be_meant(old: Entry, new: Entry) -> bool:
    return (
        old.source == "user"
        and old.said_in != new.said_in
        and (old.answers is None or word_count(old.text) >= _SAYS_ITSELF)
    )


def _turn(lowered: str) -> float:
    """How much a form says that something changes."""
    lowered = _UPDATE.sub(" ", lowered)
    if _NOW.search(lowered) and not AGAIN.found(without := _NOW.sub(" ", lowered)):
        return max(_NOW_COUNTS, _turn(without))
    if AGAIN.found(lowered) or WITHDRAWS.found(lowered) or _TURNS.search(lowered):
        return _CUE
    if PERMITS.found(lowered) or (not is_english(lowered) and _TURNS_ELSEWHERE.search(lowered)):
        return _MAY
    return _NEWS_COUNTS if _NEWS.search(lowered) else 0.0


@dataclass(frozen=True, slots=True)
class _Said:
    """Later words, read once for all that they are compared with."""

    text: str
    topic: Topic
    turn: float
    least: float
    may_speak_again: bool
    """It is neither too short nor too long to speak of one thing again."""
    withdraws: bool

    @classmethod
    def of(cls, text: str) -> _Said:
        lowered = form(text)
        least = _LEAST_OF_REQUEST if REQUESTS.found(lowered) else _LEAST
        may_speak_again = _LEAST_WORDS <= word_count(text) <= _MOST_WORDS
        withdraws = WITHDRAWS.found(lowered)
        return cls(
            text,
            topic(text),
            _turn(lowered),
            _LEAST if withdraws else least,
            may_speak_again,
            withdraws,
        )

    def score(self, old: str, rarity: Callable[[str], float], *, is_mixed: bool = False) -> float:
        """How sure it is that both speak of the same matter; 0 if that is not likely. `rarity` is what a shared word counts.

        `is_mixed`: one tells a fact and the other one gives a rule, which may both hold as long as nothing is said to change.
        """
        new, held = self.topic, topic(old)
        # A permission turns what was forbidden or bounded.
        is_open = not (held.forbids or held.restricts or held.values)
        turn = 0.0 if is_open and new.permits and self.turn == _MAY else self.turn
        shared = (new.words & held.words) - _TITLES
        same = {kind for kind, _ in new.choices & held.choices}
        names = len(new.names & held.names)
        old_numbers = [one for one in new.numbers & held.numbers if len(one) > 1 and not _YEAR.fullmatch(one)]
        names_old = bool(old_numbers and new.numbers - held.numbers)
        kinds = new.kinds & held.kinds
        points = bool((kinds - same) & _TIMES_OF) and _MOVED.search(form(self.text)) is not None
        if _leave_one_open(new, held, self.text, old):
            return _LEAST
        if not (self.may_speak_again and (shared or same or names or names_old or points)):
            return 0.0
        rare = [word for word in shared if word not in _EVERYDAY and not is_general(word)]
        other_number = _has_other_number(self.text, old)
        score = _NAME * names + _SAME_CHOICE * len(same) + _OLD_NUMBER * names_old
        for word in sorted(shared):
            counts = word in rare or (turn > 0 and word in _EVERYDAY)
            rare_by = min(rarity(word), _EVERYDAY_COUNTS) if word in _EVERYDAY else rarity(word)
            score += (GENERAL_WEIGHT if is_general(word) else 1) * (rare_by if counts else _COMMON)
        least_share = _LEAST_SHARE_TURNED if turn or other_number else _LEAST_SHARE
        if not points and score < max(_COMMON, least_share * min(new.weight, held.weight)):
            return 0.0
        if turn or rare or points:
            score += _OTHER_VALUE * (other_number + len(kinds - same))
        # What is said in a few words is spoken of again where its rare word is.
        is_most = (
            held.weight >= _SAYS_SOMETHING
            and bool(rare)
            and not _CONDITION.match(form(self.text))
            and len(rare) >= _MOST * held.weight
        )
        score += max(turn, _NEWS_COUNTS * is_most)
        is_work = self.least > _SURE and not (turn or other_number or kinds - same)
        may_stand = held.forbids and turn == _NOW_COUNTS and not other_number
        is_news = turn or other_number or names_old or kinds - same
        both_hold = is_mixed and not (is_news or _says_most(new, held))
        if score < self.least or is_work or may_stand or both_hold:
            return 0.0
        only = rare[0] if len(rare) == 1 and not (same or names or other_number) else ""
        says_all = held.words <= new.words
        is_sure = turn >= _CUE
        if only and not self.withdraws and _is_other_thing(only, self.text, old, is_sure=is_sure):
            return 0.0
        if turn <= _NEWS_COUNTS and _are_of_two_things(self.text, old, says_all=says_all):
            return 0.0
        return 0.0 if not (turn or says_all) and _are_parallel(self.text, old) else score


def _says_most(new: Topic, held: Topic) -> bool:
    """Whether later words name most of what the earlier ones are about, or nothing else: "I'm back, migrate"."""
    shared = weight(new.words & held.words)
    return shared > held.weight / 2 or (shared == new.weight and not new.values)


def _leave_one_open(new: Topic, held: Topic, text: str, old: str) -> bool:
    """Whether two orders with the same verb name two things, and one of them the only one: "use staging only", "use prod"."""
    if (
        not (held.restricts or new.restricts)
        or new.forbids
        or held.forbids
        or max(word_count(text), word_count(old)) > _BARE_ORDER
    ):
        return False
    verb, verb_before = (next(iter(form(each).split()), "") for each in (text, old))
    return verb == verb_before and topic(verb).weight > 0 and new.words != held.words


def _has_other_number(new: str, old: str) -> bool:
    """Whether each has a number that the other one does not, of what may be the same unit."""
    first, second = _units(new), _units(old)
    if not (first and second):
        return False
    return any(
        unit == before != ""
        or {unit, before} <= _MEASURES
        or (not (unit and before) and _are_alike(number, old_number))
        for number, unit in first.items()
        if number not in second
        for old_number, before in second.items()
        if old_number not in first
    )


def _are_alike(one: str, other: str) -> bool:
    """Whether two numbers are so near that one may take the other's place. What is no plain number may."""
    try:
        small, large = sorted((float(one), float(other)))
    except ValueError:
        return True
    return large <= _TIMES * small


@lru_cache(maxsize=4_096)
def _units(text: str) -> dict[str, str]:
    """The numbers of a text with the stem of the word behind each, empty if that says nothing."""
    tokens = form(text).split()
    found: dict[str, str] = {}
    for token, behind in zip(tokens, [*tokens[1:], ""], strict=True):
        about = content(token)
        for number in about.numbers:
            own = min(about.words, default="") or (
                number if not number.isdecimal() and number[:1].isdecimal() and number[-1:].isalpha() else ""
            )
            found[number] = own or (stem(behind) if behind.isalpha() and behind not in FUNCTION_WORDS else "")
    return found


def _is_other_thing(word: str, new: str, old: str, *, is_sure: bool) -> bool:
    """Whether the only word that both share names another thing in each: "coastal villages", "mountain villages".

    `is_sure`: something is said to change, so what is said of the thing may be another.
    """
    left, right = _beside(word, new)
    left_before, right_before = _beside(word, old)
    return (bool(left and left_before) and left != left_before) or (
        bool(right and right_before) and right != right_before and not is_sure
    )


def _beside(word: str, text: str) -> tuple[str, str]:
    """The stems of what stands directly before and behind a word, if they say something."""
    tokens = form(text).split()
    stems = [stem(token) if token not in FUNCTION_WORDS and token.isalpha() else "" for token in tokens]
    if word not in stems:
        return "", ""
    place = stems.index(word)
    return stems[place - 1] if place else "", stems[place + 1] if place + 1 < len(stems) else ""


def _are_of_two_things(new: str, old: str, *, says_all: bool) -> bool:
    """Whether both say the same of two things. `says_all`: the later one has all the words of the other."""
    return surely_differ_in_subject(new, old) and (says_all or differ_in_value(new, old))


def _are_parallel(new: str, old: str) -> bool:
    """Whether both say the same of two things: "the limit for images is 2 MB", "the limit for uploads is 10 MB"."""
    first, second = (
        [token for token in form(text).split() if not any(map(str.isdigit, token))] for text in (new, old)
    )
    return SequenceMatcher(a=first, b=second, autojunk=False).ratio() >= _PARALLEL
