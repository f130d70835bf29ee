"""Check whether a text may replace the history that it covers, regardless of its author. Pure.

A text with a defect is rejected. A sentence that names something the input does not contain, gives orders or claims what no
person said is struck; if too many are struck, the rest is not trusted either. What a tool said is quoted with its name.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from compact.summaries.checking.attribution import (
    TOOLS_HEADING,
    UNCONFIRMED,
    Heard,
    claims_user,
    speaks_for_somebody,
)
from compact.summaries.checking.claims import SourceText, ids_in, numbers_in, paths_in
from compact.summaries.voices import announces_user, attribute, attributed, quote

Defect: TypeAlias = Literal[
    "empty",  # nothing, or too little to be a summary
    "reasoning_only",  # the model thought and did not answer
    "tool_call",  # the model called a tool instead of answering
    "refusal",
    "error_text",  # an error message instead of an answer
    "html",  # a web page: a proxy answered, not a model
    "loop",  # the same text again and again
    "echo",  # a copy of the input
    "unrelated",  # hardly any of its words occur in the input
    "unchanged",  # the previous summary, word for word
    "too_long",  # over its token limit, or cut off there
    "invented",  # too many sentences name what the input does not contain
]

STRUCK_SHARE = 0.25
"""If more than this share of the sentences is struck, the rest is not trusted."""
_ECHO_SHARE = 0.6
"""The share of a model's text that may be verbatim input. Quotes are good; a copy is not a summary."""
_HOST_ECHO_SHARE = 0.95
_ECHO_RUN = 8
_ECHO_WORDS = 60
_LOOP_LINES = 4
_LOOP_SHARE = 0.3
"""The share of a text that a repeated line must have. A line of a table, or the same short answer, may occur often."""
_LOOP_RUN = 6
_LOOP_WORDS = 50
_DISTINCT_RUNS = 0.5
_LOOP_CHARS = 400
_LOOP_DEFLATED = 0.12
_SHORT_WORDS = 120
"""Refusals and error messages are short. A longer text that begins like one may be about one."""
_LEAST_WORDS = 8
_SENTENCE_WORDS = 6
_SHORT_INPUT = 4_000
"""Tokens. A single sentence may say what an input up to this size was about."""
_INPUT_PER_WORD = 100
"""Tokens. A model may answer a short input with fewer words still, down to one for this much input."""
_LEAST_LETTERS = 5
_HEADING_WORDS = 8
"""A longer line is a sentence, however it is printed."""
_RELATED_SHARE = 0.25
"""The least share of a text's longer words that must begin like a word of the input. Low, because languages differ."""
_RELATED_WORDS = 20
_KNOWN_WORDS = 100
"""An input with fewer different words is too small to judge by."""
_SAME_LANGUAGE = 0.5
"""The least share of a text's short words that the input must use too. Below it, the two are in different languages."""

