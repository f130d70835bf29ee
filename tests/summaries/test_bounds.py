"""How often a model is asked: a fixed number of times for one summary, and never for a summary that cannot say anything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import assert_good, events, manager, pair, says, user
from support.llm import Answer, serving, work

from compact import CompactManager, InsufficientBudget
from compact.engine.context import Context, Row
from compact.engine.effects import Asking, Emit, drive
from compact.engine.stages.fold import fold
from compact.messages import Message, Text
from compact.summaries.request import LEAST_ASKED, Reply, SummaryRequest

MOST_FOR_ONE = 4
"""Calls for one summary: the first, two shorter ones, and the brief one."""
GIVES_UP = 300
"""After so many calls the model of a test fails, so that a loop without end fails the test instead of hanging it."""

TOO_LONG = " ".join(f"word{n}" for n in range(1500))
REFUSAL = "I'm sorry, but I can't help with that."
WRONG = {"too long": TOO_LONG, "refuses": REFUSAL, "empty": "", "reasons": "<think>", "fails": None}
MODELS: dict[str, Callable[[int], str]] = {
    "too long": lambda _: TOO_LONG,
    "empty": lambda _: "",
    "refuses": lambda _: REFUSAL,
    "reasons": lambda _: "<think>Let me see.",
    "too long, then refuses": lambda n: (TOO_LONG, REFUSAL)[n % 2],
    "refuses, then too long": lambda n: (REFUSAL, TOO_LONG)[n % 2],
    "everything wrong in turn": lambda n: (TOO_LONG, REFUSAL, "", TOO_LONG, "<html>")[n % 5],
    "every fourth is good": lambda n: "The login is being repaired." if n % 4 == 3 else TOO_LONG,
}


class Model:
    """A summarizer that counts how often it was asked for what."""

    def __init__(self, answer: Callable[[int], str]) -> None:
        self.answer = answer
        self.asked: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> Reply:
        self.asked.append(request)
        if len(self.asked) > GIVES_UP:
            raise OSError("asked too often")
        return Reply(self.answer(len(self.asked) - 1), by_model=True)


def short_runs(count: int, words: int) -> list[Any]:
    """Turns with a short run of the agent between two user messages."""
    found: list[Any] = []
    for n in range(count):
        found += [user(f"Question {n}?"), *pair(f"c{n}", f"row {n} " * words), says(f"Answer {n}. " * words)]
    return [*found, user("Go on.")]


def compacted(made: CompactManager, items: list[Any], manual: bool) -> None:
    try:
        after = made.manual_compact("s", items) if manual else made.preflight("s", items)
    except InsufficientBudget:
        return
    assert_good(made, items, after)


@pytest.mark.parametrize("fallback", ["extractive", "pruning-only"])
@pytest.mark.parametrize("layout", ["layered", "selective"])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_asked_a_bounded_number_of_times(model: str, layout: str, fallback: str) -> None:
    for window, words, manual in (
        (4_100, 3, True),
        (8_000, 12, False),
        (8_000, 25, True),
        (16_000, 80, False),
    ):
        asked = Model(MODELS[model])
        made = manager(
            window,
            summarizer=asked,
            summary={"fallback": fallback, "max_tokens": 600},
            policy={"layout": layout, "keep_recent_turns": 1, "keep_tool_io_pairs": 1, "retention_window": 1},
        )
        with made:
            compacted(made, short_runs(30, words), manual)
            tries = Counter(request.positions for request in asked.asked)
            assert max(tries.values(), default=0) <= MOST_FOR_ONE
            assert len(asked.asked) < GIVES_UP
            if "good" not in model:  # after three failures in a row the model is left alone
                assert len(asked.asked) <= 3 * MOST_FOR_ONE
            assert all(request.max_tokens >= LEAST_ASKED for request in asked.asked)


@settings(max_examples=40, deadline=None)
@given(
    room=st.integers(0, 700),
    rows=st.integers(1, 12),
    wrong=st.lists(st.sampled_from([*WRONG]), min_size=1, max_size=6),
    carries=st.booleans(),
    previous=st.booleans(),
)
def test_no_room_and_no_answer_lead_to_a_loop(
    room: int, rows: int, wrong: list[str], carries: bool, previous: bool
) -> None:
    """Whatever the room and whatever a model answers in turn, again and again."""
    context = _context()
    standing = '<COMPACT-SUMMARY v1>\n- Found it [m2]\n\n[Archived: read_file("x")]\n</COMPACT-SUMMARY>'
    earlier = [Row(Message("assistant", (Text(standing),)), 40, None)]
    asked: list[SummaryRequest] = []

    def serve(effect: Any) -> Any:
        if isinstance(effect, Emit):
            return None
        assert isinstance(effect, SummaryRequest)
        if effect.source == "extractive":
            assert effect.max_tokens > 0
            return Reply("- Done", trusted=True)
        asked.append(effect)
        assert len(asked) <= MOST_FOR_ONE
        answer = WRONG[wrong[(len(asked) - 1) % len(wrong)]]
        if answer is None:
            raise OSError("down")
        return Reply(answer, by_model=True)

    work_on = context.rows[:rows]
    made = drive(
        fold(
            work_on,
            context,
            max_tokens=room,
            places=range(len(work_on)),
            earlier=earlier if previous else (),
            carry_instructions=carries,
        ),
        serve,
    )
    assert all(later.max_tokens >= asked[0].max_tokens // 4 for later in asked)
    if not made.is_empty:
        assert made.row.tokens <= max(room, 60)


def _context() -> Context:
    """A context with rows to fold."""
    if not _CONTEXTS:

        def keep(context: Context) -> Asking[Context]:
            _CONTEXTS.append(context)
            yield from ()  # a stage is a generator
            return context

        manager(stages=[keep]).manual_compact("s", short_runs(4, 20))
    return _CONTEXTS[0]


_CONTEXTS: list[Context] = []


def test_a_slow_model_is_asked_once_for_a_summary() -> None:
    calls = 0

    async def never(_: SummaryRequest) -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(60)
        return "too late"

    policy = {"layout": "selective", "retention_window": 1}
    with manager(8_000, summarizer=never, summary={"timeout_s": 0.02}, policy=policy) as made:
        compacted(made, short_runs(12, 120), manual=True)
        assert {e["properties"]["error_type"] for e in events(made, name="error")} == {"TimeoutError"}
        assert calls == len(events(made, name="error")) == 3


@pytest.mark.parametrize("wrong", [TOO_LONG, REFUSAL], ids=["too long", "refuses"])
def test_a_conversation_in_pieces_costs_a_bounded_number_of_requests(wrong: str) -> None:
    """A summarizer with a tiny window gets at most 16 pieces, and its retries are counted as well."""
    with serving(Answer(wrong)) as endpoint:
        made = manager(
            128_000,
            summary={
                "model": "small-model",
                "base_url": endpoint.base_url,
                "timeout_s": 5,
                "max_tokens": 400,
            },
            windows={"small-model": 2_500},
            policy={"keep_recent_turns": 1, "keep_tool_io_pairs": 1},
        )
        with made:
            made.manual_compact("s", [item for _ in range(3) for item in work()])
        assert 0 < len(endpoint.requests) <= MOST_FOR_ONE * 16


def test_a_setting_that_a_model_refuses_is_refused_once_for_all_pieces() -> None:
    def picky(request: dict[str, Any]) -> Answer:
        if "seed" in request:
            return Answer(status=400, raw='{"error": {"message": "Unsupported parameter: \'seed\'"}}')
        return Answer("The modules under src/auth were read, and the login is being repaired now.")

    with serving(picky) as endpoint:
        settings = {"model": "small-model", "base_url": endpoint.base_url, "timeout_s": 5, "max_tokens": 400}
        with manager(16_000, summary=settings, windows={"small-model": 2_500}) as made:
            made.manual_compact("s", work())
        assert sum("seed" in request for request in endpoint.requests) == 1
        assert len(endpoint.requests) > 3
