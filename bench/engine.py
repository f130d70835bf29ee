"""The line before a model call, and one whole compaction, against plain tiktoken on the same text."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from functools import cache, partial
from importlib.resources import files
from itertools import count
from typing import Any

from bench import Figure, best_of, ratio
from compact import CompactConfig, CompactManager
from compact.engine.effects import Begin, Commit, Effect, Load, Store
from compact.redaction.scan import scanner_for
from compact.runtime.run import Run
from compact.tokens.counter import counter_for

Item = dict[str, Any]


def bench_preflight_under_the_threshold() -> Iterator[Figure]:
    """A warm preflight of 1,000 messages of 128k tokens with one new message, events on, against a recount."""
    made, session = _manager(1_000_000), conversation(1_000)
    made.preflight("s", session)
    grown = _growing(session)
    warm = best_of(60, lambda: made.preflight("s", next(grown)))
    cost = warm / best_of(15, partial(_recount, session))
    tokens = made.estimate(session).total
    yield Figure(f"times faster ({tokens} tokens)", 1 / cost, "x", 100, at_least=True)
    made.close()


def bench_preflight_growth() -> Iterator[Figure]:
    """A warm preflight of 10,000 messages with one new message against one of 1,000."""
    made = _manager(100_000_000)
    few, many = conversation(1_000), conversation(10_000)
    made.preflight("few", few)
    made.preflight("many", many)
    more_of_few, more_of_many = _growing(few), _growing(many)
    cost = ratio(
        20,
        lambda: made.preflight("many", next(more_of_many)),
        lambda: made.preflight("few", next(more_of_few)),
    )
    yield Figure("times the cost", cost, "x", 12)
    made.close()


def bench_preflight_against_a_memo() -> Iterator[Figure]:
    """A warm preflight of recorded messages with one new message against looking up every string in a plain dict."""
    for length in (1_000, 10_000):
        made, session = _manager(100_000_000), recorded_messages(length)
        made.preflight("s", session)
        grown, memo = _growing(session), {piece: len(piece) for item in session for piece in _strings(item)}
        cost = ratio(15, partial(_preflight_next, made, grown), partial(_look_up, memo, session))
        yield Figure(f"times the cost, {length:,} messages", cost, "x", 3)
        made.close()


def bench_one_compaction() -> Iterator[Figure]:
    """One compaction of a real 136k-token session that was watched while it grew, against one cold tiktoken count."""
    session = real_session()
    for label, policy, excerpts, limit in (
        ("reversible stages", {"target_pct": 0.6}, 0.25, 0.5),
        ("reversible stages, pointers alone", {"target_pct": 0.6}, 0.0, 0.5),
        ("with the extractive summary", {"target_pct": 0.15}, 0.25, 2.0),
    ):
        runs = [_Watched(session, policy, excerpts) for _ in range(6)]
        reference = best_of(6, partial(_recount, session))
        seconds = min(run.compact() for run in runs)
        stages = ", ".join(runs[0].made.get_compaction_stats()["by_strategy"])
        yield Figure(f"times the cost, {label} ({stages})", seconds / reference, "x", limit)


class _Watched:
    """A session that has grown to just below its threshold, so that the next message triggers a compaction."""

    def __init__(self, session: list[Item], policy: dict[str, Any], excerpts: float = 0.25) -> None:
        size = _manager(1_000_000).estimate(session).total
        scanner_for.cache_clear()  # a scanner that has seen none of these texts
        self.made = _manager(
            int(size / 0.85), policy={**policy, "hard_cap_buffer": 0}, offload={"excerpt_share": excerpts}
        )
        self.session = session
        self.archiving = 0.0
        self.made.preflight("s", session[:-1])
        serve = self.made.services.serve

        def timed(run: Run, effect: Effect) -> Any:
            started = time.perf_counter()
            try:
                return serve(run, effect)
            finally:
                if isinstance(effect, Begin | Commit | Store | Load):
                    self.archiving += time.perf_counter() - started

        self.made.services.serve = timed  # type: ignore[method-assign]

    def compact(self) -> float:
        """Seconds, without the time of the archive."""
        started = time.perf_counter()
        self.made.preflight("s", self.session)
        seconds = time.perf_counter() - started - self.archiving
        self.made.close()
        return seconds


def _manager(window: int, **settings: Any) -> CompactManager:
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=window, archive={"adapter": "memory"}, **settings
    )
    return CompactManager(config)


@cache
def real_session() -> list[Item]:
    """The recorded session that ships with the package."""
    packed = files("compact.tools.cli").joinpath("demo_session.jsonl.gz").read_bytes()
    lines = [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]
    messages: list[Item] = lines[0].get("messages", lines)
    return messages


def recorded_messages(count: int) -> list[Item]:
    """So many recorded messages, all different: the session that ships with the package, again and again."""
    found: list[Item] = []
    waiting = 0
    for turn in range(count):
        for item in real_session():
            text = {"content": f"{turn}: {item['content']}"} if item.get("content") else {}
            calls = [{**call, "id": f"{turn}-{call['id']}"} for call in item.get("tool_calls") or ()]
            answer = {"tool_call_id": f"{turn}-{item['tool_call_id']}"} if "tool_call_id" in item else {}
            found.append({**item, **text, **answer, **({"tool_calls": calls} if calls else {})})
            waiting += len(calls) - len(answer)
            if len(found) >= count and not waiting:
                return found
    return found


def _preflight_next(made: CompactManager, grown: Iterator[list[Item]]) -> None:
    made.preflight("s", next(grown))


def _strings(item: Item) -> Iterator[str]:
    yield item["role"]
    if item.get("content"):
        yield item["content"]
    for call in item.get("tool_calls") or ():
        yield from (call["id"], call["function"]["name"], call["function"]["arguments"])


def _look_up(memo: dict[str, int], session: list[Item]) -> int:
    return sum(memo[piece] for item in session for piece in _strings(item))


def conversation(messages: int) -> list[Item]:
    """A conversation with about 128 tokens per message, all different."""
    texts = [str(item.get("content") or "") for item in real_session()]
    pool = " ".join(texts).split(" ")
    found = []
    for n in range(messages):
        start = (n * 37) % (len(pool) - 100)
        text = f"{n}: {' '.join(pool[start : start + 58])}"
        found.append({"role": "assistant" if n % 2 else "user", "content": text})
    return found


def _growing(session: list[Item]) -> Iterator[list[Item]]:
    grown = list(session)
    for n in count():
        grown.append({"role": "assistant" if len(grown) % 2 else "user", "content": f"and now number {n}"})
        yield grown


def _recount(messages: list[Item]) -> int:
    plain = counter_for("o200k_base", fast=False)
    return sum(
        plain.count(str(item.get("content") or "") + str(item.get("tool_calls") or "")) for item in messages
    )
