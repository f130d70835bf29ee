"""What survives a compaction: does the context still have the facts that the session goes on to use?

Each session is cut at half and at three quarters of its messages, and what lies before the cut is compacted to a quarter
and to half of its tokens, without a model and with the default settings. *Needed* are the identifiers (paths, names, ids,
numbers with a unit or a label) that the agent itself writes after the cut before anything shows them again, and that occur
before the cut outside of what the newest messages alone would keep. One is *kept* if it is in the compacted context with at least half of the words of its original line around it, and a third of their neighbouring pairs in order. A
context over its budget keeps nothing.

Nothing was chosen by looking at the measured half of the sessions.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from bench import Figure, Skipped, ratio, transcripts
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.messages import dialects
from compact.summaries import extractive
from compact.summaries.request import SummaryRequest
from compact.tokens.counter import counter_for

Item = dict[str, Any]
Method = Callable[[list[Item], int], str]

SHARES = (0.25, 0.5)
CUTS = (0.5, 0.75)
ABOVE_MASKING = 0.10
_FEWEST_TOKENS = 8_000
_FEWEST_CASES = 15
"""Cuts needed for one figure. A mean of fewer says little."""
_FEWEST_NEEDED = 3
_FEWEST_WORDS = 4
"""A line with fewer other words gives an identifier no meaning, because a bare list would keep it."""
_LINE_REACH = 100
"""Characters of a line on either side of an identifier that count as its line."""
_NEAR = 150
"""Characters on either side of an identifier in which the words of its line are looked for."""
_MOST_SEARCHES = 6
"""Searches for each session, cut and size."""
_PLACEHOLDER = "[output omitted]"
_WORDS_AROUND = 12

IDENTIFIER = re.compile(
    r"(?<![\w./:@-])(?:"
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w"  # path
    r"|[A-Za-z_][\w-]*\.(?:py|js|ts|tsx|jsx|go|rs|java|rb|c|h|cpp|md|json|ya?ml|toml|txt|sh|sql|css|html|lock|cfg)\b"
    r"|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}"  # camelCase
    r"|[A-Z]{2,}-\d+|[A-Za-z]+\d+[A-Za-z0-9]{3,}"  # labelled ids
    r"|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}"
    r"|\#\w*\d\w*"
    r"|\$?\d[\d,]*(?:\.\d+)?\s?(?:ms|s|sec|seconds|minutes|hours|days|[kKMG]i?[bB]|bytes|tokens|lines|px|%|USD)"
    r")(?![\w/])"
)
_WORD = re.compile(r"\w+")
_SELF = "\x00"


@dataclass(frozen=True, slots=True)
class Needed:
    """An identifier that the agent writes after the cut, the lines that contained it, and the text around it."""

    name: str
    lines: tuple[str, ...]
    around: str


@dataclass(frozen=True, slots=True)
class Case:
    """One session, cut at one place, for one size."""

    session: str
    before: list[Item]
    budget: int
    needed: tuple[Needed, ...]
    needed_or_recent: tuple[Needed, ...] = ()
    """With those that the newest messages alone would keep."""


@dataclass(slots=True)
class Score:
    """Shares of what was needed, one for each case."""

    shares: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Every case has the same weight, regardless of its length."""
        return sum(self.shares) / max(1, len(self.shares))


def bench_retention() -> Iterator[Figure]:
    """Share of the needed identifiers that stand in the context with their meaning, at 25% and 50% of the tokens."""
    for half, name in ((0, "developed on"), (1, "measured")):
        for share in SHARES:
            cases = [case for session in sessions()[half::2] for case in cases_of(session, share)]
            if len(cases) < _FEWEST_CASES:
                raise Skipped.for_want_of_data(f"{len(cases)} cuts are too few")
            about = f"{share:.0%}, {name} half, {len(cases)} cuts"
            others = {label: score(cases, method).mean for label, method in METHODS.items()}
            ours, searched = score_ours(cases)
            shown = ", ".join(f"{label} {value:.2f}" for label, value in others.items())
            yield Figure(
                f"{about}: {shown}; ours",
                ours.mean,
                "",
                round(others["masking"] + ABOVE_MASKING, 2),
                at_least=True,
            )
            yield Figure(f"{about}: ours with one search", searched.mean, "", ours.mean, at_least=True)


def score(cases: Sequence[Case], method: Method) -> Score:
    """How much a method keeps. `method` gives the text of the context it leaves, within the budget."""
    found = Score()
    for case in cases:
        text = method(case.before, case.budget)
        found.shares.append(sum(is_kept(needed, text) for needed in case.needed) / len(case.needed))
    return found


