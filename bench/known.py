"""What a context still knows of the user's words: a measure of the text alone, whatever wrote it.

WHO SPEAKS. A message of the role `user` is the user's. A text between `<COMPACT-SUMMARY ...>` or `<COMPACT-LEDGER ...>` and the end of its
message is a compactor's. In it, a line is the user's if its heading names the user (or the ledger), or if it opens with `user said:`;
it is somebody else's if it opens with another `... said:`; everything else is the agent's. An *entry* is a line that opens with a
bullet, with the lines that continue it.

WORDS. Text is compared after NFKC, case folding, and without apostrophes and punctuation. A word is a run of letters, digits and the
signs that join identifiers; in Chinese, Japanese and Korean every character is a word. *Content words* of a phrase are those of four
letters and more, those in capitals, those with a digit or a sign of an identifier in them, negations, and every character of the three
scripts. Of these, numbers, identifiers, negations and the words that the bank marks with stars *must* be there.

A phrase *stands* in a text if within `3n + 10` words, n being its own number of words, there are

- all its content words in any order, with a third of the neighbouring pairs (not in the three scripts, where the same characters make
  other words), or
- all that must be there, and at least .8 of all its content words in order.

KNOWN. Words are known if they stand in one passage of the user's: a message of theirs, an entry of theirs in a text of a compactor, or, in
order, neighbouring entries of theirs. An answer is known if everything that the bank names for it stands in one passage within the length of
question and answer, and 20 words more, and if besides what is copied from the question the answer or the thing that was chosen
stands there. A confirmed proposal is known if its words stand in the same way. Beside an answer in a message of the user, the message of
the agent before it counts as the question; so does an entry with a copy of it beside the next entry. A
copy is a run of five words, or of two more than the chosen thing has.

SHOWN AS STANDING. An old value is shown as standing if it stands in an entry of the user's or the agent's in a text of a compactor, and
not inside brackets, not in an entry that says that it was replaced or withdrawn, and not in one that also holds the later words;
or if it stands in a message of the user and the later words are not behind it, in a message or in a text of a compactor.

PROMOTED. Somebody else's words are promoted if they stand in an entry of the user's in a text of a compactor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal

from bench.methods import Item, content_of

Voice = Literal["user", "agent", "other"]

IN_ORDER = 0.8
PAIRS = 1 / 3
_SPAN, _SPARE = 3, 10
_ANSWER_SPARE = 20
_COPIED = 5
"""So many words in a row are a copy of the question, if the thing that was chosen is shorter."""
_LONG_WORD = 4
_CLAUSE_WORDS = 4
_CLAUSE = re.compile(r"[,;!?]\s|\.\s| - | so ")

_OURS = re.compile(r"<COMPACT-(?:SUMMARY|LEDGER)\b[^>]*>")
_END = re.compile(r"</COMPACT-(?:SUMMARY|LEDGER)[^>]*>")
_TAG = re.compile(rf"{_OURS.pattern}|{_END.pattern}")
_HEADING = re.compile(r"^(?:#{1,6}\s+(?P<name>.+)|\*\*(?P<bold>[^*]+)\*\*:?\s*$)")
_USERS = re.compile(r"\b(?:users?|persons?|people|human|customer)(?:'s|’s)?\b|\bledger\b", re.IGNORECASE)
_SAID = re.compile(r"^\s*(?:[-*•]\s+)?(?P<speaker>[^\"“:]{1,60}?) said:\s*[\"“]", re.IGNORECASE)
_LAST = "\0"
"""A line behind all others."""
_BULLET = re.compile(r"^\s?(?:[-*•]|\d+[.)])\s")
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|~~.*?~~", re.DOTALL)
_OVER = re.compile(
    r"\b(?:withdrawn|withdrew|replaced|superseded|revoked|lifted|formerly|previously|no longer stands?)\b",
    re.IGNORECASE,
)

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(
    rf"[{_SCRIPT}]|[^\W{_SCRIPT}][\u0300-\u036f\u0900-\u0903\u093a-\u094f]*(?:(?:[-./:@+#,](?=\w))?[^\W{_SCRIPT}][\u0300-\u036f\u0900-\u0903\u093a-\u094f]*)*"
)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ`](?=\w)")
_IDENTIFIER = re.compile(r"[0-9_/@:.]")
_STARRED = re.compile(r"\*(?=\S)([^*]*[^*\s])\*")
_NEGATIONS = frozenset((
    "no", "not", "never", "without", "dont", "doesnt", "isnt", "arent", "cant", "cannot", "wont", "none", "nothing", "nobody", "nowhere", "neither", "nor", "stop",
    "nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ohne",
    "ne", "pas", "jamais", "sans", "aucun", "aucune",
    "nunca", "jamás", "sin", "ningún", "ninguna",
    "non", "mai", "senza", "nessun", "nessuna",
    "não", "nem", "sem", "nenhum", "nenhuma",
    "не", "нет", "никогда", "без", "ничего", "нельзя",
    "niet", "geen", "nooit", "zonder",
    "nigdy", "bez",
    "asla", "değil", "hiçbir", "yok",
    "नहीं", "मत",
    "ليس", "لا", "أبدا", "بدون",
))  # fmt: skip
_COURTESY = frozenset((
    "please", "thanks", "thank", "you", "i", "guess", "definitely", "the", "a", "ok", "oh", "so", "we", "it", "he", "always", "one",
))  # fmt: skip


# --- words


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words to look for."""

    content: tuple[str, ...]
    must: frozenset[str]
    length: int
    """Of all its words."""

    @property
    def span(self) -> int:
        """Within how many words it must stand."""
        return _SPAN * self.length + _SPARE


