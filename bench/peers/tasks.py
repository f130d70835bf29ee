"""What is measured, in a separate process for each tool: `python -m bench.peers.tasks NAME TASK CASES EVERY`.

Prints one JSON object. Times are processor time and wall time. On a shared machine the first is what the tool computed;
the second includes what it waited for (the disk, and other programs).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import compress, islice
from pathlib import Path
from typing import Any

from bench.engine import real_session
from bench.peers import Compaction, Item, Native, Peer, Refused, peer_named
from bench.peers._chat import plain
from bench.retention import METHODS, Case, Needed, is_kept, text_in, tokens_in
from compact.checks import violations

LENGTHS = (100, 1_000, 10_000)
_GROWN = 12
"""Calls per length, each with one more message, as a session grows."""
_RUNS = 3
_LIMIT_S = 60
"""Limit in wall seconds for one compaction. Exceeding it counts as a failure."""

Cases = Iterator[tuple[float, int, Case]]
"""The share of the tokens, the half of the sessions, and the case."""


class TooSlow(BaseException):
    """A call took longer than the limit. Not an `Exception`, because a tool that catches those would return its input instead."""


def preflight(peer: Peer, _: Cases) -> dict[str, Any]:
    """The call before a model call if nothing has to go, for sessions of different lengths."""
    found = {}
    for length in LENGTHS:
        native = peer.load(talk(length + _GROWN))
        step = len(native) - _GROWN
        call = peer.below(native[:step])
        try:
            with _limited():
                call(native[:step])
                runs = [_timed(peer, call, native[: step + n]) for n in range(1, _GROWN + 1)]
        except TooSlow:
            found[str(length)] = {"cpu_ms": None, "wall_ms": None}
            continue
        cpu, wall = (statistics.median(column) * 1000 for column in zip(*runs, strict=True))
        found[str(length)] = {"cpu_ms": cpu, "wall_ms": wall}
    return found


def compaction(peer: Peer, _: Cases) -> dict[str, Any]:
    """One compaction of a recorded session of 136k tokens to half of them."""
    session = plain(real_session())
    native, size = peer.load(session), tokens_in(session)
    peer.default(1_000_000)(peer.load(session[:4]))  # tokenizers and tables are loaded
    try:
        with _limited(600):
            runs = [_timed(peer, peer.default(size // 2), list(native)) for _ in range(_RUNS)]
    except TooSlow:
        return {"tokens": size, "cpu_ms": None, "wall_ms": None}
    cpu, wall = (min(column) * 1000 for column in zip(*runs, strict=True))
    return {"tokens": size, "messages": len(session), "cpu_ms": cpu, "wall_ms": wall}


def outputs(peer: Peer, cases: Cases) -> dict[str, Any]:
    """Every recorded session at its cuts: legal, within the budget, and what it keeps."""
    found: dict[str, _Outcome] = {}
    for share, half, case in cases:
        found.setdefault(str(share), _Outcome()).add(peer, case, half)
    return {share: outcome.summed() for share, outcome in found.items()}


def baselines(_: Peer, cases: Cases) -> dict[str, Any]:
    """What plain methods keep on the same cases."""
    found: dict[str, dict[str, _Kept]] = {}
    for share, half, case in cases:
        for name, method in METHODS.items():
            kept = found.setdefault(str(share), {}).setdefault(name, _Kept())
            kept.add(case, half, text_in(method(case.before, case.budget)))
    return {share: {name: kept.summed() for name, kept in each.items()} for share, each in found.items()}


class _Kept:
    """Shares of what was needed, one for each case."""

    def __init__(self) -> None:
        self._hard: tuple[list[float], list[float]] = ([], [])
        self._all: tuple[list[float], list[float]] = ([], [])

    def add(self, case: Case, half: int, text: str) -> None:
        kept = {needed.name for needed in case.needed_or_recent if is_kept(needed, text)}
        hard = [needed.name in kept for needed in case.needed]
        self._hard[half].append(statistics.mean(hard))
        self._all[half].append(len(kept) / len(case.needed_or_recent))

    def summed(self) -> dict[str, Any]:
        """As JSON; nothing was chosen by the second half of the sessions."""
        return {
            "retention": _mean([*self._hard[0], *self._hard[1]]),
            "retention_measured_half": _mean(self._hard[1]),
            "of_everything": _mean([*self._all[0], *self._all[1]]),
            "of_everything_measured_half": _mean(self._all[1]),
            "cases_measured_half": len(self._hard[1]),
        }


def _mean(values: list[float]) -> float | None:
    return statistics.mean(values) if values else None


class _Outcome:
    """One share of the tokens: what came out of each case."""

    def __init__(self) -> None:
        self.cases = self.illegal = self.over = self.never_fits = self.failed = self.refused = 0
        self.kept = _Kept()
        self.used: list[float] = []
        self.codes: Counter[str] = Counter()

    def add(self, peer: Peer, case: Case, half: int) -> None:
        self.cases += 1
        native = peer.load(case.before)
        first = self._called(peer, peer.default(case.budget), native)
        refused = self.refused
        problems = _problems(first)
        self.codes.update(problems)
        self.illegal += bool(problems)
        self.over += first is not None and tokens_in(first) > case.budget
        fitting = self._fitting(peer, case, native, first)
        self.refused = refused  # the other settings are attempts
        self.never_fits += fitting is None
        self.kept.add(case, half, text_in(fitting) if fitting else "")
        if fitting:
            self.used.append(tokens_in(fitting) / case.budget)

    def _fitting(self, peer: Peer, case: Case, native: Native, first: list[Item] | None) -> list[Item] | None:
        if peer.DEFAULT_KEEPS_MOST and _fits(first, case.budget):
            return first
        for attempt in peer.tuned(case.budget):
            out = self._called(peer, attempt, native)
            if _fits(out, case.budget):
                return out
        return first if _fits(first, case.budget) else None

    def _called(self, peer: Peer, compact: Compaction, native: Native) -> list[Item] | None:
        try:
            with _limited():
                return peer.back(compact(list(native)))
        except TooSlow:
            self.failed += 1
        except Refused:
            self.refused += 1
        return None

    def summed(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "cases": self.cases,
            "illegal": self.illegal,
            "over_budget": self.over,
            "never_fits": self.never_fits,
            "too_slow": self.failed,
            "refused": self.refused,
            **self.kept.summed(),
            "used": _mean(self.used),
            "problems": dict(self.codes.most_common(5)),
        }


def _problems(sent: list[Item] | None) -> set[str]:
    if not sent:
        return set() if sent is None else {"empty_list"}
    return {problem.rule for problem in violations(sent, "chat", in_flight=False)}


def _fits(sent: list[Item] | None, budget: int) -> bool:
    return bool(sent) and not _problems(sent) and tokens_in(sent or []) <= budget


TASKS: dict[str, Callable[[Peer, Cases], dict[str, Any]]] = {
    "preflight": preflight,
    "compaction": compaction,
    "outputs": outputs,
    "baselines": baselines,
}


def talk(messages: int) -> list[Item]:
    """A session with a call in every fourth message, about 128 tokens in each, all different."""
    pool = " ".join(str(item.get("content") or "") for item in real_session()).split(" ")
    found: list[Item] = [{"role": "system", "content": "You look after a service."}]
    for n in range(messages - 1):
        start = (n * 37) % (len(pool) - 100)
        text = f"{n}: {' '.join(pool[start : start + 58])}"
        match n % 4:
            case 0:
                found.append({"role": "user", "content": text})
            case 1:
                function = {"name": "report", "arguments": json.dumps({"text": text})}
                call = {"id": f"call_{n}", "type": "function", "function": function}
                found.append({"role": "assistant", "content": "", "tool_calls": [call]})
            case 2:
                found.append({"role": "tool", "tool_call_id": f"call_{n - 1}", "content": text})
            case _:
                found.append({"role": "assistant", "content": text})
    return found


def read_cases(path: Path, every: int = 1) -> Cases:
    """One case in `every` of a file of `bench.peers.cases`."""
    with path.open(encoding="utf-8") as lines:
        for line in islice(lines, None, None, every):
            found = json.loads(line)
            everything = tuple(Needed(name, tuple(texts), "") for name, texts, _ in found["needed"])
            hard = [is_hard for _, _, is_hard in found["needed"]]
            needed = tuple(compress(everything, hard))
            case = Case(found["session"], found["before"], found["budget"], needed, everything)
            yield found["share"], found["half"], case


def _timed(peer: Peer, call: Callable[[Native], Any], native: Native) -> tuple[float, float]:
    peer.not_its_own_s = 0.0
    wall, cpu = time.perf_counter(), time.process_time()
    call(native)
    took = time.process_time() - cpu - peer.not_its_own_s
    return took, time.perf_counter() - wall - peer.not_its_own_s


@contextmanager
def _limited(seconds: int = _LIMIT_S) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main(name: str, task: str, cases: str, every: str) -> None:
    """One task of one tool."""
    logging.disable(logging.CRITICAL)
    out = os.dup(1)
    os.dup2(2, 1)  # output of a package is not a result
    peer = peer_named(name)
    found = TASKS[task](peer, read_cases(Path(cases), int(every)))
    peer.close()
    os.write(out, json.dumps(found).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
