"""Long conversations of a person and an assistant: is the evidence for later questions in the context, or found by one search?

`python -m bench.conversations --data FOLDER` reads the chats of BEAM (github.com/mohammadtavakoli78/BEAM), which have no licence:
they are no part of the repository, no weight is trained on them, and the figures are only printed. `--help` shows how to run a part.

METHOD. Each chat is compacted to a window with the default settings and without a model: once, as a whole, or with `--many`
before every message of the user, as an agent would. BEAM names the messages that answer each question. The *evidence* in such a message
is the sentence that shares most with the question and its ideal answer, words weighed by their rarity in the chat. It is *there*
if one message of the context, or the answer of one search, has half of its up to eight rarest content words and a third of its
neighbouring pairs of words in order. A question counts by the share of its evidence that is there; questions have equal weight.
Those that no message answers (abstention) are left out; summaries, which need the whole chat, are printed but not in the mean.

Search is asked once with the question as it stands, and its answer is read up to 4,000 characters. Beside it: plain BM25 over whole
messages under the same limit, and the newest messages that fit in the size of our context. A *standing rule* is the sentence that
an instruction or a preference was given in; it is kept if it is in the context.

A chat belongs to the half `even` or `odd` by the first byte of the SHA-256 of its name, as in `bench.retention`. The few weights of
search were set by hand with an eye on the even half; the odd half is the measurement.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from bench import Figure, Skipped, run_to_end, whole_number
from bench.methods import Item, newest, tokens_in
from bench.retention import half_of
from compact import CompactConfig, CompactManager

VARIABLE = "COMPACT_BENCH_CONVERSATIONS"
"""Names the folder for `python -m bench`."""
SIZE = "100K"
"""The folder of the chats of 128K tokens."""
WINDOW = 32_000
READ_CHARS = 4_000
FOUND, KEPT = 0.85, 0.95
RULES = {
    "instruction_following": "instruction_being_tested",
    "preference_following": "preference_being_tested",
}
WHOLE_CHAT = "summarization"
OURS, SEARCHED, NEWEST, NEWEST_SEARCHED = "context", "context+search", "last N", "last N+BM25"
SEARCH, PLAIN = "search", "BM25"
COLUMNS = (OURS, SEARCHED, SEARCH, NEWEST, NEWEST_SEARCHED, PLAIN)
_GOLD = (
    *(
        "question",
        "answer",
        "ideal_answer",
        "ideal_response",
        "ideal_summary",
        "rubric",
        "conversation_references",
    ),
    *("instruction_being_tested", "preference_being_tested", "key_facts_tested", "time_points"),
    *("ordering_tested", "compliance_indicators"),
)
"""The fields of a question that say what its answer is."""
_MOST_RARE = 8
_FEWEST_WORDS = 4
_STOPS = frozenset(
    """
    a an the and or but if then than that this these those there here i me my we our you your he she it its they them their is
    are was were be been being am do does did have has had will would can could should may might must of in on at to for from by
    with about as into over under between after before during not no nor so very just also more most some any each all both what
    which who whom whose when where why how s t m re ve ll d don
    """.strip().split()
)
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(*])")
_NOTE = re.compile(r"\s*->->.*$", re.MULTILINE)
"""A number that the data puts behind a message."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that a question needs."""

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    def is_in(self, text: str) -> bool:
        """Whether a text has half of its rarest words and a third of its pairs."""
        words = _WORD.findall(text.lower())
        return 2 * len(self.words.intersection(words)) >= len(self.words) and 3 * len(
            self.pairs.intersection(pairwise(words))
        ) >= len(self.pairs)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its evidence."""

    kind: str
    text: str
    evidence: tuple[Evidence, ...]
    rules: tuple[Evidence, ...]
    """The sentences in which a rule or preference was given."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation and what is asked about it."""

    name: str
    messages: list[Item]
    questions: list[Question]


@dataclass(slots=True)
class Outcome:
    """What each way has of the evidence, by kind of question; and the rules kept, one number for each."""

    shares: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    rules: list[bool] = field(default_factory=list)

    def mean(self, column: str, kind: str | None = None) -> float:
        """The mean of a column, over one kind or over all but summaries."""
        kinds = [kind] if kind else [each for each in self.shares if each != WHOLE_CHAT]
        return mean(row[column] for each in kinds for row in self.shares[each])

    @property
    def rules_kept(self) -> float:
        """The share of the standing rules in the context."""
        return mean(self.rules) if self.rules else math.nan