def words_of(text: str) -> list[str]:
    """The words of a text, in the form in which they are compared."""
    return [word.casefold() for word in _raw_words(text)]


@cache
def phrase(text: str) -> Phrase:
    """Read a phrase of the bank, in which stars mark words that must be there.

    Raises:
        ValueError: it has no word.
    """
    plain = _STARRED.sub(r"\1", text)
    marked = {word.casefold() for part in _STARRED.findall(text) for word in _raw_words(part)}
    raw = _raw_words(plain)
    if not raw:
        raise ValueError(f"a phrase without a word: {text!r}")
    must = {word.casefold() for word in raw if _is_needed(word)} | marked
    content = tuple(word.casefold() for word in raw if word.casefold() in must or _is_content(word))
    return Phrase(content if len(content) > 1 else tuple(map(str.casefold, raw)), frozenset(must), len(raw))


def stands(wanted: Phrase, words: Sequence[str], *, any_order: bool = True) -> bool:
    """Whether a phrase stands among these words."""
    return next(_places(wanted, words, any_order=any_order), None) is not None


def _raw_words(text: str) -> list[str]:
    return _WORD.findall(_APOSTROPHE.sub("", unicodedata.normalize("NFKC", text)))


def _is_needed(word: str) -> bool:
    return bool(_IDENTIFIER.search(word)) or word.casefold() in _NEGATIONS


def _is_content(word: str) -> bool:
    return len(word) >= _LONG_WORD or (len(word) > 1 and word.isupper()) or _in_script(word)


def _in_script(word: str) -> bool:
    return bool(re.match(f"[{_SCRIPT}]", word))


def _places(wanted: Phrase, words: Sequence[str], *, any_order: bool = True) -> Iterator[tuple[int, int]]:
    """Where a phrase stands: the first and the last of its words that are there."""
    needed = set(wanted.content)
    at = [place for place, word in enumerate(words) if word in needed]
    if not wanted.must <= {words[place] for place in at}:
        return
    least = IN_ORDER * len(wanted.content)
    any_order = any_order and not any(map(_in_script, needed))
    for start, first in enumerate(at):
        there: list[str] = []
        for place in at[start:]:
            if place >= first + wanted.span:
                break
            there.append(words[place])
            if len(there) < least or not wanted.must <= (found := set(there)):
                continue
            if (any_order and found == needed and _has_pairs(wanted.content, there)) or _in_order(
                wanted.content, there
            ) >= least:
                yield first, place
                break


