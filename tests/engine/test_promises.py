"""The promises, on generated sessions in every dialect, with tiny windows, and on real sessions."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.data import bundled_sessions
from support.dialects import CONVERTERS
from support.engine import Clock
from support.strategies import SESSIONS, examples

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.checks import violations
from compact.messages import Message, Text
from compact.messages.dialects import read
from compact.messages.units import units
from compact.tokens import Meter

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

METER = Meter("gpt-4o")
DIALECTS = ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"]


def tiny_manager(window: int, **policy: Any) -> CompactManager:
    return CompactManager(
        CompactConfig(
            model="gpt-4o",
            max_context_tokens=window,
            policy={"hard_cap_buffer": 20, **policy},
            guard={"min_context_tokens": 50, "warn_context_tokens": 50},
            offload={"large_result_tokens": 60, "preview_tokens": 20},
            archive={"adapter": "memory"},
        ),
        clock=Clock(),
    )


def pinned(items: list[Any], dialect: str) -> list[Any]:
    _, messages = read(items, dialect)
    return [
        i for i, m in zip(items, messages, strict=True) if m.protected or m.role in ("system", "developer")
    ]


_POINTER_TOKENS = 90
"""A pointer, and what stands around it in a message."""
_LARGEST_MARKERS = 24
"""Two messages that let roles alternate."""


def newest_of_user(items: list[Any], dialect: str) -> Any:
    """The newest message that a person wrote; None if there is none, or if their words stand beside results."""
    _, messages = read(items, dialect)
    for item, message in zip(items[::-1], messages[::-1], strict=True):
        words = any(isinstance(part, Text) for part in message.parts)
        if message.role == "user" and not message.injected and (message.starts_turn or words):
            return item if message.starts_turn else None
    return None


def least_tokens(items: list[Any], dialect: str) -> int:
    """What can never leave: what is pinned, the user's newest message, and the newest unit with its outputs as pointers."""
    known, messages = read(items, dialect)

    def is_pinned(message: Message) -> bool:
        return message.protected or message.role in ("system", "developer")

    found = units(messages, known, is_pinned=is_pinned)
    opener = next((n for n in range(len(items) - 1, -1, -1) if messages[n].starts_turn), -1)
    tokens = 3
    for unit in found:
        newest = unit is found[-1]
        if not (unit.pinned or newest or unit.start == opener):
            continue
        for n in range(unit.start, unit.stop):
            size = METER.count_item(items[n], dialect)
            results = messages[n].results
            # Pictures and documents in a result stay: only text becomes a pointer.
            moves = results and all(part.kind == "text" for each in results for part in each.content)
            tokens += min(size, _POINTER_TOKENS * len(results)) if moves and not unit.pinned else size
    return tokens


def check_promises(items: list[Any], dialect: str, window: int, manual: bool, **policy: Any) -> str:
    """Check every promise on a session; the outcome is `refused` if what must stay is larger than the budget."""
    made = tiny_manager(window, **policy)
    untouched = copy.deepcopy(items)
    before = made.estimate(items).total if dialect == "chat" else None
    act = made.manual_compact if manual else made.preflight
    try:
        after = act("s", items, dialect=dialect)
    except InsufficientBudget:
        assert items == untouched
        assert least_tokens(items, dialect) > 0.97 * (window - 20) - _LARGEST_MARKERS, "it would have fit"
        return "refused"
    finally:
        made.close()
    total = METER.estimate(after, dialect=dialect, max_tokens=window).total
    assert violations(after, dialect) == [], "illegal"
    assert total <= window - 20, "over budget"
    assert items == untouched, "the host's messages were changed"
    kept = [id(item) for item in after]
    places = [kept.index(id(item)) for item in pinned(items, dialect)]
    assert places == sorted(places), "protected messages changed or moved"
    newest = newest_of_user(items, dialect)
    assert newest is None or id(newest) in kept, "the user's newest message was changed"
    if before is not None:
        assert total <= before, "larger than before"
    assert after is items or total < METER.estimate(items, dialect=dialect, max_tokens=window).total
    again = made.preflight("s", after, dialect=dialect)
    assert again is after or list(again) == list(after), "a second preflight changed something"
    assert list(made.preflight("s", items, dialect=dialect)) == list(after), (
        "a host with the full history sees something else"
    )
    twin = tiny_manager(window, **policy)
    twin_act = twin.manual_compact if manual else twin.preflight
    assert twin_act("s", copy.deepcopy(items), dialect=dialect) == after, "not deterministic"
    if after is not items and made.archive.steps("s"):
        restored = made.archive.restore("s", 1)
        assert restored.dialect == dialect
        assert len(restored.messages) == len(items)
    return "unchanged" if after is items else "compacted"


WINDOWS = st.integers(80, 900)


def run_generated(dialect: str, data: st.DataObject) -> str:
    items = data.draw(SESSIONS[dialect])
    return check_promises(
        items,
        dialect,
        data.draw(WINDOWS),
        data.draw(st.booleans()),
        keep_recent_turns=data.draw(st.integers(1, 3)),
        keep_tool_io_pairs=data.draw(st.integers(0, 2)),
        layout=data.draw(st.sampled_from(["layered", "selective"])),
        retention_window=data.draw(st.integers(0, 3)),
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_promises_hold_for_any_session(dialect: str) -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        outcomes[run_generated(dialect, data)] += 1

    check()
    assert outcomes["compacted"] >= outcomes.total() / 20, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=25_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_promises_hold_for_a_hundred_thousand_sessions(dialect: str, data: st.DataObject) -> None:
    run_generated(dialect, data)


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("window", [2500, 6000])
def test_the_promises_hold_on_real_sessions(dialect: str, window: int) -> None:
    outcomes = Counter(
        check_promises(CONVERTERS[dialect](session["messages"]), dialect, window, manual=False)
        for session in bundled_sessions()
    )
    # In two of them the prompt, the user's newest message and the newest call alone are larger than the small window.
    assert outcomes["refused"] <= (2 if window == 2500 else 0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sync_and_async_give_identical_bytes(dialect: str) -> None:
    for session in bundled_sessions()[:6]:
        items = CONVERTERS[dialect](session["messages"])
        outcomes: list[Any] = []
        for runs_async in (False, True):
            made = tiny_manager(3000)
            after: Any
            try:
                after = (
                    asyncio.run(made.apreflight("s", items, dialect=dialect))
                    if runs_async
                    else made.preflight("s", items, dialect=dialect)
                )
            except InsufficientBudget as error:
                after = str(error)
            made.flush()
            outcomes.append((after, [event.to_json()["properties"] for event in made.archive.events("s")]))
        strip = [
            [{k: v for k, v in e.items() if k != "duration_ms"} for e in events] for _, events in outcomes
        ]
        assert outcomes[0][0] == outcomes[1][0]
        assert strip[0] == strip[1]
