"""Many sessions with a summarizer that does not answer: every call that fits returns."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from support.background import is_ready
from support.engine import Item, manager, says, summary_of, user
from support.running import GOOD
from support.waiting import until

WINDOW = 6_000
LONG_S = 600.0
PATIENT: dict[str, Any] = {"timeout_s": 100_000}


def session(number: int) -> list[Item]:
    """A session of a few long messages, at three quarters of the window."""
    texts = [f"Part {n} of session {number}:" + " word" * 510 for n in range(9)]
    return [says(text) if n % 2 else user(text) for n, text in enumerate(texts)]


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_no_call_waits_for_a_summary_however_many_sessions_there_are(count: int) -> None:
    asked: list[Any] = []

    async def host() -> None:
        let_go = asyncio.Event()

        async def summarize(request: Any) -> str:
            asked.append(request)
            await let_go.wait()
            return GOOD

        made = manager(
            WINDOW,
            summarizer=summarize,
            policy={**PATIENT, "hard_cap_buffer": 500, "keep_recent_turns": 1},
            summary=PATIENT,
        )

        async def talk(number: int) -> list[Item]:
            name, items = f"s{number}", session(number)
            for size in (3, 5, 9):
                assert await made.apreflight(name, items[:size]) == items[:size]
            return [*items, says("Fine."), user("Go on.")]

        lists = await asyncio.gather(*map(talk, range(count)))
        await asyncio.to_thread(until, lambda: len(asked) == count, LONG_S)
        again = await asyncio.gather(
            *(made.apreflight(f"s{number}", items) for number, items in enumerate(lists))
        )
        assert all(out is items for out, items in zip(again, lists, strict=True))
        let_go.set()
        for number in range(count):
            await asyncio.to_thread(until, partial(is_ready, made, f"s{number}"), LONG_S)
        outs = await asyncio.gather(
            *(made.apreflight(f"s{number}", items) for number, items in enumerate(lists))
        )
        assert all(map(summary_of, outs))
        assert all(made.archive.steps(f"s{number}") == [1] for number in range(count))

    asyncio.run(host())
    assert len(asked) == count