def bench_conversations() -> Iterator[Figure]:
    """Evidence in the context or by one search, and standing rules, in chats of 128K tokens at a window of 32k."""
    named = os.environ.get(VARIABLE)
    if not named:
        raise Skipped(f"needs the chats of BEAM: set {VARIABLE} to a folder that has chats/{SIZE}")
    found = measure(chats(Path(named), half="odd"))
    plain = found.mean(NEWEST_SEARCHED)
    about = f"odd half: evidence in the context or by one search (last N+BM25 {plain:.2f})"
    yield Figure(about, found.mean(SEARCHED), "", FOUND, at_least=True)
    yield Figure("odd half: standing rules in the context", found.rules_kept, "", KEPT, at_least=True)


def measure(played: Iterable[Chat], window: int = WINDOW, *, many: bool = False) -> Outcome:
    """Compact each chat, and ask its questions."""
    found = Outcome()
    for chat in played:
        manager = CompactManager(
            CompactConfig(model="gpt-4o", max_context_tokens=window, archive={"adapter": "memory"})
        )
        after = _play(manager, chat.messages, many=many)
        context = [str(item["content"]) for item in after]
        last = [str(chat.messages[n]["content"]) for n in newest(chat.messages, tokens_in(after))]
        search = manager.recall_tools("s")["search"]
        plain = bm25(chat.messages)
        for question in chat.questions:
            answer, other = str(search(query=question.text))[:READ_CHARS], plain(question.text)
            texts = {
                OURS: context,
                SEARCHED: [*context, answer],
                SEARCH: [answer],
                NEWEST: last,
                NEWEST_SEARCHED: [*last, other],
                PLAIN: [other],
            }
            row = {column: _share(question.evidence, texts[column]) for column in COLUMNS}
            found.shares.setdefault(question.kind, []).append(row)
            found.rules += [any(map(rule.is_in, context)) for rule in question.rules]
        manager.close()
    return found


def _share(evidence: Sequence[Evidence], texts: Sequence[str]) -> float:
    return mean(any(map(one.is_in, texts)) for one in evidence)


def _play(manager: CompactManager, messages: list[Item], *, many: bool) -> list[Item]:
    """The context at the end: after one pass over all, or after a pass wherever one was due."""
    if not many:
        return list(manager.preflight("s", messages))
    kept: list[Item] = []
    for item in messages:
        kept.append(item)
        if item["role"] == "user":
            kept = list(manager.preflight("s", kept))
    return list(manager.preflight("s", kept))


def bm25(messages: Sequence[Item]) -> Callable[[str], str]:
    """Plain BM25 over whole messages: the best ones, up to the characters that are read."""
    documents = [_WORD.findall(str(item["content"]).lower()) for item in messages]
    counts = [Counter(words) for words in documents]
    having = Counter(word for words in counts for word in words)
    average = mean(map(len, documents))

    def score(query: set[str], place: int) -> float:
        norm = 1.2 * (0.25 + 0.75 * len(documents[place]) / average)
        return sum(
            math.log(1 + (len(documents) - having[word] + 0.5) / (having[word] + 0.5))
            * counts[place][word] * 2.2 / (counts[place][word] + norm)
            for word in sorted(query)
        )  # fmt: skip

    def ask(query: str) -> str:
        words = set(_WORD.findall(query.lower()))
        best = sorted(range(len(documents)), key=lambda place: -score(words, place))
        return "\n".join(str(messages[place]["content"]) for place in best[:50])[:READ_CHARS]

    return ask


# --- chats


def chats(folder: Path, size: str = SIZE, half: str = "all", limit: int | None = None) -> Iterator[Chat]:
    """Read the chats of one size.

    Raises:
        Skipped: there are none.
    """
    found = sorted(
        (folder / "chats" / size).glob("*/chat.json"), key=lambda file: (len(file.parent.name), file)
    )
    if not found:
        raise Skipped(f"{folder} has no chats/{size}/*/chat.json: it should be a copy of BEAM")
    named = [(f"{size}/{file.parent.name}", file.parent) for file in found]
    chosen = [(name, place) for name, place in named if half in ("all", half_of(name))]
    for name, place in chosen[:limit]:
        yield _read(name, place)


