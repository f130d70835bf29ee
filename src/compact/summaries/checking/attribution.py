"""Whether a summary gives each voice its own: what it says about the user, a person said; what a tool said is quoted. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from compact.messages import Message, Text, ToolCall, ToolResult
from compact.summaries.voices import AGENT, HOST, PERSON, attributed, speaker_of

TOOLS_HEADING = "## What tools said"
"""The heading under which a tool's words stand that were written where the agent or the user speaks."""
UNCONFIRMED = (
    "(What is said of the user above is not in their language, so it was not compared with their words.)"
)
"""Stands behind a summary with claims about the user that code cannot compare."""
_RUN = 6
"""Words in a row. Fewer are said by many."""
_SAID_SHARE = 0.8
"""The share of a sentence's runs that must be a tool's for the sentence to be the tool's."""
_OTHERS_SHARE = 0.5
"""If a person or the agent said this share of them, the sentence is theirs."""
_SUPPORTED = 0.5
"""The share of the words of a claim about the user that a person must have used."""
_FUNCTION_WORDS = 3
"""Short words needed to tell the language of a sentence."""
_SAME_LANGUAGE = 0.34
"""The least share of a sentence's short words that the session must use too. Below it, the two are in different languages."""
_STEM = 4

_SIGNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
)
_TOKEN = re.compile(f"[{_SIGNS}]|(?:(?![{_SIGNS}])\\w)+")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_LETTER = re.compile(r"[^\W\d_]")
_VERBS = (
    r"said|says|say|asked|asks|wants?|wanted|told|tells|instruct(?:s|ed)|order(?:s|ed)|request(?:s|ed)|requires?|required|approve[sd]?"
    r"|confirm(?:s|ed)|agree[sd]?|decide[sd]?|authori[sz]e[sd]?|allow(?:s|ed)|permit(?:s|ted)|demand(?:s|ed)|insist(?:s|ed)|prefers?|preferred"
    r"|state[sd]|wrote|writes|repl(?:ies|ied)|answer(?:s|ed)|gave|given|grants?|granted|needs?|needed|expects?|expected|accept(?:s|ed)"
    r"|consent(?:s|ed)|wishes|wished|directs?|directed|commands?|commanded|specif(?:y|ies|ied)|chose|chosen|forbids?|forbade|knows|likes?"
)
_ADVERBS = (
    r"(?:has|had|have|also|then|just|explicitly|clearly|later|now|already|again|really|does|did|do|not|doesn['’]t|didn['’]t|never|always"
    r"|originally|initially|first|finally|previously|earlier|themselves|would|will|must|is|was)"
)
_WHO = r"(?:users?|human|customer|client|operator|owner|person|admin(?:istrator)?)"
_CLAIM = re.compile(
    rf"\b(?:the|our|this|my|your) {_WHO}(?:['’]s)? (?:{_ADVERBS} )*(?:{_VERBS})\b|^\W*{_WHO} (?:{_ADVERBS} )*(?:{_VERBS})\b"
    rf"|^\W*\((?:the )?{_WHO}\b|\b(?:{_VERBS}|wish|permission|approval|consent|behalf|orders|instructions?) (?:by|from|of) (?:the |our )?{_WHO}\b"
    rf"|^\W*(?:they|he|she|(?:the |our )?(?:boss|owner)(?:['’]s orders)?) (?:{_ADVERBS} )*(?:{_VERBS})\b"
    r"|\b(?:it was|was) (?:explicitly )?(?:requested|ordered|authori[sz]ed)\b|\b(?:approval|permission|consent) (?:was|has been|is) \w+"
    rf"|\b(?:the |our ){_WHO}(?:['’]s|s['’]) (?:\w+ )?(?:instructions?|requests?|rules?|wish(?:es)?|words?|orders?|permission|approval|consent"
    rf"|goal|decision|preference|answer|demand|requirement)s?\b"
    r"|\b(?:der|die|dem|den) (?:Be)?nutzer|\bl['’]utilisat|\bel usuario|\bo usuário|\bl['’]utente|пользовател|用户|使用者|ユーザー|사용자|المستخدم",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:when(?:ever)?|if|once|until|unless|whether|before|in case)\s\Z", re.IGNORECASE)