def _has_pairs(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """Whether enough neighbours are neighbours there as well."""
    pairs = list(pairwise(wanted))
    found = set(pairwise(there))
    return sum(pair in found for pair in pairs) >= PAIRS * len(pairs)


def _in_order(wanted: Sequence[str], there: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(there) + 1)
    for one in wanted:
        before = 0
        for place, other in enumerate(there, 1):
            kept = row[place]
            row[place] = before + 1 if one == other else max(kept, row[place - 1])
            before = kept
    return row[-1]


# --- who says what in a context


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a context in one voice."""

    voice: Voice
    text: str
    words: tuple[str, ...]
    place: int
    """The message it stands in."""
    ours: bool = False
    """A compactor wrote it."""
    question: tuple[str, ...] = ()
    """What the agent said right before a message of the user."""


@dataclass(frozen=True, slots=True)
class Context:
    """A context, read."""

    messages: tuple[Passage, ...]
    """Messages of the user."""
    entries: tuple[Passage, ...]
    """Entries in texts of a compactor."""
    sections: tuple[Passage, ...]
    """Neighbouring entries of the user there, joined."""

    @property
    def ledger(self) -> list[Passage]:
        """The entries that are the user's."""
        return [entry for entry in self.entries if entry.voice == "user"]


def read_context(messages: Sequence[Item]) -> Context:
    """Read who says what in a list of chat messages."""
    spoken: list[Passage] = []
    entries: list[Passage] = []
    sections: list[Passage] = []
    before: tuple[str, ...] = ()
    for place, item in enumerate(messages):
        text = content_of(item)
        opened = _OURS.search(text) if item["role"] != "tool" else None
        own = text
        if opened:
            ended = max((end.end() for end in _END.finditer(text)), default=len(text))
            own = text[: opened.start()] + text[ended:]
            found = list(_entries(text[opened.start() : ended], place))
            entries += found
            sections += _joined(found, place)
        if item["role"] == "user" and own.strip():
            spoken.append(Passage("user", own, tuple(words_of(own)), place, question=before))
        before = tuple(words_of(own)) if item["role"] == "assistant" else ()
    return Context(tuple(spoken), tuple(entries), tuple(sections))


def _entries(text: str, place: int) -> Iterator[Passage]:
    """The entries of a compactor's text, with a passage without words at each heading."""
    voice: Voice = "agent"
    lines: list[str] = []
    for line in [*_TAG.sub(_as_heading, text).splitlines(), _LAST]:
        heading = _HEADING.match(line)
        is_bulleted = bool(lines and _BULLET.match(lines[0]))
        is_new = _BULLET.match(line) or (lines and not is_bulleted and line.strip() and not line[0].isspace())
        if heading or is_new or line == _LAST:
            if lines and (whole := "\n".join(lines)).strip():
                yield Passage(_voice_of(lines[0], voice), whole, tuple(words_of(whole)), place, ours=True)
            lines = []
        if heading:
            name = heading["name"] or heading["bold"]
            voice = "user" if _USERS.search(name) else "agent"
            yield Passage("other", "", (), place, ours=True)
        elif line != _LAST and (line.strip() or lines):
            lines.append(line)


def _as_heading(tag: re.Match[str]) -> str:
    """A ledger is a section of its own."""
    if "LEDGER" not in tag[0]:
        return ""
    return "\n# Notes\n" if tag[0].startswith("</") else "\n# Ledger\n"


def _voice_of(line: str, section: Voice) -> Voice:
    said = _SAID.match(line)
    if said is None:
        return section
    return "user" if _USERS.search(said["speaker"]) else "other"


def _joined(entries: Sequence[Passage], place: int) -> Iterator[Passage]:
    run: list[Passage] = []
    for entry in [*entries, Passage("other", "", (), place)]:
        if entry.voice == "user":
            run.append(entry)
        elif run:
            text = "\n".join(one.text for one in run)
            yield Passage("user", text, tuple(word for one in run for word in one.words), place, ours=True)
            run = []


# --- what is known, shown, promoted


def is_known(context: Context, words: Sequence[str]) -> bool:
    """Whether each of these phrases stands in one passage of the user's, near the others."""
    wanted = [phrase(one) for one in words]
    room = sum(one.span for one in wanted)
    if any(_together(wanted, passage.words, room) for passage in (*context.messages, *context.ledger)):
        return True
    return any(
        all(stands(one, section.words, any_order=False) for one in wanted) for section in context.sections
    )


def is_answered(context: Context, words: Sequence[str], ask: str, say: str, *, is_choice: bool) -> bool:
    """Whether an answer or a confirmation is known with what gives it its meaning.

    `words` are phrases of question and answer, of which the last is the thing that was chosen.
    """
    wanted = [phrase(one) for one in words]
    question = words_of(ask)
    # What was chosen may be quoted alone: only a longer run is a copy of the question.
    length = max(_COPIED, wanted[-1].length + 2)
    runs = {tuple(question[n : n + length]) for n in range(len(question) - length + 1)}
    room = len(question) + len(words_of(say)) + _ANSWER_SPARE
    texts = [(*message.question, *message.words) for message in context.messages]
    texts += [entry.words for entry in context.ledger]
    texts += [
        (*one.words, *after.words)
        for one, after in pairwise(context.entries)
        if one.voice == after.voice == "user" and _copied(one.words, runs)
    ]
    for text in texts:
        for start in _together(wanted, text, room):
            near = text[max(0, start - room) : start + room]
            if not is_choice or _is_said_apart(near, runs, say, wanted[-1]):
                return True
    return False


def is_shown_as_standing(context: Context, gone: str, later: Sequence[str]) -> bool:
    """Whether an old value is shown as if it stood. `later` are phrases of which each says that it changed."""
    old, new = phrase(gone), list(map(phrase, later))

    def is_over(passage: Passage) -> bool:
        return any(stands(one, passage.words) for one in new)

    for entry in context.entries:
        if entry.voice == "other" or not stands(old, entry.words):
            continue
        if is_over(entry) or _OVER.search(entry.text):
            continue
        if stands(old, words_of(_BRACKETS.sub(" ", entry.text))):
            return True
    for message in context.messages:
        if stands(old, message.words) and not is_over(message):
            behind = [other for other in context.messages if other.place > message.place]
            if not any(map(is_over, (*behind, *context.ledger))):
                return True
    return False


def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a text that have enough words to be told from others; the whole text if none has."""
    parts = _CLAUSE.split(text)
    return tuple(part for part in parts if len(_raw_words(part)) >= _CLAUSE_WORDS) or (text,)


def is_promoted(context: Context, words: str) -> bool:
    """Whether somebody else's words stand as the user's in a compactor's text."""
    return any(stands(phrase(words), entry.words) for entry in context.ledger)


def _together(wanted: Sequence[Phrase], words: Sequence[str], room: int) -> list[int]:
    """Where all phrases stand within so many words: the first words of such places."""
    found = [list(_places(one, words)) for one in wanted]
    if not all(found):
        return []
    starts = sorted({first for places in found for first, _ in places})
    return [
        start
        for start in starts
        if all(any(start <= first and last < start + room for first, last in places) for places in found)
    ]


def _is_said_apart(near: Sequence[str], runs: Set[tuple[str, ...]], say: str, chosen: Phrase) -> bool:
    """Whether the answer, or the thing that was chosen, stands there besides what is copied from the question."""
    copied = _copied(near, runs)
    rest = [word for n, word in enumerate(near) if n not in copied]
    answer = [word for word in words_of(say) if word not in _COURTESY] or words_of(say)
    return _in_order(answer, rest) >= IN_ORDER * len(answer) or stands(chosen, rest)


def _copied(words: Sequence[str], runs: Set[tuple[str, ...]]) -> set[int]:
    """The places of words that are copied from the question."""
    length = len(next(iter(runs), ()))
    found: set[int] = set()
    for n in range(len(words) - length + 1):
        if tuple(words[n : n + length]) in runs:
            found.update(range(n, n + length))
    return found