def _read(name: str, folder: Path) -> Chat:
    batches = json.loads((folder / "chat.json").read_text("utf-8"))
    said = [message for batch in batches for turn in batch["turns"] for message in turn]
    asked = json.loads((folder / "probing_questions" / "probing_questions.json").read_text("utf-8"))
    messages = [{"role": item["role"], "content": _NOTE.sub("", item["content"])} for item in said]
    texts = {item["id"]: message["content"] for item, message in zip(said, messages, strict=True)}
    having = Counter(word for text in texts.values() for word in set(_WORD.findall(text.lower())))
    questions = [
        question
        for kind, ones in asked.items()
        for one in ones
        if (question := _question(kind, one, texts, having)).evidence
    ]
    return Chat(name, messages, questions)


def _question(kind: str, one: dict[str, Any], texts: dict[int, str], having: Counter[str]) -> Question:
    sources = [
        texts[number] for number in dict.fromkeys(_numbers(one.get("source_chat_ids"))) if number in texts
    ]
    gold = " ".join(_flat(one[key]) for key in _GOLD if key in one)
    rule = one.get(RULES.get(kind, ""), "")
    return Question(
        kind=kind,
        text=one["question"],
        evidence=tuple(_evidence(sources, gold, len(texts), having)),
        rules=tuple(_evidence(sources, rule, len(texts), having)) if rule else (),
    )


def _evidence(sources: Iterable[str], gold: str, total: int, having: Counter[str]) -> Iterator[Evidence]:
    """Find in each source the sentence that says most of what is wanted."""
    wanted = set(_content(gold))
    for source in sources:
        best, sentence = -1.0, ""
        for each in _sentences(source):
            words = set(_content(each))
            value = sum(math.log(1 + total / (1 + having[word])) for word in sorted(words & wanted))
            if len(words) >= _FEWEST_WORDS and value > best:
                best, sentence = value, each
        if sentence:
            rare = sorted(dict.fromkeys(_content(sentence)), key=having.__getitem__)[:_MOST_RARE]
            yield Evidence(frozenset(rare), frozenset(pairwise(_WORD.findall(sentence.lower()))))


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from filter(None, map(str.strip, _SENTENCE.split(line)))


def _content(text: str) -> list[str]:
    return [
        word
        for word in _WORD.findall(text.lower())
        if word.isdigit() or (len(word) > 1 and word not in _STOPS)
    ]


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
        yield int(value)


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        value = list(value.values())
    return " ".join(map(_flat, value)) if isinstance(value, list) else str(value)


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Print a table by kind of question."""
    asked = _parser().parse_args(words)
    try:
        found = measure(chats(asked.data, asked.size, asked.half, asked.limit), asked.window, many=asked.many)
    except Skipped as problem:
        print(f"SKIP  {problem}")
        return 0
    print(table(found))
    return 0


def table(found: Outcome) -> str:
    """The means by kind of question, and the rules."""
    lines = [f"{'question':<26} {'number':>6}  " + "  ".join(f"{column:>14}" for column in COLUMNS)]
    for kind in (*sorted(found.shares), None):
        number = len(found.shares[kind]) if kind else sum(map(len, found.shares.values()))
        number -= 0 if kind else len(found.shares.get(WHOLE_CHAT, []))
        cells = "  ".join(f"{found.mean(column, kind):>14.3f}" for column in COLUMNS)
        lines.append(f"{kind or 'all but ' + WHOLE_CHAT:<26} {number:>6}  {cells}")
    lines.append(f"\nstanding rules in the context: {found.rules_kept:.3f} of {len(found.rules)}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(
        prog="python -m bench.conversations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="a copy of BEAM, which has chats/"
    )
    asked.add_argument("--size", default=SIZE, help=f"the folder of the chats; default: {SIZE}")
    asked.add_argument("--half", choices=("even", "odd", "all"), default="all", help="default: all")
    asked.add_argument(
        "--window", type=whole_number(1_000), default=WINDOW, help=f"tokens; default: {WINDOW}"
    )
    asked.add_argument("--limit", type=whole_number(1), metavar="N", help="chats; default: all")
    asked.add_argument("--many", action="store_true", help="a pass wherever one is due, not one over all")
    return asked


if __name__ == "__main__":
    run_to_end(lambda: main(sys.argv[1:]))