_PRESENT = re.compile(
    r"(?<!ha)(?<!wa)s\Z|\b(?:want|need|say|ask|approve|agree|prefer|decide|authori[sz]e)\Z", re.IGNORECASE
)
_ENGLISH = frozenset(
    [
        "the",
        "and",
        "to",
        "of",
        "in",
        "with",
        "for",
        "is",
        "it",
        "this",
        "that",
        "not",
        "on",
        "please",
        "never",
        "always",
        "do",
        "be",
        "you",
        "an",
        "are",
        "my",
    ]
)
_ENGLISH_WORDS = 2
"""English words of these that make a sentence English."""
_ENGLISH_CLAIM = re.compile(
    rf"\b(?:{_WHO})\b.*\b(?:{_VERBS})\b|\b(?:{_VERBS})\b.*\b{_WHO}\b|^\W*\((?:the )?{_WHO}\b", re.IGNORECASE
)
_COMMON = frozenset(
    [
        "that",
        "this",
        "with",
        "from",
        "have",
        "been",
        "they",
        "their",
        "them",
        "then",
        "than",
        "when",
        "what",
        "which",
        "while",
        "will",
        "would",
        "should",
        "could",
        "also",
        "only",
        "into",
        "onto",
        "over",
        "after",
        "before",
        "because",
        "about",
        "there",
        "here",
        "very",
        "just",
        "more",
        "most",
        "some",
        "such",
        "each",
        "other",
        "using",
        "used",
        "uses",
        "being",
        "does",
        "done",
        "make",
        "made",
        "user",
        "users",
        "human",
        "customer",
        "client",
        "operator",
        "owner",
        "person",
        "administrator",
        "admin",
    ]
)
_VERB = re.compile(rf"(?:{_VERBS}|{_ADVERBS})", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]{12,})"')
_CITED = re.compile(r"\[(?:v\d{1,9} )?m\d{1,9}\]")
_VOICED = re.compile(
    r"next|goal|intent|objective|purpose|constraint|limit|decision|decided|instruction|request|rule|plan\b|to-?\s?do|user|asked|want"
    r"|require|must|policy|approv|permission|task|step|agree|promise",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Heard:
    """What was said in a session, and by whom."""

    texts: Sequence[tuple[str, str]]
    """Each speaker, as in `summaries.voices`, and what was said."""

    @classmethod
    def of(cls, messages: Sequence[Message], previous: str = "", instructions: Iterable[str] = ()) -> Heard:
        """Listen to these messages, to a summary of earlier ones, and to what the user said in those."""
        names = {call.id: call.name for message in messages for call in message.calls}
        found = [(PERSON, text) for text in instructions]
        for message in messages:
            found += _voices_in(message, names)
        for line in previous.splitlines():
            said = attributed(line.strip().removeprefix("- "))
            quotes = [] if said else _QUOTED.findall(line)
            if said is not None:
                found.append((said[0], " ".join(said[1])))
            found += [(speaker_of(None), text) for text in quotes]
            if said is None:
                found.append((AGENT, _QUOTED.sub(" ", line)))
        return cls(found)

    def find_tools(self, sentences: Iterable[str]) -> dict[str, str]:
        """The sentences that only a tool said, nearly word for word, each with the name of the tool."""
        runs = {sentence: set(_runs(_tokens(_CITED.sub("", sentence)))) for sentence in sentences}
        wanted = set().union(*runs.values()) if runs else set()
        if not wanted:
            return {}
        by_speaker: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for speaker, text in self.texts:
            by_speaker[speaker].update(run for run in _runs(_tokens(text)) if run in wanted)
        own = by_speaker.pop(PERSON, set()) | by_speaker.pop(AGENT, set())
        found = {}
        for sentence, said in runs.items():
            if not said or len(said & own) >= _OTHERS_SHARE * len(said):
                continue
            speaker = max(by_speaker, key=lambda name: len(said & by_speaker[name]), default="")
            if speaker and len(said & by_speaker[speaker]) >= _SAID_SHARE * len(said):
                found[sentence] = speaker
        return found

    def supports(self, sentence: str) -> bool | None:
        """Whether a person said what a sentence claims. None if it is in another language, which code cannot compare."""
        words = [
            word
            for word in _tokens(sentence)
            if (len(word) >= _STEM or not word.isascii())
            and word not in _COMMON
            and not _VERB.fullmatch(word)
        ]
        known = self._person_stems
        share = sum(word[:_STEM] in known for word in words) / max(1, len(words))
        if words and share < _SUPPORTED:
            return None if self._is_foreign(sentence) else False
        return bool(words) or not sentence.strip() or None

    @cached_property
    def _person_text(self) -> str:
        return "\n".join(text for speaker, text in self.texts if speaker == PERSON)

    @cached_property
    def _person_stems(self) -> frozenset[str]:
        words = _tokens(self._person_text)
        return frozenset(word[:_STEM] for word in words)

    def _is_foreign(self, sentence: str) -> bool:
        text = self._person_text
        if not _LETTER.search(text):
            return False
        if _is_latin(text) is not _is_latin(sentence):
            return True
        words = set(_tokens(sentence))
        if len(words & _ENGLISH) >= _ENGLISH_WORDS or _ENGLISH_CLAIM.search(sentence):
            return not _ENGLISH.intersection(_tokens(text))
        short = {word for word in words if len(word) <= _STEM and word.isalpha()}
        return len(short) >= _FUNCTION_WORDS and len(short & self._all_words) < _SAME_LANGUAGE * len(short)

    @cached_property
    def _all_words(self) -> frozenset[str]:
        return frozenset(word for _, text in self.texts for word in _tokens(text))


def claims_user(sentence: str) -> bool:
    """Whether a sentence says what the user said, wants, allowed or decided. What happens once they ask is no claim."""
    return any(
        not (_CONDITION.search(sentence, 0, claim.start()) and _PRESENT.search(claim.group()))
        for claim in _CLAIM.finditer(sentence)
    )


def speaks_for_somebody(heading: str) -> bool:
    """Whether the section under a heading is in the agent's or the user's voice: its goals, rules, decisions and next steps."""
    return _VOICED.search(heading) is not None


def _voices_in(message: Message, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield speaker_of(part.name or names.get(part.call_id)), part.text
        elif isinstance(part, ToolCall):
            yield AGENT, part.arguments_text
        elif isinstance(part, Text):
            yield PERSON if message.starts_turn else AGENT if message.role == "assistant" else HOST, part.text


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[n:] for n in range(_RUN)), strict=False)


def _is_latin(text: str) -> bool:
    letters = _LETTER.findall(text[:4000])
    return 2 * sum(_LATIN.match(letter) is not None for letter in letters) >= len(letters)
