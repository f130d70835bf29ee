"""Where a session may be cut: the reference cases of the earliest run, and units in every dialect."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support_data import FIXTURES
from support_strategies import SESSIONS

from compact.cuts import compressible_run, removable, units
from compact.dialects import read
from compact.messages import Message
from compact.triggers import Decision, Thresholds, decide

CASES = yaml.safe_load((FIXTURES / "cases" / "forge.yaml").read_text())["cases"]


def built(pattern: str) -> list[dict[str, Any]]:
    """s system, u user, a assistant, t assistant with a call, r the result of the oldest open call."""
    found: list[dict[str, Any]] = []
    waiting: list[str] = []
    for number, kind in enumerate(pattern):
        match kind:
            case "t":
                function = {"name": "read", "arguments": "{}"}
                call = {"id": f"c{number}", "type": "function", "function": function}
                found.append({"role": "assistant", "content": None, "tool_calls": [call]})
                waiting.append(f"c{number}")
            case "r":
                call_id = waiting.pop(0) if waiting else "nobody"
                found.append({"role": "tool", "tool_call_id": call_id, "content": "x"})
            case _:
                role = {"s": "system", "u": "user", "a": "assistant"}[kind]
                found.append({"role": role, "content": f"{kind}{number}"})
    return found


def run_cases() -> list[Any]:
    chosen = [case for case in CASES if case["rule"] == "earliest_run_between_users"]
    assert len(chosen) > 10
    return [pytest.param(case, id=case["id"]) for case in chosen]


@pytest.mark.parametrize("case", run_cases())
def test_the_earliest_run_between_users(case: dict[str, Any]) -> None:
    run = compressible_run(built(case["input"]["pattern"]), case["input"]["retention_window"])
    assert (None if run is None else [run.start, run.stop - 1]) == case["expected"]["range"]


@given(st.text(alphabet="suatr", max_size=24), st.integers(0, 8))
def test_a_run_never_parts_a_call_from_its_result(pattern: str, retention: int) -> None:
    items = built(pattern)
    run = compressible_run(items, retention)
    if run is None:
        return
    assert len(run) >= 2
    assert run.stop <= len(items) - retention
    inside = range(run.start, run.stop)
    assert all(items[n]["role"] not in ("user", "system") for n in inside)
    place = {c["id"]: n for n, item in enumerate(items) for c in item.get("tool_calls") or ()}
    for n, item in enumerate(items):
        if item["role"] != "tool" or item["tool_call_id"] not in place:
            continue
        asked = place[item["tool_call_id"]]
        between = {other["role"] for other in items[asked + 1 : n]}
        if between <= {"tool"}:
            assert (n in inside) == (asked in inside)


@pytest.mark.parametrize("case", [c for c in CASES if c["rule"] == "should_compact"], ids=lambda c: c["id"])
def test_any_threshold_that_is_set_triggers_when_reached(case: dict[str, Any]) -> None:
    given_ = case["input"]
    if "on_turn_end" in given_:
        assert case["id"] in ("F89", "F91", "F95"), (
            "acting at the end of a turn is the host's own decision here"
        )
        return
    pattern = given_.get("pattern", "")
    thresholds = Thresholds(
        window_share=10**9,
        budget=10**9,
        tokens=given_.get("token_threshold"),
        messages=given_.get("message_threshold"),
        turns=given_.get("turn_threshold"),
    )
    decision = decide(
        thresholds, tokens=given_.get("tokens", 0), messages=len(pattern), turns=pattern.count("u")
    )
    assert decision.triggered == case["expected"]


def test_the_reason_names_the_setting_the_most_urgent_first() -> None:
    limits = Thresholds(window_share=85, budget=98, tokens=50, messages=10, turns=5)
    assert decide(limits, tokens=99, messages=1, turns=1) == Decision(True, "budget")
    assert decide(limits, tokens=85, messages=1, turns=1) == Decision(True, "trigger_pct")
    assert decide(limits, tokens=84, messages=1, turns=1) == Decision(True, "token_threshold")
    assert decide(limits, tokens=49, messages=10, turns=1) == Decision(True, "message_threshold")
    assert decide(limits, tokens=49, messages=9, turns=5) == Decision(True, "turn_threshold")
    assert decide(limits, tokens=49, messages=9, turns=4) == Decision(False, "below_threshold")


def pinned(message: Message) -> bool:
    return message.protected or message.role in ("system", "developer")


@pytest.mark.no_cover
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk"])
@given(data=st.data())
def test_units_cover_a_session_without_gaps_and_keep_pairs_together(
    dialect: str, data: st.DataObject
) -> None:
    items = data.draw(SESSIONS[dialect])
    known, messages = read(items, dialect)
    found = units(messages, known, is_pinned=pinned)
    assert [n for unit in found for n in range(unit.start, unit.stop)] == list(range(len(items)))
    home = {n: place for place, unit in enumerate(found) for n in range(unit.start, unit.stop)}
    asked = {call.id: n for n, m in enumerate(messages) for call in m.calls if call.id}
    for n, message in enumerate(messages):
        for result in message.results:
            if result.call_id in asked:
                assert home[n] == home[asked[result.call_id]]
        if dialect == "responses" and message.signed:
            assert home[n] == home[n + 1], "reasoning is bound to what follows it"


def test_what_stays_whatever_the_numbers_say() -> None:
    known, messages = read(built("suatrtrua"), None)
    found = units(messages, known, is_pinned=pinned)
    free = removable(found, keep_turns=1, keep_pairs=0)
    kept = [
        n for unit, goes in zip(found, free, strict=True) if not goes for n in range(unit.start, unit.stop)
    ]
    assert kept == [0, 7, 8], "the system prompt, what opened the newest turn, the newest unit"


def test_a_pair_in_flight_is_never_touched() -> None:
    known, messages = read(built("uatrt"), None)
    found = units(messages, known, is_pinned=pinned)
    assert found[-1].in_flight
    assert not removable(found, keep_turns=1, keep_pairs=0)[-1]
