"""A summarizer that keeps failing is left alone, and tried again later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.engine import events, summary_of
from support.running import GOOD, long_session

from compact import CompactConfig, CompactManager
from compact.runtime.summarizing import Breaker
from compact.summaries.request import SummaryRequest

WINDOW = 8000


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def test_it_opens_after_failures_in_a_row_and_closes_on_success() -> None:
    clock = Hands()
    breaker = Breaker(3, 60, clock)
    assert [breaker.fail(), breaker.fail()] == [False, False]
    breaker.close()
    assert [breaker.fail(), breaker.fail(), breaker.fail()] == [False, False, True]
    assert not breaker.allows()
    clock.move(59)
    assert not breaker.allows()
    clock.move(1)
    assert breaker.allows(), "one may try"
    assert not breaker.allows(), "and only one"
    assert breaker.fail() is False, "it was open already"
    assert not breaker.allows()
    clock.move(60)
    assert breaker.allows()
    breaker.close()
    assert breaker.allows()
    assert breaker.allows()
    assert [breaker.fail(), breaker.fail(), breaker.fail()] == [False, False, True], (
        "it counts from the start again"
    )


class Scripted:
    """A summarizer that does what it is told and counts."""

    def __init__(self) -> None:
        self.answer: Any = RuntimeError("503")
        self.asked = 0

    def __call__(self, request: SummaryRequest) -> str:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return str(self.answer)


def made_with(summarizer: Any, clock: Hands, **summary: Any) -> CompactManager:
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=WINDOW, archive={"adapter": "memory"}, summary=summary
    )
    return CompactManager(config, summarizer=summarizer, clock=clock)


@pytest.mark.parametrize("bad", [RuntimeError("503"), "", "I cannot help with that."])
def test_after_three_failures_the_summarizer_is_left_alone_and_probed_later(bad: Any) -> None:
    clock, summarizer = Hands(), Scripted()
    summarizer.answer = bad
    made = made_with(summarizer, clock)

    def compacted(session: str) -> str:
        return summary_of(made.preflight(session, long_session(100)))

    for n in range(3):
        compacted(f"s{n}")
    asked = summarizer.asked
    assert asked >= 3
    for n in range(3, 6):
        assert compacted(f"s{n}"), "a summary without a model"
    assert summarizer.asked == asked
    opened = [
        e
        for n in range(6)
        for e in events(made, f"s{n}", "warning")
        if e["properties"]["code"] == "breaker_open"
    ]
    assert len(opened) == 1, "once for each opening"
    assert opened[0]["session_id"] == "s2"
    clock.move(61)
    summarizer.answer = GOOD
    assert "Answer the next question" in compacted("s6"), "the probe went well"
    assert "Answer the next question" in compacted("s7")
    assert events(made, "s6", "error") == []


def test_a_failure_now_and_then_does_not_open_it() -> None:
    clock, summarizer = Hands(), Scripted()
    made = made_with(summarizer, clock)
    for n in range(8):
        summarizer.answer = GOOD if n % 3 == 2 else RuntimeError("503")
        made.preflight(f"s{n}", long_session(100))
    assert summarizer.asked == 8


def test_with_pruning_only_an_open_breaker_means_pruning_only() -> None:
    clock, summarizer = Hands(), Scripted()
    made = made_with(summarizer, clock, fallback="pruning-only")
    for n in range(5):
        made.preflight(f"s{n}", long_session(100))
    assert summarizer.asked == 3
    (error,) = events(made, "s4", "error")
    assert error["properties"]["fallback"] == "pruning-only"
    assert "paused after repeated failures" in error["properties"]["message"]
