"""What survives a compaction: does the context still have the facts that the session goes on to use?

`python -m bench retention` compares every method on the measured half. `python -m bench.retention --help` shows how to run a part:
one half, one source, one method, fewer sessions.

METHOD. Each session is cut at half and at three quarters of its messages. What lies before the cut is compacted without a model and
with the default settings to its budget: the system prompt, and a quarter or half of the tokens of the rest. *Needed* are the
identifiers (paths, names, ids, numbers with a unit or a label) that the agent itself writes after the cut before anything shows
them again, and that occur before the cut. Two measures say whether one is *kept*; `compact.tools.replay.retention` defines both:

- *any line*: it is in the context with half of the words, and a third of the neighbouring pairs, of any line that ever had it;
- *newest statement*: one message has it near half of the rarest words, half of these and the rare identifiers, and a third of the
  neighbouring pairs, of the last line before the cut that had it. One whose line has no rare word is left out.

*Any line* leaves out what the newest messages alone would keep at that budget, so it asks what a method keeps beyond a plain cut.
*Newest statement* counts every needed identifier; the column *(older)* is the same without those of the newest messages.

A context over its budget keeps nothing. A cut counts if at least 1,500 tokens lie before it and anything is needed; every cut has
the same weight. The column *(>=8k)* is the measure *any line* as it was first used: for cuts with at least 8,000 tokens and three
needed identifiers. *Room* is the part of the budget that a method uses, where it fits. With one search, each of up to six missed
identifiers is searched for by the words around it after the cut, and the answer is read up to 4,000 characters.

A session belongs to the half `even` or `odd` by the first byte of the SHA-256 of its id. Settings are chosen on the even half;
the odd half is the measurement, and nothing is chosen by looking at it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from bench import Figure, Skipped, ratio, run_to_end, transcripts, whole_number
from bench.methods import METHODS, Item, Method, cost_of, newest, said, text_in, tokens_in
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.messages import dialects
from compact.summaries import extractive
from compact.summaries.request import SummaryRequest
from compact.tokens.counter import counter_for
from compact.tools.replay.retention import (
    IdentifierIndex,
    Needed,
    Spoken,
    Stated,
    is_kept,
    is_stated,
)

__all__ = ["METHODS", "Case", "Method", "Needed", "cases_of", "is_kept", "sessions", "text_in", "tokens_in"]

One = TypeVar("One", Needed, Stated)
Half = Literal["even", "odd"]
Column = Literal["any_line", "from_8k", "newest", "newest_older"]

SHARES = (0.25, 0.5)
CUTS = (0.5, 0.75)
SOURCES = {"dialogue": "tau-", "research": "trail-", "coding": ""}
"""Sources by the beginning of a session's id; the first that fits."""
OURS, SEARCHED = "ours", "ours+search"
NAMES = (OURS, SEARCHED, *METHODS)
CONTROLS = ("id list", "word bag")
LONG = 8_000
FEWEST_TOKENS = 1_500
ABOVE_PLAIN = 0.05
MOST_BY_CONTROLS = 0.05
ROOM = 0.97
TRIED = (0.9, 0.93, 0.96, 1.0)
"""Parts of the window that the budget is, in the order in which they are tried."""
AIMS = {
    ("all", 0.25): 0.60,
    ("all", 0.5): 0.75,
    ("coding", 0.25): 0.62,
    ("coding", 0.5): 0.80,
    ("dialogue", 0.25): 0.60,
    ("dialogue", 0.5): 0.75,
}
"""What the newest statement aims at, by source and share."""
_FEWEST_CASES = 15
"""Cuts needed for one figure. A mean of fewer says little."""
_FEWEST_NEEDED = 3
"""Identifiers that a long cut must need."""
_MOST_SEARCHES = 6
"""Searches for each session, cut, size and measure."""
_READ_CHARS = 4_000
"""How much of the answer to a search is read."""
_QUICK = 8
"""Sessions of each source in a quick run."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One session up to one place, with all that it needs later. Serves every share and every method."""

    session: str
    before: list[Item]
    tokens: int
    system_tokens: int
    names: list[frozenset[str]]
    """The identifiers of each message."""
    needed: tuple[Needed, ...]
    stated: tuple[Stated, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One session, cut at one place, for one size."""

    session: str
    before: list[Item]
    budget: int
    needed: tuple[Needed, ...]
    """By the measure of any line."""
    needed_or_recent: tuple[Needed, ...] = ()
    """With those that the newest messages alone would keep."""
    stated: tuple[Stated, ...] = ()
    """By the measure of the newest statement."""
    stated_older: tuple[Stated, ...] = ()
    """Those of them that the newest messages alone would not keep."""
    unstated: int = 0
    """How many were left out because their newest line has no rare word."""
    share: float = 0.0
    tokens: int = 0

    @property
    def source(self) -> str:
        """The kind of session."""
        return source_of(self.session)


class Outcome(NamedTuple):
    """What one method did with one case; None if the case does not count for a measure."""

    source: str
    share: float
    any_line: float | None
    from_8k: float | None
    newest: float | None
    newest_older: float | None
    room: float | None
    """Part of the budget that is used; None if the context is over it, or if there is none."""


# --- figures


def bench_retention() -> Iterator[Figure]:
    """Share of the needed identifiers that are in the context with their meaning, at 25% and 50% of the tokens."""
    cases = list(chosen("odd"))
    long = sum(map(_is_long, cases))
    if long < _FEWEST_CASES:
        raise Skipped.for_want_of_data(f"{long} cuts are too few")
    found = measure(cases, NAMES)
    for share in SHARES:
        for source in ("all", *SOURCES):
            for column in ("any_line", "newest", "newest_older"):
                yield from _compared(found, source, share, column)
        room = _mean(found[OURS], "all", share, "room")
        yield Figure(f"{share:.0%}, room used of the budget", room or 0, "", ROOM, at_least=True)


def _compared(found: dict[str, list[Outcome]], source: str, share: float, column: Column) -> Iterator[Figure]:
    means = {name: _mean(rows, source, share, column) for name, rows in found.items()}
    ours = means[OURS]
    if ours is None:
        return
    shown = ", ".join(f"{name} {value:.2f}" for name, value in means.items() if value is not None)
    about = f"{share:.0%}, {source}, {column.replace('_', ' ')}"
    floor = max(means["masking"] or 0, means["head+tail"] or 0) + ABOVE_PLAIN
    yield Figure(f"{about}: {shown}; ours", ours, "", round(floor, 2), at_least=True)
    if column == "newest" and (source, share) in AIMS:
        yield Figure(f"{about}: ours, aim", ours, "", AIMS[source, share], at_least=True)
    controls = max(means[name] or 0 for name in CONTROLS)
    yield Figure(f"{about}: the better control", controls, "", MOST_BY_CONTROLS)


# --- scores


def measure(cases: Iterable[Case], names: Sequence[str]) -> dict[str, list[Outcome]]:
    """What each named method does with each case."""
    found: dict[str, list[Outcome]] = {name: [] for name in names}
    for case in cases:
        for name, outcome in outcomes(case, names).items():
            found[name].append(outcome)
    return found


def outcomes(case: Case, names: Sequence[str]) -> dict[str, Outcome]:
    """What the named methods do with one case."""
    found = {
        name: _outcome(case, METHODS[name](case.before, case.budget)) for name in names if name in METHODS
    }
    if OURS in names or SEARCHED in names:
        manager, after = ours_within(case)
        with manager:
            found[OURS] = _outcome(case, after)
            if SEARCHED in names:
                found[SEARCHED] = _searched(case, after, manager)
    return {name: found[name] for name in names}


def _outcome(case: Case, after: list[Item]) -> Outcome:
    size = tokens_in(after)
    fits = bool(after) and size <= case.budget
    kept, stated = _kept_in(case, after if fits else [])
    older = [one for one in stated if one in case.stated_older]
    return _row(
        case,
        len(kept) / len(case.needed) if case.needed else None,
        len(stated) / len(case.stated) if case.stated else None,
        len(older) / len(case.stated_older) if case.stated_older else None,
        size / case.budget if fits else None,
    )


def _row(
    case: Case,
    any_line: float | None,
    newest_statement: float | None,
    newest_older: float | None,
    room: float | None,
) -> Outcome:
    from_8k = any_line if _is_long(case) else None
    return Outcome(case.source, case.share, any_line, from_8k, newest_statement, newest_older, room)


def _is_long(case: Case) -> bool:
    return case.tokens >= LONG and len(case.needed) >= _FEWEST_NEEDED


def _kept_in(case: Case, after: Sequence[Item]) -> tuple[list[Needed], list[Stated]]:
    """What of a case is in a context, by each measure."""
    messages = list(map(said, after))
    text = "\n".join(messages)
    kept = [one for one in case.needed if is_kept(one, text)]
    return kept, [one for one in case.stated if is_stated(one, messages)]


def _searched(case: Case, after: list[Item], manager: CompactManager) -> Outcome:
    """As `_outcome`, when each of a few missed identifiers is searched for once."""
    fits = bool(after) and tokens_in(after) <= case.budget
    kept, stated = _kept_in(case, after if fits else [])
    search = manager.recovery_tools("s")["search"]

    @cache
    def ask(query: str) -> str:
        return str(search(query=query))[:_READ_CHARS]

    def is_told(one: Stated) -> bool:
        return is_stated(one, [ask(one.around)])

    missed = [one for one in case.needed if one not in kept]
    unstated = [one for one in case.stated if one not in stated]
    older = [one for one in unstated if one in case.stated_older]
    return _row(
        case,
        _with_hits(len(case.needed), missed, lambda one: is_kept(one, ask(one.around))),
        _with_hits(len(case.stated), unstated, is_told),
        _with_hits(len(case.stated_older), older, is_told),
        None,
    )


def _with_hits(needed: int, missed: list[One], is_found: Callable[[One], bool]) -> float | None:
    """The share that is kept or found, if a sample of the missed ones is searched for."""
    if not needed:
        return None
    asked = missed[:: max(1, -(-len(missed) // _MOST_SEARCHES))]
    hits = sum(map(is_found, asked)) / len(asked) if asked else 0
    return 1 - len(missed) / needed * (1 - hits)


def ours_within(case: Case) -> tuple[CompactManager, list[Item]]:
    """The context that compact leaves of a case, and the manager that made it.

    A pass goes down to a tenth below its trigger. The window is therefore first set so that this equals the budget, which the
    other methods fill as well. The newest turns and pairs may stay up to the trigger; if that is too much, the window is smaller.
    """
    for window in (int(case.budget / part) for part in TRIED):
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


def _config(budget: int) -> CompactConfig:
    """A window that is the budget; nothing else differs from the defaults."""
    return CompactConfig(
        model="gpt-4o",
        max_context_tokens=budget,
        policy={"hard_cap_buffer": 0, "trigger_pct": 1.0, "target_pct": 1.0},
        guard={"min_context_tokens": 1, "warn_context_tokens": 1},
        archive={"adapter": "memory"},
    )


# --- sessions, cuts and cases


@cache
def sessions(least: int = LONG) -> list[Item]:
    """The recorded sessions of at least so many tokens, in an order that mixes their sources."""
    return [session for session, tokens in _read(*transcripts()) if tokens >= least]


@cache
def _read(*files: Path) -> list[tuple[Item, int]]:
    read = [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    return [(session, tokens_in(session["messages"])) for session in read]


def half_of(session: str) -> Half:
    """The half to which a session's id belongs."""
    return "odd" if hashlib.sha256(session.encode()).digest()[0] % 2 else "even"


def source_of(session: str) -> str:
    """The kind of a session, by its id."""
    return next(source for source, start in SOURCES.items() if session.startswith(start))


def chosen(
    half: Half,
    sources: Sequence[str] = tuple(SOURCES),
    limit: int | None = None,
    shares: Sequence[float] = SHARES,
) -> Iterator[Case]:
    """The cases of one half, of some sources, of at most `limit` sessions of each, which are spread evenly."""
    for source in sources:
        found = [
            s for s in sessions(FEWEST_TOKENS) if half_of(s["id"]) == half and source_of(s["id"]) == source
        ]
        for session in found[:: max(1, len(found) // limit)][:limit] if limit else found:
            for cut in cuts_of(session):
                made = (case_of(cut, share) for share in shares)
                yield from (case for case in made if case.needed or case.stated)


def cases_of(session: Item, share: float) -> Iterator[Case]:
    """The long cuts of a session, for a share of all tokens, that need enough by the measure of any line."""
    for cut in cuts_of(session, LONG):
        case = case_of(cut, share, system_counts=True)
        if len(case.needed) >= _FEWEST_NEEDED:
            yield case


def cuts_of(session: Item, least: int = FEWEST_TOKENS) -> Iterator[Cut]:
    """The cuts of a session that have at least so many tokens before them."""
    messages = session["messages"]
    index = IdentifierIndex(Spoken(item["role"], said(item)) for item in messages)
    for part in CUTS:
        place = int(len(messages) * part)
        while place < len(messages) and messages[place]["role"] == "tool":
            place += 1
        before = messages[:place]
        size = tokens_in(before)
        if size < least or place == len(messages):
            continue
        yield Cut(
            session=f"{session['id']}@{part}",
            before=before,
            tokens=size,
            system_tokens=sum(cost_of(item) for item in before if item["role"] == "system"),
            names=[frozenset(name for name, _, _ in index.names_in(n)) for n in range(place)],
            needed=index.needed(place),
            stated=index.stated(place),
        )


def case_of(cut: Cut, share: float, *, system_counts: bool = False) -> Case:
    """A cut for one share of the tokens: of those beside the system prompt, or with `system_counts` of all."""
    fixed = 0 if system_counts else cut.system_tokens
    budget = fixed + int((cut.tokens - fixed) * share)
    recent = frozenset[str]().union(*(cut.names[n] for n in newest(cut.before, budget)))
    stated = tuple(one for one in cut.stated if one.words)
    return Case(
        session=cut.session,
        before=cut.before,
        budget=budget,
        needed=tuple(one for one in cut.needed if one.name not in recent),
        needed_or_recent=cut.needed,
        stated=stated,
        stated_older=tuple(one for one in stated if one.name not in recent),
        unstated=len(cut.stated) - len(stated),
        share=share,
        tokens=cut.tokens,
    )


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Print a table of the chosen methods, sources and shares."""
    asked = _parser().parse_args(words)
    limit = asked.limit or (_QUICK if asked.quick else None)
    cases = list(chosen(asked.half, asked.source or tuple(SOURCES), limit, asked.share or SHARES))
    names = asked.method or ((OURS, "masking", "head+tail") if asked.quick else NAMES)
    print(table(measure(cases, names)))
    stated, unstated = sum(len(case.stated) for case in cases), sum(case.unstated for case in cases)
    print(f"\n{stated} needed with a newest statement; {unstated} left out because theirs has no rare word")
    return 0


def _parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(
        prog="python -m bench.retention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--half", choices=("even", "odd"), default="even", help="default: even, to choose by")
    asked.add_argument(
        "--source", action="append", choices=tuple(SOURCES), help="default: all; can be repeated"
    )
    asked.add_argument("--method", action="append", choices=NAMES, help="default: all; can be repeated")
    asked.add_argument("--share", action="append", type=float, choices=SHARES, help="default: both")
    asked.add_argument(
        "--limit", type=whole_number(1), metavar="N", help="sessions of each source; default: all"
    )
    asked.add_argument(
        "--quick", action="store_true", help=f"{_QUICK} sessions of each source and no controls"
    )
    return asked


def table(found: dict[str, list[Outcome]]) -> str:
    """The means by method, source and share."""
    head = (
        f"{'method':<12} {'source':<9} {'share':>5}  {'any line':>8} {'(>=8k)':>6} {'newest':>6} {'(older)':>7}  "
        f"{'room':>5} {'over':>4} {'cuts':>4}"
    )
    lines = [head]
    for name, rows in found.items():
        for share in sorted({row.share for row in rows}):
            for source in (*dict.fromkeys(row.source for row in rows), "all"):
                here = _of(rows, source, share)
                cells = [
                    _mean(rows, source, share, column)
                    for column in ("any_line", "from_8k", "newest", "newest_older", "room")
                ]
                first, long, second, older, room = ("-" if cell is None else f"{cell:.3f}" for cell in cells)
                over = "-" if name == SEARCHED else str(sum(row.room is None for row in here))
                lines.append(
                    f"{name:<12} {source:<9} {share:>5.0%}  {first:>8} {long:>6} {second:>6} {older:>7}  "
                    f"{room:>5} {over:>4} {len(here):>4}"
                )
    return "\n".join(lines)


def _of(rows: Iterable[Outcome], source: str, share: float) -> list[Outcome]:
    return [row for row in rows if row.share == share and source in ("all", row.source)]


def _mean(rows: Iterable[Outcome], source: str, share: float, column: str) -> float | None:
    """The mean of a column over cases of equal weight; None if none counts."""
    values = [value for row in _of(rows, source, share) if (value := getattr(row, column)) is not None]
    return sum(values) / len(values) if values else None


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
    text = [said(item) for item in messages]
    count = counter_for("o200k_base").count
    cost = ratio(
        8, lambda: extractive.summarize(request, count), lambda: [plain.count(piece) for piece in text]
    )
    return Figure("times the cost", cost, "x", 2.0)


if __name__ == "__main__":
    run_to_end(lambda: main(sys.argv[1:]))
