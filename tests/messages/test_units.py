"""Where a session may be cut: the reference cases of the earliest run, and units in every dialect."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.cuts import built
from support.data import FIXTURES
from support.strategies import SESSIONS

from compact.cuts import compressible_run
from compact.messages import Message
from compact.messages.dialects import read
from compact.messages.units import Unit, removable, units

CASES = yaml.safe_load((FIXTURES / "cases" / "forge.yaml").read_text())["cases"]


def items_of(pattern: str) -> list[dict[str, Any]]:
    """OpenAI Responses items: k reasoning, c a call, r the result of the oldest open call, a words, S a summary, u user."""
    found: list[dict[str, Any]] = []
    waiting: list[str] = []
    for number, kind in enumerate(pattern):
        match kind:
            case "k":
                found.append({"type": "reasoning", "id": f"rs{number}", "summary": []})
            case "c":
                waiting.append(f"c{number}")
                call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
                found.append(call)
            case "r":
                found.append({"type": "function_call_output", "call_id": waiting.pop(0), "output": "x"})
            case _:
                role = "user" if kind == "u" else "assistant"
                found.append({"role": role, "content": f"{kind}{number}"})
    return found


def two_calls(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """A user, two replies in words, one with two calls, and what follows it."""
    calls = [
        {"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}} for i in ("x", "y")
    ]
    return [*built("uaa"), {"role": "assistant", "content": None, "tool_calls": calls}, *more]


def result_of(call_id: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done", **more}


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


def pinned(message: Message) -> bool:
    return message.protected or message.role in ("system", "developer")


@pytest.mark.no_cover
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"])
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


def cut(items: list[dict[str, Any]], dialect: str) -> list[Unit]:
    known, messages = read(items, dialect)
    return units(messages, known, is_pinned=pinned, is_summary=lambda m: m.text.startswith("S"))


def test_the_units_of_a_chat_session() -> None:
    assert cut([*built("asuatrau"), {"role": "user", "content": "S"}, *built("trt")], "chat") == [
        Unit(0, 1, "words", 0),
        Unit(1, 2, "words", 0, pinned=True),
        Unit(2, 3, "opener", 1),
        Unit(3, 4, "words", 1),
        Unit(4, 6, "pair", 1),
        Unit(6, 7, "words", 1),
        Unit(7, 8, "opener", 2),
        Unit(8, 9, "summary", 3),
        Unit(9, 11, "pair", 3),
        Unit(11, 12, "pair", 3, in_flight=True),
    ]


def test_in_responses_a_unit_is_the_whole_reply() -> None:
    assert cut(items_of("kauaaakcrukaaScru"), "responses") == [
        Unit(0, 2, "words", 0),
        Unit(2, 3, "opener", 1),
        Unit(3, 9, "pair", 1),
        Unit(9, 10, "opener", 2),
        Unit(10, 13, "words", 2),
        Unit(13, 14, "summary", 2),
        Unit(14, 16, "pair", 2),
        Unit(16, 17, "opener", 3),
    ]
    assert cut(items_of("uaauka"), "responses") == [
        Unit(0, 1, "opener", 1),
        Unit(1, 2, "words", 1),
        Unit(2, 3, "words", 1),
        Unit(3, 4, "opener", 2),
        Unit(4, 6, "words", 2),
    ]


def test_a_reply_that_opens_a_responses_list_is_one_unit() -> None:
    assert cut(items_of("kcru"), "responses") == [Unit(0, 3, "pair", 0), Unit(3, 4, "opener", 1)]


@pytest.mark.parametrize(
    ("keep_turns", "keep_pairs", "gone"),
    [
        (0, 0, "a ua tr tr ua tr  tr  a "),
        (1, 0, "a ua tr tr ua tr  tr    "),
        (1, 1, "a ua tr tr ua tr        "),
        (2, 0, "a ua tr tr    tr  tr    "),
        (2, 3, "a ua tr                 "),
        (3, 9, "a                       "),
    ],
)
def test_words_stay_by_turns_and_pairs_by_their_number(keep_turns: int, keep_pairs: int, gone: str) -> None:
    pattern = "auatrtruatrutraa"
    free = removable(cut(built(pattern), "chat"), keep_turns, keep_pairs)
    found = cut(built(pattern), "chat")
    letters = "".join(pattern[unit.start : unit.stop] for unit, goes in zip(found, free, strict=True) if goes)
    assert letters == gone.replace(" ", "")


def test_a_summary_may_always_go_and_is_never_the_newest_unit() -> None:
    items = [{"role": "user", "content": "S"}, *built("ua"), {"role": "assistant", "content": "S"}]
    assert removable(cut(items, "chat"), keep_turns=9, keep_pairs=9) == [True, False, False, True]
    assert removable(cut(items, "chat"), keep_turns=0, keep_pairs=0) == [True, False, False, True]


def test_nothing_is_removable_of_nothing() -> None:
    assert removable([], keep_turns=1, keep_pairs=1) == []


def test_a_run_begins_behind_the_first_user_message() -> None:
    assert compressible_run(built("aauaa"), 0) == range(3, 5)


def test_a_protected_message_is_in_no_run() -> None:
    items = built("uaaaa")
    items[2] = {**items[2], "meta": {"protected": True}}
    assert compressible_run(items, 0) == range(3, 5)


def test_a_protected_result_keeps_its_call_out_of_the_run() -> None:
    items = [*two_calls(result_of("x"), result_of("y", meta={"protected": True})), *built("aaa")]
    assert compressible_run([items[0], *items[2:]], 0) == range(5, 8)


def test_an_unanswered_call_before_the_retained_messages_stays_out() -> None:
    assert compressible_run(built("uaatua"), 2) == range(1, 3)


def test_a_run_ends_before_a_reply_whose_results_are_partly_retained() -> None:
    assert compressible_run(two_calls(result_of("x"), result_of("y")), 1) == range(1, 3)


def test_a_run_ends_before_a_reply_that_waits_for_a_result() -> None:
    assert compressible_run(two_calls(result_of("x")), 0) == range(1, 3)


def test_reasoning_is_not_parted_from_its_call_by_the_retained_messages() -> None:
    assert compressible_run(items_of("uakcr"), 2, "responses") is None
    assert compressible_run(items_of("uaauaaka"), 1, "responses") == range(1, 3)
