"""Which earlier entry a sentence changes. Pure.

Precision first: an entry that stands although it was changed is an error, and one that is replaced although it stands is a
worse one. So a change needs the same topic, and either another value, the opposite polarity, or a word that names the old.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from compact.summaries.ledger.entry import Entry
from compact.summaries.ledger.forms import form, word_count
from compact.summaries.ledger.phrases import AGAIN, CORRECTS, REQUESTS
from compact.summaries.ledger.subjects import differ_in_subject, differ_in_value
from compact.summaries.ledger.topics import Topic, overlap, specific, stem, topic, weight

_CLAUSE = re.compile(
    r"\s*(?:[,;:—–.!?،؛]|\s-)\s+|[，；：、。！？]|\s+(?:and|but|so|und|aber|et|mais|y|pero|mas|maar|ale|и|а|но|ve|ama|और|लेकिन)\s+",
    re.IGNORECASE,
)
_OLD_NAMED = re.compile(
    r"(?:\binstead of|\brather than|\bno longer|\bfrom|,\s*(?:and )?not|\bnot|\b(?:an)?statt(?: von)?|\bnicht mehr|,\s*nicht|\bau lieu d(?:e |')|\bplutôt que|,\s*(?:et )?(?:non |pas )|\ben (?:vez|lugar) de|,\s*no\b|\binvece d(?:i |el |ella )|,\s*non\b|\bem vez d[eoa]|\bao invés d[eoa]|,\s*não\b|\bin plaats van"
    r"|\bforget(?: about)? what (?:i|we) (?:said|told you|wrote) (?:about|on)|\b(?:vergiss|vergesst),? was (?:ich|wir) (?:zu|über|von)|\boublie(?:z)? ce que j'ai dit (?:de|sur)|\bolvida lo que dije (?:de|sobre)|\bdimentica quello che ho detto (?:di|su)|\besquece o que (?:eu )?disse (?:do|da|de|sobre)|\bvergeet wat ik (?:over|van)|\btoch geen"
    r"|,\s*niet\b|\bzamiast|,\s*(?:a )?nie\b|\bвместо|,\s*(?:а )?не\b|بدلا من|بدلاً من|عوضا عن|،?\s*وليس|而不是|，不是|不是)\s*(?P<old>[^,.;!?，。]{1,60})|(?P<old_before>[^\s,.，。、]{1,20})(?:\s(?:yerine|के बजाय|की जगह)|\s?(?:の代わりに|ではなく|じゃなくて|대신|말고|(?:이|가)\s?아니라))",
    re.IGNORECASE,
)
_RESTORES = re.compile(
    r" (?:again|after all|back on|wieder|doch|de nouveau|à nouveau|otra vez|de nuevo|di nuovo|de novo|novamente|weer|znowu|znów|снова|опять|yine|tekrar|फिर से) |又可以|再び|다시"
)
_FROM_TO = re.compile(r"\bfrom\s+(?P<old>\S{1,40}(?: \S{1,20}){0,2}?)\s+to\b", re.IGNORECASE)
_LEAST = 0.7
"""The score from which on an entry counts as changed."""
_CANDIDATES = 24
"""The newest entries of a stem that are compared, so that time does not grow with the square of the entries."""
_SAME = 0.8


@dataclass(slots=True)
class Standing:
    """The entries that stand, found by what they are about."""

    places: dict[str, int] = field(default_factory=dict)
    by_stem: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    entries: dict[str, Entry] = field(default_factory=dict)
    topics: dict[str, tuple[Topic, ...]] = field(default_factory=dict)
    """What each entry is about, and what its clauses are."""
    work: set[str] = field(default_factory=set)
    """Those that say what was to be done, and nothing that lasts."""

    def add(self, entry: Entry) -> None:
        """Remember an entry that stands."""
        place = self.places.setdefault(entry.id, len(self.places))
        self.entries[entry.id] = entry
        self.topics[entry.id] = _topics(entry.text)
        if is_work(entry):
            self.work.add(entry.id)
        for key in _keys(self.topics[entry.id][0]):
            held = self.by_stem[key]
            if place == len(self.places) - 1:
                held.append(entry.id)
            elif entry.id not in held:
                # It stands again, where it stood.
                insort(held, entry.id, key=self.places.__getitem__)

    def remove(self, entry: Entry) -> None:
        """Forget an entry that stands no more."""
        self.entries.pop(entry.id, None)
        self.topics.pop(entry.id, None)

    def about(self, about: Iterable[Topic]) -> list[Entry]:
        """The newest entries that share a word, a name or a set of alternatives with one of these topics."""
        found: dict[str, None] = {}
        for one in about:
            for key in sorted(_keys(one)):
                found.update(dict.fromkeys(self._newest(key)))
        return [self.entries[name] for name in sorted(found, key=lambda name: self.places[name])]

    def _newest(self, key: str) -> list[str]:
        """The newest entries with this key. Those that stand no more are taken out once, when they are met."""
        held = self.by_stem.get(key, [])
        newest: list[str] = []
        while held and len(newest) < _CANDIDATES:
            name = held.pop()
            if name in self.entries:
                newest.append(name)
        held += reversed(newest)
        return newest


def _keys(about: Topic) -> Iterator[str]:
    yield from about.words
    yield from (f"#{number}" for number in about.numbers)
    yield from (f"={name}" for name in about.names)
    yield from (f"~{kind}" for kind, _ in about.choices)


def changed_by(new: Entry, standing: Standing, *, corrects: bool = False) -> list[Entry]:
    """The entries that this one replaces, oldest first: those of the best score, and all whose words it repeats."""
    if is_work(new):
        return []
    change = _Change.of(new, corrects=corrects)
    scored: list[tuple[float, Entry]] = []
    for old in standing.about(change.topics):
        if old.id == new.id or old.id in standing.work or not _may_change(new, old):
            continue
        if old.answers != new.answers and not change.has_cue:
            # "Yes" to one question changes no "yes" to another.
            continue
        score = change.score(old, standing.topics[old.id])
        if score >= _LEAST and not change.is_of_another_thing(old):
            scored.append((score, old))
    if not scored:
        return []
    best = max(score for score, _ in scored)
    newest = [old for score, old in scored if score == best][-1]
    return [
        old
        for score, old in scored
        if old is newest or score >= 1 or _is_same(standing.topics[old.id][0], standing.topics[newest.id][0])
    ]


def changes(new: Entry, old: Entry) -> bool:
    """Whether an entry surely changes another one, whether that one stands or not."""
    standing = Standing()
    standing.add(old)
    return bool(changed_by(new, standing))


@dataclass(frozen=True, slots=True)
class _Change:
    """Words that may change earlier ones, read once for all that they are compared with."""

    kind: str
    said: str
    """The words without a clause that only says that something changes: "I changed my mind"."""
    topics: tuple[Topic, ...]
    """Of the whole and of its clauses."""
    has_cue: bool
    attribute: tuple[Topic, Topic] | None
    """The name and the value in "my address is ..."."""
    named: tuple[tuple[Topic, Topic], ...]
    """What it names as no longer right, each with what it says besides."""
    corrects: bool
    ends: frozenset[str]
    """What it wants no more of, said as a noun of a verb: "logging" in "kill the query logging"."""
    restores: bool
    """It says that something is again as it was before."""

    @classmethod
    def of(cls, new: Entry, *, corrects: bool) -> _Change:
        lowered = form(new.text)
        is_correction = CORRECTS.found(lowered)
        ended = ENDS.search(lowered)
        ends = frozenset(map(stem, _GERUND.findall(ended["what"]))) if ended else frozenset[str]()
        return cls(
            kind=new.kind,
            said=_without_cue(new.text),
            topics=(topic(new.text), *map(topic, clauses(new.text))),
            has_cue=AGAIN.found(lowered) or new.kind == "correction" or corrects or bool(ends),
            attribute=_attribute(new.text),
            named=tuple(_named(new.text)),
            corrects=is_correction,
            ends=ends,
            restores=_RESTORES.search(lowered) is not None,
        )

    def score(self, old: Entry, held: tuple[Topic, ...]) -> float:
        """How sure it is that it changes this entry, between 0 and 1."""
        is_fact = old.kind == "fact" or (self.kind == "fact" and not self.restores)
        if self.ends and old.kind != "fact" and _begins_with(old.text, self.ends):
            shared = weight(self.topics[0].words & held[0].words)
            if shared >= _ENDED_SHARES and not held[0].forbids:
                return 0.9
        return max(
            _attribute_score(self.attribute, _attribute(old.text) if self.attribute else None, self.has_cue),
            max((_named_score(*named, held[0], corrects=self.corrects) for named in self.named), default=0.0),
            *(
                _score(new, part, shared, self.has_cue, is_fact=is_fact)
                for new, part, shared in self._compared(held)
            ),
        )

    def is_of_another_thing(self, old: Entry) -> bool:
        """Whether both say the same of two things. A word of change may put one thing in the place of the other, but says it of one value."""
        if self.named or self.topics[0].forbids != topic(old.text).forbids:
            return False
        if self.attribute and _attribute_score(self.attribute, _attribute(old.text), self.has_cue):
            return False
        return differ_in_subject(self.said, old.text) and (
            not self.has_cue or differ_in_value(self.said, old.text)
        )

    def _is_about(self, held: Topic) -> bool:
        """Whether the words beside a bare value are about the same, or about nothing: "no wait, Friday"."""
        besides = specific(self.topics[0])
        return not besides or not besides.isdisjoint(held.words)

    def _compared(self, held: tuple[Topic, ...]) -> Iterator[tuple[Topic, Topic, float]]:
        """The pairs that may speak of the same, with what they share.

        Two clauses that share a single word do not, unless a change is said.
        """
        for place, new in enumerate(self.topics):
            for number, part in enumerate(held):
                if not _may_score(new, part):
                    continue
                shared = weight(new.words & part.words)
                if new.choices and part.choices:
                    shared += len(new.choices & part.choices)
                is_bare = place and not new.words and new.values.isdisjoint(part.values)
                if is_bare and not self._is_about(held[0]):
                    continue
                if not (place and number) or self.has_cue or shared >= _CLAUSES_SHARE:
                    yield new, part, shared


ENDS = re.compile(
    r"^ (?:[a-z']{1,9} ,? ?){0,3}?(?:kill|ditch|axe|dump|nix|lose|drop|cut|end|stop|remove|disable|scrap|turn off|switch off|get rid of|do away with|enough of|no more of) (?:all |that |this |the |those |your )+(?P<what>(?:\S+ ){0,3}?\S+ing) "
)
"""Words that want no more of something that goes on: "kill the query logging"."""
_GERUND = re.compile(r"[a-z]{2,}ing(?![a-z])")
_ENDED_SHARES = 2


def _begins_with(text: str, stems: frozenset[str]) -> bool:
    """Whether the first word of an order that says something is one of these: "log" in "please log each query"."""
    first = next((word for word in form(text).split() if topic(word).weight), "")
    return stem(first) in stems if first else False


def _topics(text: str) -> tuple[Topic, ...]:
    """The topic of a text, and those of its clauses if it says several things."""
    parts = _parts(text)
    return (topic(text), *(map(topic, parts) if len(parts) > 1 else ()))


_LEAST_REST = 3
"""Words of a clause that says something alone."""


def rest_of(old: str, change: str) -> str:
    """What remains of a sentence with several rules when another one changes or takes back one of them; empty if nothing.

    "[...]" stands where a part is left out.
    """
    parts = _parts(old)
    if len(parts) < 2:
        return ""
    abouts = [topic(part) for part in parts]
    wanted = [topic(change), *map(topic, clauses(change))]
    scores = [max(overlap(one, about) for one in wanted) for about in abouts]
    best = max(scores)
    kept = [part if score < best else "" for part, score in zip(parts, scores, strict=True)]
    stays = [
        about
        for about, part in zip(abouts, kept, strict=True)
        if about.weight + len(about.values) >= 1 and word_count(part) >= _LEAST_REST
    ]
    if not best or len(stays) < 1 or sum(score > 0 for score in scores) > 1:
        return ""
    return _GAPS.sub("[...] ", "".join(part or "[...] " for part in kept)).strip()


_PART_ENDS = re.compile(
    r"(?<=[,;.!?])\s+|(?<=[，；、。！？])|\s+(?=(?:and|und|et|y|e|en|i|и|ve)\s+(?:never|always|no|don't|do|use|keep|run|answer|reply|only|nie|immer|kein\w*|jamais|toujours|nunca|siempre|sempre|mai|nooit|altijd|nigdy|zawsze|никогда|всегда|asla|her)\b)",
    re.IGNORECASE,
)
_GAPS = re.compile(r"(?:\[\.\.\.\] ?){2,}")


def _parts(text: str) -> list[str]:
    """The clauses of a text that say something each, with what parts them."""
    starts = [0, *(gap.end() for gap in _PART_ENDS.finditer(text) if gap.end() < len(text)), len(text)]
    return [text[first:last] for first, last in pairwise(starts) if text[first:last].strip()]


def _may_change(new: Entry, old: Entry) -> bool:
    """Whether words of this kind can change that entry at all. What a host pinned is unpinned by the host."""
    return old.source != "host" and (old.kind != "fact" or new.kind != "preference")


def is_work(entry: Entry) -> bool:
    """Whether an entry says what is to be done now."""
    return entry.kind == "fact" and REQUESTS.found(form(entry.text))


def _without_cue(text: str) -> str:
    parts = clauses(text)
    kept = [part for part in parts if topic(part).values or not AGAIN.found(form(part))]
    return " ".join(kept) if parts and any(topic(part).values for part in kept) else text


def clauses(text: str) -> list[str]:
    """The clauses of a sentence; none if it has only one."""
    parts = [part for part in _CLAUSE.split(text) if part and part.strip()]
    return parts if len(parts) > 1 else []


def _may_score(new: Topic, old: Topic) -> bool:
    """Whether `_score` may be above 0: both have values, one turns the other, or they share words and may be the same."""
    if new.forbids != old.forbids or (new.permits and old.restricts) or (new.values and old.values):
        return True
    return not (new.values or old.values or new.words.isdisjoint(old.words))


def _score(new: Topic, old: Topic, shared: float, has_cue: bool, *, is_fact: bool) -> float:
    """How sure it is that `new` changes `old`, between 0 and 1. `shared` is the weight of what both have."""
    if not (shared or new.choices or old.choices or new.values == old.values):
        return 0.0
    if _is_same(new, old):
        return 1.0 if new.forbids == old.forbids else (0.95 if not is_fact else 0.0)
    flips = new.forbids != old.forbids or (new.permits and old.restricts)
    conflicts = _conflicts(new, old)
    if not (flips or conflicts):
        return 0.0
    of_new = shared / new.weight if new.weight else 0.0
    of_old = shared / old.weight if old.weight else 0.0
    if conflicts:
        return _value_score(new, old, shared, has_cue, of_new=of_new, of_old=of_old)
    if not is_fact and _values_agree(new, old):
        same = len(new.choices & old.choices) + len(new.names & old.names)
        enough = shared >= 1 or same
        if enough and of_new >= 0.75 and (of_old >= 0.5 or ((has_cue or new.permits) and of_old >= 0.2)):
            return 0.7 + 0.2 * of_old
        if new.permits and has_cue and old.forbids and shared >= 1 and of_old >= 0.75:
            return 0.8  # "so you may send them again", with all that the ban names
        if not new.weight and new.permits and has_cue and new.numbers & old.numbers:
            return 0.75
        if same and new.weight < 2 and (has_cue or new.permits or of_old >= 0.5):
            return 0.8
    return 0.0


def _is_same(new: Topic, old: Topic) -> bool:
    """Whether two topics have the same values, and nearly the same words."""
    if new.values != old.values:
        return False
    if not (new.words or old.words):
        return bool(new.values)
    shared = new.words & old.words
    return bool(shared) and weight(shared) / weight(new.words | old.words) >= _SAME


def _values_agree(new: Topic, old: Topic) -> bool:
    """Whether the values of the one do not speak of something else than those of the other."""
    names = not new.names or not old.names or bool(new.names & old.names)
    choices = not (new.choices and old.choices) or bool(new.choices & old.choices)
    numbers = not new.numbers or not old.numbers or bool(new.numbers & old.numbers)
    return names and numbers and choices


def _conflicts(new: Topic, old: Topic) -> bool:
    """Whether both name a value of one sort, and not the same."""
    if not (new.values and old.values):
        return False
    if new.numbers and old.numbers and not new.numbers & old.numbers:
        return True
    if new.names and old.names and not new.names & old.names:
        return True
    return any(not _members(new, kind) & _members(old, kind) for kind in new.kinds & old.kinds)


def _members(of: Topic, kind: str) -> set[str]:
    return {member for name, member in of.choices if name == kind}


def _value_score(
    new: Topic, old: Topic, shared: float, has_cue: bool, *, of_new: float, of_old: float
) -> float:
    """The same attribute with another value."""
    by_choice = any(not _members(new, kind) & _members(old, kind) for kind in new.kinds & old.kinds)
    least = min(new.weight, old.weight)
    if by_choice:
        # The choices that differ are what changes; the rest is the attribute.
        rest_new, rest_old = new.weight - 1, old.weight - 1
        of_new = shared / rest_new if rest_new > 0 else 1.0
        of_old = shared / rest_old if rest_old > 0 else 1.0
    smaller = shared / least if least else 0.0
    if by_choice and has_cue and least > 1 and shared >= 1 and not (new.names or old.names):
        smaller = max(smaller, min(1.0, shared / (least - 1)))
    if new.names and old.names and not new.names & old.names and not by_choice:
        # Several orders or hosts may be named one after another; only a word of change says that one takes the other's place.
        return 0.8 if has_cue and shared >= 1 and of_new >= 0.5 and of_old >= 0.34 else 0.0
    if by_choice and new.forbids != old.forbids:
        # "No spaces" agrees with "use tabs".
        return 0.0
    if by_choice and least < _BARE:
        if specific(new) - old.words:
            return 0.0  # "commits in English" says nothing about "reply in French"
        if specific(old) - new.words:
            return _LEAST if has_cue else 0.0
        return 0.85
    if shared < 1 and not (by_choice and smaller >= 0.5):
        return 0.0
    if has_cue and smaller >= 0.75 and max(of_new, of_old) >= 0.75 and min(of_new, of_old) >= 0.2:
        return 0.75 + 0.2 * min(of_new, of_old)
    if of_new >= 0.75 and of_old >= 0.6:
        return 0.75 + 0.2 * of_old
    if has_cue and by_choice and smaller >= 0.5:
        return 0.72
    return 0.0


_ATTRIBUTE = re.compile(
    r"\b(?:my|our|mein\w?|meine\w?|unser\w?|unsere\w?|mon|ma|notre|mi|nuestr[oa]|(?:il |la )?(?:mio|mia|nostr[oa])|meu|minha|noss[oa]|mijn|on[sz]e?|mój|moja|moje|nasz\w?|мой|моя|моё|наш\w?)\s(?P<name>[^\W\d_][\w'-]*(?:\s[^\W\d_][\w'-]*){0,2}?)\s(?:is|are|ist|lautet|heißt|est|es|è|é|jest|to|—|-|:)\s(?:now\s|jetzt\s|maintenant\s|ahora\s|actually\s)?(?P<value>\S.*)",
    re.IGNORECASE,
)
"""What somebody has one of: "my address is ..."."""

_CALLED = re.compile(
    r"\b(?P<name>call me|nenn(?:t|en Sie)? mich|appelle[sz]?-moi|llám[ae]me|chiamami|me cham[ae]|noem m(?:e|ij)|mów mi|называй(?:те)? меня)\s(?P<value>\S.*)",
    re.IGNORECASE,
)
"""By which name somebody wants to be called."""


@lru_cache(maxsize=4_096)
def _attribute(text: str) -> tuple[Topic, Topic] | None:
    found = _ATTRIBUTE.search(text) or _CALLED.search(text)
    return None if found is None else (topic(found["name"]), topic(found["value"]))


def _attribute_score(
    now: tuple[Topic, Topic] | None, before: tuple[Topic, Topic] | None, has_cue: bool
) -> float:
    """The same thing of theirs with another value. Of things with identifiers people may have several."""
    if now is None or before is None or not now[0].words or now[0].words != before[0].words:
        return 0.0
    if now[1] == before[1]:
        return 0.0
    return 0.8 if has_cue or not (now[1].names or before[1].names) else 0.0


_BARE = 2
"""The weight of a topic that has nothing but a choice and general words."""


def _named(new: str) -> Iterator[tuple[Topic, Topic]]:
    """What words name as no longer right: "instead of X", "not X"; each with what they say besides."""
    for found in (*_FROM_TO.finditer(new), *_OLD_NAMED.finditer(new)):
        groups = found.groupdict()
        words = groups["old"] or groups.get("old_before") or ""
        rest = new[: found.start()] + new[found.end() :]
        # Without a comma, what takes its place follows at once: "em vez do MySQL vamos usar Postgres".
        first, _, behind = words.strip().partition(" ")
        named = topic(words)
        if named.values or named.weight >= 1:
            yield named, topic(rest)
        if behind and named.values and topic(first).values:
            yield topic(first), topic(f"{rest} {behind}")


def _named_score(named: Topic, rest: Topic, held: Topic, *, corrects: bool) -> float:
    """Whether what is named as no longer right is what an entry says."""
    wanted = named.values
    if not wanted <= held.values or not named.words <= held.words or held.forbids:
        return 0.0
    # What the new sentence wants must not be what the old one said already.
    others = (rest.words - named.words) & held.words
    only = not (held.words - named.words) or held.weight - named.weight < 1
    if wanted or corrects:
        # "What I said about MySQL, we take Postgres": another one of the same set takes its place.
        swaps = bool(named.kinds & rest.kinds)
        return 0.9 if others or only or swaps or not rest.words else 0.0
    says_same = weight(others) >= 1
    is_large = named.weight >= 1 and named.weight / max(held.weight, 1) >= _NAMED_SHARE
    return 0.8 if says_same or only or is_large else 0.0


_CLAUSES_SHARE = 2
_NAMED_SHARE = 0.3