_THOUGHT = re.compile(r"<(think|thinking|reasoning|reflection)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:(?:unfortunately|sorry|apologies|i apologi[sz]e|regrettably)\b,? (?:but )?)?"
    r"(?:(?:i[’']?m |i am )?(?:very |so |really )?(?:sorry|afraid)\b.{0,60}\b(?:can(?:no|[’'])?t|unable|won[’']?t|not able)|"
    r"(?:i|we) (?:can(?:no|[’'])t|won[’']?t|will not|am unable to|[’']?m unable to|am not able to|must decline|have to decline|"
    r"decline)\b(?:.{0,40})\b(?:help|assist|summar|provide|comply|continue|fulfil|process|do that|complete|discuss|with)|"
    r"(?:i[’']?m|i am) (?:unable|not able) to\b|as an ai\b.{0,80}\b(?:can(?:no|[’'])?t|unable|not able)|"
    r"(?:this|your|the) (?:request|content|prompt|conversation).{0,60}(?:violates|(?:is|goes) against|is not allowed|(?:was|is|been) (?:flagged|filtered)))",
    re.IGNORECASE | re.DOTALL,
)
_REFUSAL_ELSEWHERE = re.compile(
    # German, French, Spanish, Chinese, Japanese. Without an apology, what is refused must be the summary itself.
    r"(?:(?:es )?tut mir (?:sehr |wirklich )?leid|entschuldigung|entschuldigen sie|als (?:ki|sprachmodell)\b).{0,80}"
    r"\b(?:kann|darf|möchte|werde|könnte)\b.{0,80}\bnicht\b|"
    r"(?:leider )?(?:ich )?(?:kann|darf|werde)(?: ich)?\b.{0,80}\bnicht (?:weiter)?(?:helfen|zusammenfassen|unterstützen|erfüllen|"
    r"bearbeiten|nachkommen|bereitstellen|beantworten)|"
    r"(?:(?:je suis )?(?:vraiment )?désolée?|je m[’']excuse|(?:toutes )?mes excuses|en tant qu[’'](?:ia|intelligence|assistant)|"
    r"en tant que modèle).{0,80}\b(?:ne (?:peux|puis|pourrai)|pas en mesure)\b|"
    r"(?:malheureusement,? )?je ne (?:peux|puis) (?:malheureusement )?(?:pas )?(?:vous |t[’'])?(?:aider|assister|résumer|fournir|"
    r"répondre|traiter|accéder à (?:cette|votre) demande|donner suite)|(?:malheureusement,? )?je ne suis pas en mesure d|"
    r"(?:lo siento|lo lamento|disculp[ae]|perdón|me temo que|como (?:ia|modelo|asistente|inteligencia)\b).{0,80}"
    r"\bno (?:puedo|me es posible|podré)\b|"
    r"(?:lamentablemente,? |desafortunadamente,? )?no puedo (?:ayudar|asistir|resumir|proporcionar|cumplir|responder|procesar|"
    r"atender)|"
    r"(?:很|非常|十分)?(?:抱歉|对不起|對不起|遗憾|遺憾|不好意思).{0,40}(?:无法|無法|不能|不便)|"
    r"作[为為].{0,16}(?:ai|人工智[能慧]|语言模型|語言模型|助手).{0,40}(?:无法|無法|不能)|"
    r"我?(?:无法|無法|不能)(?:为您|為您|为你|為你|对此|對此)?(?:提供|帮助|幫助|协助|協助|回答|总结|總結|满足|滿足|处理|處理)(?:您|你|此|该|該|这|這|任何|相关|相關|摘要|总结|總結)|"
    r"(?:(?:大変|誠に)?申し訳|すみません|ごめんなさい|恐れ入りますが|残念ながら).{0,60}"
    r"(?:できません|出来ません|できかねます|いたしかねます|応じられません|お断り)|"
    r"(?:.{0,30}(?:お手伝い|お応え|お答え)|(?:この|その)(?:会話|内容|依頼|リクエスト).{0,6}(?:対応|要約))"
    r"(?:することは|することが|は|を|が)?(?:でき|出来)(?:ません|かねます)",
    re.IGNORECASE | re.DOTALL,
)
_ERROR_TEXT = re.compile(
    r"\{\s*[\"']?(?:error|detail)[\"']?\s*:|(?:http )?error(?: code)?\s*[:\d]|(?:http )?[45]\d\d (?:[A-Z]|error)|"
    r"internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|too many requests|"
    r"rate limit (?:exceeded|reached|error)|upstream (?:connect|request)|connection (?:refused|reset by|timed out|error:)|"
    r"(?:the )?(?:request|connection|operation) timed out|traceback \(most recent call last\)|"
    r"an (?:unexpected |internal |unknown )?error (?:has )?occurred|(?:invalid|incorrect|missing) api key|"
    r"insufficient (?:quota|credits)|model .{0,60} (?:not found|is (?:currently )?(?:loading|overloaded))",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"[\s*_()-]*(?:(?:there (?:is|are|were|was) )?(?:none|nothing|no (?:known |open |new |other |specific )?\w+|n/?a|empty"
    r"|not (?:applicable|known|specified|mentioned|stated|given|available))"
    r"(?: (?:so far|yet|at (?:this|the) (?:time|moment|point)|to (?:report|add|note|mention)|of note|known|specified|mentioned|noted"
    r"|stated|here|else|identified|recorded|made|given|available))*)?[\s.*_()-]*",
    re.IGNORECASE,
)
"""A line that says that there is nothing to say."""
_TOOL_CALL = re.compile(
    r"\s*(?:[<‹]tool_call\b|[<‹]function[=_]|\{\s*\"(?:name|tool|function)\"\s*:[^{}]{0,80},\s*\"(?:arguments|parameters|input)\"\s*:)"
)
_HTML = re.compile(r"\s*(?:<!doctype html|<html\b|<head\b|<body\b|<\?xml\b)", re.IGNORECASE)
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|direction|guideline)s?\b|"
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:above|before|previous|prior|so far)|"
    r"\byou (?:are now (?:an?|the|free|allowed|acting|no longer)|must now|will now)\b|\bnew (?:system )?(?:instructions?|prompt)\s*:|"
    r"<\|[a-z_]+\|>|\[/?inst\]|<</?sys>>|^\s*(?:system|developer)\s*:\s*(?:you|ignore|do|always|never|from now)\b",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(
    r"\s*(?:\d{1,2}[.)]\s*)?(?:#{1,6}\s+.+|\*\*.+?\*\*:?|__.+?__:?|[^\W\d_][\w /&,-]{1,60}[:：])\s*"
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+(?=[A-Z0-9`\"'(\[*-])")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+")
_CITATION = re.compile(r"\s*\[(?:v\d{1,9} )?m\d{1,9}\]$")
_TAG = re.compile(r"</?[a-z][^<>\n]{0,80}>", re.IGNORECASE)
_STEM = 5
_PLAIN_WORD = re.compile(r"\w+")
_SIGNS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts without spaces between words: Thai and its neighbours, Japanese, Chinese."""
_UNSPACED = re.compile(f"[{_SIGNS}]")
_SIGN_OR_WORD = re.compile(f"[{_SIGNS}]|[^\\s{_SIGNS}]+")
_WORD_SIGNS = 2
"""About this many characters of such a script make a word."""
_LETTERS = re.compile(f"(?:(?![{_SIGNS}])[^\\W\\d_])+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: the text as it may be used, or the defect that forbids it."""

    text: str
    defect: Defect | None = None
    why: str = ""
    struck: tuple[str, ...] = ()
    """Sentences that were removed: they name what the input does not contain, give orders, or claim what no person said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a text must be to pass."""

    source: SourceText
    """Everything that it may name."""
    limit: int
    count: Callable[[str], int]
    by_model: bool = False
    """Whether a model wrote it. A host's own function may be shorter, and may pick sentences of the input."""
    previous: str = ""
    input_tokens: int = 0
    heard: Heard | None = None
    """Who said what in the input. Without it, voices are not checked."""


def verify(text: str, expected: Expected, *, cut_off: bool = False, refused: bool = False) -> Verdict:
    """Check a text that is to replace history. `cut_off` means that the model was stopped at its token limit."""
    body = without_reasoning(text)
    found = _unusable(text, body, refused, expected)
    if found is None and (cut_off or expected.count(body) > expected.limit):
        size = "it was cut off there" if cut_off else f"it has {expected.count(body):,}"
        found = "too_long", f"the limit is {expected.limit:,} tokens, {size}"
    if found is not None:
        return Verdict(body, *found)
    return _Striking(body, expected).run()


def without_reasoning(text: str) -> str:
    """Remove the thinking that some models put before their reply. Thinking that never ends is all of the reply."""
    return _THOUGHT.sub("", text).strip()


def gives_orders(text: str) -> bool:
    """Whether a text reads like an instruction to a model, which no tool output or summary may give."""
    return _ORDER.search(text) is not None


def mark_orders(text: str, mark: str) -> str:
    """Put a mark before each line that gives orders."""
    if not gives_orders(text):
        return text
    return "\n".join(mark + line if gives_orders(line) else line for line in text.splitlines())


def _unusable(text: str, body: str, refused: bool, expected: Expected) -> tuple[Defect, str] | None:
    if refused:
        return "refusal", "the model said so"
    if not body:
        return ("reasoning_only", "nothing but reasoning") if text.strip() else ("empty", "no text")
    words = _words_in(body)
    short = words <= _SHORT_WORDS
    if _HTML.match(body):
        return "html", f"it begins {body[:40]!r}"
    if short and (_REFUSAL.match(body) or _REFUSAL_ELSEWHERE.match(body)):
        return "refusal", f"it begins {body[:80]!r}"
    if short and _ERROR_TEXT.match(body):
        return "error_text", f"it begins {body[:80]!r}"
    if repeated := _loop(body):
        return "loop", f"it repeats itself: {repeated[:80]!r}"
    if expected.previous and _flat(body) == _flat(expected.previous):
        return "unchanged", "it is the previous summary, word for word"
    said = _TAG.sub("", body)
    if not said.strip():
        return "empty", "markup and nothing else"
    if not _content(said):
        return "empty", "headings and nothing else"
    if sum(map(str.isalnum, said)) < _LEAST_LETTERS:
        return "empty", "one or two characters are not a summary"
    if _TOOL_CALL.match(body):
        return "tool_call", f"it begins {body[:40]!r}"
    if expected.by_model and words < _least_words(expected.input_tokens):
        return "empty", f"{words} words are not a summary"
    return _unrelated(body, expected) or _echo(body, expected)


def _least_words(input_tokens: int) -> int:
    """How many words a model's summary has at least: one sentence of a short input, and more of a long one."""
    least = _LEAST_WORDS if input_tokens > _SHORT_INPUT else _SENTENCE_WORDS
    return min(least, input_tokens // _INPUT_PER_WORD)


def _loop(body: str) -> str:
    """What a text repeats again and again; empty if it does not."""
    said = [line for line in body.splitlines() if _PLAIN_WORD.search(line) and not _NOTHING.fullmatch(line)]
    lines = Counter(" ".join(line.split()) for line in said if _words_in(line) > 2)
    line, times = lines.most_common(1)[0] if lines else ("", 0)
    share = (
        times * len(_PLAIN_WORD.findall(line)) / max(1, sum(len(_PLAIN_WORD.findall(each)) for each in said))
    )
    if times >= _LOOP_LINES and share > _LOOP_SHARE:
        return line
    lower = body.lower()
    repeated = _repeated_run(lower.split(), 1) or _repeated_run(_SIGN_OR_WORD.findall(lower), _WORD_SIGNS)
    if repeated:
        return " ".join(repeated)
    packed = body.encode("utf-8", "replace")
    if len(packed) >= _LOOP_CHARS and len(zlib.compress(packed)) < _LOOP_DEFLATED * len(packed):
        return body[:80]
    return ""


def _repeated_run(parts: Sequence[str], parts_in_word: int) -> tuple[str, ...]:
    """The most frequent run of a text that consists mostly of repeated runs."""
    if len(parts) < _LOOP_WORDS * parts_in_word:
        return ()
    runs = _runs(parts, _LOOP_RUN * parts_in_word)
    return Counter(runs).most_common(1)[0][0] if len(set(runs)) < _DISTINCT_RUNS * len(runs) else ()


def _words_in(text: str) -> int:
    """Approximate word count. In scripts without spaces, every `_WORD_SIGNS` characters count as one word."""
    rest, signs = _UNSPACED.subn(" ", text)
    return len(rest.split()) + signs // _WORD_SIGNS


def _unrelated(body: str, expected: Expected) -> tuple[Defect, str] | None:
    """Whether a text is about something else. Texts in another language or without spaces cannot be judged by words."""
    if not expected.by_model:
        return None
    said = _LETTERS.findall("\n".join(line for line in body.splitlines() if not _is_heading(line)).lower())
    known = set(_LETTERS.findall(expected.source.text.lower()))
    said_stems, known_stems = _stems(said), _stems(known)
    if len(said_stems) < _RELATED_WORDS or len(known_stems) < _KNOWN_WORDS:
        return None
    short = {word for word in said if len(word) < _STEM}
    if len(short & known) < _SAME_LANGUAGE * len(short):
        return None
    share = len(said_stems & known_stems) / len(said_stems)
    return ("unrelated", f"{share:.0%} of its words occur in the input") if share < _RELATED_SHARE else None


def _stems(words: Iterable[str]) -> set[str]:
    return {word[:_STEM] for word in words if len(word) >= _STEM}


def _echo(body: str, expected: Expected) -> tuple[Defect, str] | None:
    said = _PLAIN_WORD.findall(_TAG.sub(" ", body.lower()))
    if len(said) < _ECHO_WORDS:
        return None
    known = set(_runs(_PLAIN_WORD.findall(_TAG.sub(" ", expected.source.text.lower())), _ECHO_RUN))
    # An updated summary repeats the previous one, and should.
    known -= set(_runs(_PLAIN_WORD.findall(expected.previous.lower()), _ECHO_RUN))
    runs = _runs(said, _ECHO_RUN)
    share = sum(run in known for run in runs) / len(runs)
    by_model = expected.by_model
    # A host's own function may pick sentences; only returning the whole input is not a summary.
    whole = expected.count(body) * 2 > expected.input_tokens > 0
    if share > (_ECHO_SHARE if by_model else _HOST_ECHO_SHARE) and (by_model or whole):
        return "echo", f"{share:.0%} of it is in the input word for word"
    return None


class _Striking:
    """Goes through a text sentence by sentence: some are struck, what tools said is quoted, the rest stays."""

    def __init__(self, body: str, expected: Expected) -> None:
        self._body = body
        self._source = expected.source
        self._heard = expected.heard
        self._sentences = 0
        self._invented: list[str] = []
        self._reasons: dict[str, None] = {}
        self._struck: list[str] = []
        self._moved: list[str] = []
        self._tools: dict[str, str] = {}
        self._heading = ""
        self._is_unconfirmed = False
        self._is_users = False
        """Whether the lines under the last heading are announced as the user's words."""

    def run(self) -> Verdict:
        """Return the text as it may be used."""
        lines = self._body.splitlines()
        if self._heard is not None:
            said = (sentence for line in lines for sentence in _SENTENCE_ENDS.split(line))
            self._tools = self._heard.find_tools(said)
        kept = [line for line in map(self._read_line, lines) if line is not None and line != UNCONFIRMED]
        if len(self._struck) > STRUCK_SHARE * self._sentences:
            named = ", ".join(dict.fromkeys(self._invented))
            why = f"{len(self._struck)} of {self._sentences} sentences {' or '.join(self._reasons)}"
            why = f"{why}: {named[:200]}" if named else why
            return Verdict(self._body, "invented", why, tuple(self._struck))
        if self._moved:
            kept += ["", TOOLS_HEADING, *dict.fromkeys(self._moved)]
        if self._is_unconfirmed:
            kept.append(UNCONFIRMED)
        text = "\n".join(kept)
        return Verdict(text.strip() if text != self._body else text, struck=tuple(self._struck))

    def _read_line(self, line: str) -> str | None:
        """The line as it stays; None if nothing of it does."""
        if announces_user(line):
            self._is_users = True
            return line
        if not line.strip() or _is_heading(line):
            if line.strip():
                self._heading, self._is_users = line, False
            return line
        said = attributed(line.strip().removeprefix("- "))
        if said is not None and said[0] in self._tools.values():
            self._sentences += 1
            return line  # it is quoted already
        kept = [text for sentence in _SENTENCE_ENDS.split(line) if (text := self._read(sentence))]
        return " ".join(kept) if kept else None

    def _read(self, sentence: str) -> str:
        """The sentence as it stays; empty if it is struck, or stands elsewhere."""
        self._sentences += 1
        names = self._source.find_invented(sentence)
        is_claim = self._heard is not None and (self._is_users or claims_user(sentence))
        supported = self._heard.supports(sentence) if self._heard is not None and is_claim else True
        wrong = (
            (names, "name what the input does not contain"),
            (gives_orders(sentence), "give orders"),
            (supported is False, "say of the user what no person said"),
        )
        if any(is_so for is_so, _ in wrong):
            self._struck.append(sentence.strip())
            self._reasons.update((reason, None) for is_so, reason in wrong if is_so)
            self._invented += names
            return ""
        tool = self._tools.get(sentence)
        if tool is not None:
            return self._quote(sentence, tool)
        self._is_unconfirmed |= supported is None
        return sentence

    def _quote(self, sentence: str, tool: str) -> str:
        bullet = _BULLET.match(sentence)
        begins = bullet.group() if bullet else ""
        text = sentence[len(begins) :].strip()
        cited = _CITATION.search(text)
        cite = cited.group().strip() if cited else ""
        said = attribute(tool, [quote(text[: cited.start()] if cited else text)], cite)
        if speaks_for_somebody(self._heading):
            self._moved.append(f"- {said}")
            return ""
        return f"{begins}{said}"


def _content(body: str) -> str:
    lines = (line for line in body.splitlines() if not _is_heading(line))
    return "".join(line for line in lines if not _NOTHING.fullmatch(line)).strip("-*_ \n")


def _is_heading(line: str) -> bool:
    """Whether a line only announces what follows. One that names a path, an id or a number says something itself."""
    return (
        _HEADING.fullmatch(line) is not None
        and len(_PLAIN_WORD.findall(line)) <= _HEADING_WORDS
        and not (paths_in(line) or ids_in(line) or numbers_in(line))
    )


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[n : n + length]) for n in range(len(words) - length + 1)]


def _flat(text: str) -> str:
    return " ".join(text.split())