def score_ours(cases: Sequence[Case]) -> tuple[Score, Score]:
    """How much compact keeps, and how much when each of a few missed identifiers is searched for once."""
    plain, searched = Score(), Score()
    for case in cases:
        manager, after = ours_within(case)
        text = text_in(after) if tokens_in(after) <= case.budget else ""
        missed = [needed for needed in case.needed if not is_kept(needed, text)]
        share = 1 - len(missed) / len(case.needed)
        plain.shares.append(share)
        asked = missed[:: max(1, -(-len(missed) // _MOST_SEARCHES))]
        search = manager.recovery_tools("s")["search"] if asked else None
        hits = sum(is_kept(needed, search(query=needed.around)) for needed in asked if search is not None)
        searched.shares.append(share + (1 - share) * (hits / len(asked) if asked else 0))
        manager.close()
    return plain, searched


def ours_within(case: Case) -> tuple[CompactManager, list[Item]]:
    """The context that compact leaves of a case, and the manager that made it.

    A pass goes down to a tenth below its trigger. The window is therefore first set so that this equals the budget, which the
    other methods fill as well. If what must stay is larger, the window itself is the budget.
    """
    for window in (int(case.budget / 0.9), case.budget):
        manager = CompactManager(_config(window))
        after = _preflight(manager, case)
        if after and tokens_in(after) <= case.budget:
            break
    return manager, after


def _preflight(manager: CompactManager, case: Case) -> list[Item]:
    """The context that compact leaves; empty if it says that what must stay does not fit."""
    try:
        return list(manager.preflight("s", case.before))
    except InsufficientBudget:
        return []


# --- what is compared


def last_messages(messages: list[Item], budget: int) -> str:
    """System messages, and the newest others that fit."""
    return text_in(_newest(messages, budget))


def masking(messages: list[Item], budget: int) -> str:
    """Old outputs become a placeholder, the newest stay whole while they fit; then the oldest messages go."""
    masked = [_with_content(item, _PLACEHOLDER) if item["role"] == "tool" else item for item in messages]
    if tokens_in(masked) > budget:
        return text_in(_newest(masked, budget))
    room = budget - tokens_in(masked)
    for index in range(len(messages) - 1, -1, -1):
        cost = _cost(messages[index]) - _cost(masked[index])
        if messages[index]["role"] == "tool" and cost <= room:
            masked[index] = messages[index]
            room -= cost
    return text_in(masked)


def head_and_tail(messages: list[Item], budget: int) -> str:
    """Every tool output is cut to the same length, head and tail; if that is not enough the oldest messages go."""
    low, high = 0, 1 << 16
    while high - low > 32:
        middle = (low + high) // 2
        if tokens_in(_cut_outputs(messages, middle)) <= budget:
            low = middle
        else:
            high = middle
    return text_in(_newest(_cut_outputs(messages, low), budget))


def identifier_list(messages: list[Item], budget: int) -> str:
    """Control: the identifiers alone, newest first, as many as fit."""
    names = dict.fromkeys(name for item in reversed(messages) for name in IDENTIFIER.findall(_said(item)))
    return "\n".join(_fitting(list(names), budget))


def bag_of_words(messages: list[Item], budget: int) -> str:
    """Control: every word once, newest first, as many as fit, in alphabetical order."""
    words = dict.fromkeys(
        word for item in reversed(messages) for word in re.findall(r"\S+", _said(item)) if len(word) < 80
    )
    return " ".join(sorted(_fitting(list(words), budget)))


METHODS: dict[str, Method] = {
    "last N": last_messages,
    "masking": masking,
    "head+tail": head_and_tail,
    "id list": identifier_list,
    "word bag": bag_of_words,
}


def _newest(messages: list[Item], budget: int) -> list[Item]:
    kept = {n for n, item in enumerate(messages) if item["role"] == "system"}
    room = budget - tokens_in([messages[n] for n in sorted(kept)])
    for n in range(len(messages) - 1, -1, -1):
        if n in kept:
            continue
        room -= _cost(messages[n])
        if room < 0:
            break
        kept.add(n)
    return [messages[n] for n in sorted(kept)]


def _cut_outputs(messages: list[Item], chars: int) -> list[Item]:
    half = chars // 2
    return [
        _with_content(item, f"{_content(item)[:half]}\n...\n{_content(item)[len(_content(item)) - half :]}")
        if item["role"] == "tool" and len(_content(item)) > chars + 5
        else item
        for item in messages
    ]


def _fitting(pieces: list[str], budget: int) -> list[str]:
    """As many of the first pieces as fit, found by bisection."""
    count = counter_for("o200k_base").count
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join(pieces[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return pieces[:low]


# --- what is needed, and what is kept


def cases_of(session: Item, share: float) -> Iterator[Case]:
    """The cuts of a session that are long enough and need enough of what lies before them."""
    messages = session["messages"]
    for cut in CUTS:
        place = int(len(messages) * cut)
        while place < len(messages) and messages[place]["role"] == "tool":
            place += 1
        before, after = messages[:place], messages[place:]
        size = tokens_in(before)
        if size < _FEWEST_TOKENS or not after:
            continue
        budget = int(size * share)
        everything = _needed(before, after)
        recent = set(IDENTIFIER.findall(text_in(_newest(before, budget))))
        needed = tuple(one for one in everything if one.name not in recent)
        if len(needed) >= _FEWEST_NEEDED:
            yield Case(f"{session['id']}@{cut}", before, budget, needed, everything)


def _needed(before: list[Item], after: list[Item]) -> tuple[Needed, ...]:
    stood = _standing(before)
    shown: set[str] = set()
    found = []
    for item in after:
        text = _said(item)
        places = {match.group(): match.span() for match in reversed(list(IDENTIFIER.finditer(text)))}
        for name, (start, stop) in sorted(places.items(), key=lambda pair: pair[1]):
            if name in shown or item["role"] != "assistant" or name not in stood:
                continue
            around = text[max(0, start - 120) : start] + " " + text[stop : stop + 120]
            words = [word for word in _WORD.findall(around.replace(name, " ")) if len(word) > 1]
            found.append(Needed(name, stood[name], " ".join(words[:_WORDS_AROUND])))
        shown |= places.keys()
    return tuple(found)


def _standing(messages: list[Item]) -> dict[str, tuple[str, ...]]:
    """Every identifier, and the different lines that give it meaning."""
    found: dict[str, dict[str, None]] = {}
    for item in messages:
        for line in _said(item).splitlines():
            for match in IDENTIFIER.finditer(line):
                clip = line[max(0, match.start() - _LINE_REACH) : match.end() + _LINE_REACH].strip()
                found.setdefault(match.group(), {})[clip] = None
    kept = {}
    for name, clips in found.items():
        telling = tuple(clip for clip in clips if len(_words(clip, name)) > _FEWEST_WORDS)
        if telling:
            kept[name] = telling
    return kept


def is_kept(needed: Needed, text: str) -> bool:
    """Whether a text has an identifier with its meaning."""
    wanted = [_words(line, needed.name) for line in needed.lines]
    start = text.find(needed.name)
    while start >= 0:
        stop = start + len(needed.name)
        words = _words(text[max(0, start - _NEAR) : stop + _NEAR], needed.name)
        if any(_agree(line, words) for line in wanted):
            return True
        start = text.find(needed.name, stop)
    return False


def _agree(line: list[str], words: list[str]) -> bool:
    wanted = set(line) - {_SELF}
    if 2 * len(wanted & set(words)) < len(wanted):
        return False
    pairs = set(pairwise(line))
    return 3 * len(pairs & set(pairwise(words))) >= len(pairs)


def _words(text: str, name: str) -> list[str]:
    pieces = text.split(name)
    found = _WORD.findall(pieces[0].lower())
    for piece in pieces[1:]:
        found += [_SELF, *_WORD.findall(piece.lower())]
    return found


# --- sessions and sizes


@cache
def sessions() -> list[Item]:
    """The recorded sessions, in an order that mixes their sources."""
    read = [
        json.loads(line) for file in transcripts() for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    return [session for session in read if tokens_in(session["messages"]) >= _FEWEST_TOKENS]


def _config(budget: int) -> CompactConfig:
    """A window that is the budget; nothing else differs from the defaults."""
    return CompactConfig(
        model="gpt-4o",
        max_context_tokens=budget,
        policy={"hard_cap_buffer": 0, "trigger_pct": 1.0, "target_pct": 1.0},
        guard={"min_context_tokens": 1, "warn_context_tokens": 1},
        archive={"adapter": "memory"},
    )


@cache
def _counter() -> CompactManager:
    return CompactManager(
        CompactConfig(model="gpt-4o", max_context_tokens=100_000_000, archive={"adapter": "memory"})
    )


def tokens_in(messages: Sequence[Item]) -> int:
    """Exact tokens of a request with these messages."""
    return _counter().estimate(list(messages)).total


def _cost(item: Item) -> int:
    return tokens_in([item]) - tokens_in([])


def _content(item: Item) -> str:
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _with_content(item: Item, text: str) -> Item:
    return {**item, "content": text}


def _said(item: Item) -> str:
    """All text of a message: its words, and the arguments of its calls, each with its name."""
    calls = [call["function"] for call in item.get("tool_calls") or []]
    return "\n".join([_content(item), *(line for call in calls for line in _arguments(call))])


def _arguments(call: Item) -> Iterator[str]:
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        arguments = call["arguments"]
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    for key, value in arguments.items():
        yield f"{call['name']} {key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def text_in(messages: Sequence[Item]) -> str:
    """The text of these messages."""
    return "\n".join(map(_said, messages))


def bench_summary_speed() -> Figure:
    """A summary of 100k tokens without a model, against one cold tiktoken count of the same text."""
    messages: list[Item] = []
    for session in sessions():
        if tokens_in(messages) < 100_000:
            messages += [item for item in session["messages"] if item["role"] != "system"]
    while tokens_in(messages) > 105_000:
        messages.pop()
    dialect, neutral = dialects.read(messages, "chat")
    request = SummaryRequest(neutral, dialect.NAME, "task_state", 2_000, positions=(0, len(neutral) - 1))
    plain = counter_for("o200k_base", fast=False)
    text = [_said(item) for item in messages]
    count = counter_for("o200k_base").count
    cost = ratio(
        8, lambda: extractive.summarize(request, count), lambda: [plain.count(piece) for piece in text]
    )
    return Figure("times the cost", cost, "x", 2.0)
