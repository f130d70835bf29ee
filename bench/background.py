"""Passes in the background: does a call wait for a slow summarizer, and what does it cost to swap its result in?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from bench import Figure
from compact import CompactConfig, CompactManager
from compact.summaries.request import SummaryRequest

SESSIONS = 1_000
SUMMARY_S = 60.0
"""Longer than all calls of this benchmark take on a slow machine."""
WINDOW = 6_000
SUMMARY = "## Goal\nKeep the service running.\n## Next steps\nLook at the next report."

Item = dict[str, Any]


def bench_background() -> Iterator[Figure]:
    """1,000 sessions on one event loop, whose summarizer answers when all of them have made their calls."""
    run = asyncio.run(_measure())
    yield Figure(f"of {run.calls:,} calls that fit, those that waited for a summary", run.waited, "", 0)
    yield Figure("sessions whose summary was not swapped in by their next call", run.unswapped, "", 0)
    yield Figure("processor time of the call that swaps a summary in", run.swap_ms, "ms", 50)


class _Run:
    def __init__(self) -> None:
        self.calls = self.waited = self.unswapped = 0
        self.swap_ms = 0.0
        self.asked = 0
        self.let_go = asyncio.Event()

    async def summarize(self, _: SummaryRequest) -> str:
        """Answer when every session has made its calls."""
        self.asked += 1
        await self.let_go.wait()
        return SUMMARY


async def _measure() -> _Run:
    run = _Run()
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=WINDOW,
        policy={"hard_cap_buffer": 500, "keep_recent_turns": 1, "timeout_s": 10 * SUMMARY_S},
        summary={"timeout_s": 10 * SUMMARY_S},
        archive={"adapter": "memory"},
    )
    with CompactManager(config, summarizer=run.summarize) as made:
        lists = await asyncio.gather(*(_talk(made, run, number) for number in range(SESSIONS)))
        run.let_go.set()
        begun = [made.sessions.get(f"s{number}").background for number in range(SESSIONS)]
        await asyncio.gather(*(asyncio.wrap_future(each.ended) for each in begun if each is not None))
        before = time.process_time()
        for number, items in enumerate(lists):
            out = await made.apreflight(f"s{number}", items)
            run.unswapped += len(out) >= len(items)
        run.swap_ms = (time.process_time() - before) * 1000 / SESSIONS
    return run


async def _talk(made: CompactManager, run: _Run, number: int) -> list[Item]:
    """Four calls of a session that grows past three quarters of its window. What comes back unchanged has not waited."""
    items = _session(number)
    for count in (3, 5, 6, 7):
        asked = items[:count]
        run.calls += 1
        run.waited += await made.apreflight(f"s{number}", asked) is not asked
    return items


def _session(number: int) -> list[Item]:
    texts = [f"Part {n} of session {number}:" + " word" * (920 if n < 5 else 5) for n in range(7)]
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]
