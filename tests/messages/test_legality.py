"""What a provider would refuse is found, with its index and rule; what it accepts is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.data import all_sessions, responses_lists
from support.dialects import CONVERTERS
from support.strategies import SESSIONS

from compact.checks import violations
from compact.messages.dialects import read
from compact.messages.legality import structure_violations, violations_in

Item = dict[str, Any]


def call(*ids: str, name: str = "read", arguments: Any = "{}", **more: Any) -> Item:
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, text: str = "done") -> Item:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def use(*ids: str, **more: Any) -> Item:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": i, "name": "read", "input": {}, **more} for i in ids],
    }


def answers(*ids: str, text: str | None = None) -> Item:
    blocks: list[Item] = [{"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ids]
    return {"role": "user", "content": [*blocks, *([{"type": "text", "text": text}] if text else [])]}


def fc(call_id: str) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}


def fco(call_id: str) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "x"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
USER = {"role": "user", "content": "hi"}
SAYS = {"role": "assistant", "content": "ok"}

ILLEGAL: list[tuple[str, str, list[Item], int]] = [
    ("chat", "missing_result", [USER, call("a"), USER], 1),
    ("chat", "missing_result", [USER, call("a", "b"), result("a"), SAYS], 1),
    ("chat", "orphan_result", [USER, result("a")], 1),
    ("chat", "orphan_result", [result("a"), USER], 0),
    ("chat", "orphan_result", [USER, call("a"), result("a"), result("b"), SAYS], 3),
    ("chat", "duplicate_result", [USER, call("a"), result("a"), result("a")], 3),
    ("chat", "duplicate_result", [USER, call("a"), result("a"), SAYS, result("a")], 4),
    ("chat", "duplicate_call_id", [USER, call("a"), result("a"), call("a"), result("a")], 3),
    ("chat", "result_order", [USER, call("a", "b"), result("b"), result("a"), SAYS], 1),
    ("chat", "result_not_adjacent", [USER, call("a"), USER, result("a"), SAYS], 1),
    ("chat", "bad_arguments", [USER, call("a", arguments='{"x"'), result("a")], 1),
    ("chat", "bad_arguments", [USER, call("a", arguments="[1]"), result("a")], 1),
    ("chat", "bad_arguments", [USER, call("a", arguments=None), result("a")], 1),
    ("chat", "bad_arguments", [USER, call("a", arguments="[" * 100_000), result("a")], 1),
    ("chat", "bad_name", [USER, call("a", name="a b"), result("a")], 1),
    ("chat", "bad_name", [USER, call("a", name="x" * 65), result("a")], 1),
    ("chat", "bad_name", [USER, call("a"), {**result("a"), "name": " "}], 2),
    ("chat", "call_without_name", [USER, call("a", name=""), result("a")], 1),
    ("chat", "call_without_id", [USER, call(""), SAYS], 1),
    ("chat", "bad_id", [USER, call("x" * 65), result("x" * 65)], 1),
    ("chat", "bad_id", [USER, call("a b"), result("a b")], 1),
    ("chat", "empty_content", [{"role": "user", "content": ""}], 0),
    ("chat", "empty_content", [USER, {"role": "assistant", "content": None}], 1),
    ("chat", "empty_content", [USER, {"role": "assistant", "content": []}], 1),
    ("chat", "invalid_text", [{"role": "user", "content": "a\x00b"}], 0),
    ("chat", "invalid_text", [{"role": "user", "content": "a\ud800b"}], 0),
    ("chat", "invalid_text", [USER, call("a"), result("a", "\udfff")], 2),
    ("chat", "invalid_number", [{"role": "user", "content": "x", "n": float("nan")}], 0),
    ("responses", "invalid_number", [USER, {**fc("a"), "score": [{"n": float("-inf")}]}, fco("a")], 1),
    ("anthropic", "invalid_number", [USER, use("a", input={"x": [float("inf")]}), answers("a")], 1),
    ("chat", "unknown_role", [{"role": "critic", "content": "x"}], 0),
    ("chat", "bare_string", [{"role": "user", "content": ["x", {"type": "text", "text": "y"}]}], 0),
    ("responses", "missing_result", [USER, fc("a"), USER], 1),
    ("responses", "orphan_result", [USER, fco("a")], 1),
    ("responses", "reasoning_separated", [USER, REASONING], 1),
    ("responses", "reasoning_separated", [USER, REASONING, USER], 1),
    ("responses", "reasoning_separated", [USER, fc("a"), REASONING, fco("a")], 2),
    ("responses", "duplicate_call_id", [USER, fc("a"), fco("a"), fc("a"), fco("a")], 3),
    ("anthropic", "missing_result", [USER, use("a"), USER], 1),
    ("anthropic", "roles_alternate", [USER, USER], 1),
    ("anthropic", "roles_alternate", [USER, SAYS, SAYS], 2),
    ("anthropic", "first_not_user", [SAYS, USER], 0),
    ("anthropic", "system_not_first", [USER, {"role": "system", "content": "x"}], 1),
    ("anthropic", "orphan_result", [USER, SAYS, answers("a")], 2),
    ("anthropic", "result_not_adjacent", [USER, use("a", "b"), answers("a"), answers("b")], 1),
    ("anthropic", "result_order", [USER, use("a", "b"), answers("b", "a")], 1),
    (
        "anthropic",
        "result_not_first",
        [
            USER,
            use("a"),
            {"role": "user", "content": [{"type": "text", "text": "x"}, answers("a")["content"][0]]},
        ],
        1,
    ),
    ("anthropic", "bad_id", [USER, use("a.b"), answers("a.b")], 1),
    ("anthropic", "bad_arguments", [USER, use("a", input="x"), answers("a")], 1),
    (
        "anthropic",
        "empty_block",
        [{"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "x"}]}],
        0,
    ),
    ("anthropic", "empty_content", [{"role": "user", "content": "  "}], 0),
    (
        "anthropic",
        "reasoning_separated",
        [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                ],
            },
        ],
        1,
    ),
    ("anthropic", "unknown_role", [USER, {"role": "tool", "content": "x"}], 1),
    (
        "ai_sdk",
        "missing_result",
        [
            USER,
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "f", "args": {}}],
            },
            USER,
        ],
        1,
    ),
]


@pytest.mark.parametrize(("dialect", "rule", "items", "index"), ILLEGAL)
def test_each_rule_is_found_at_its_place(dialect: str, rule: str, items: list[Item], index: int) -> None:
    found = violations(items, dialect)
    assert (index, rule) in {(violation.index, violation.rule) for violation in found}
    assert all(violation.message for violation in found)
    assert [violation.index for violation in found] == sorted(violation.index for violation in found)


LEGAL: list[tuple[str, list[Item]]] = [
    ("chat", []),
    ("chat", [USER, call("a"), result("a"), SAYS]),
    ("chat", [{"role": "system", "content": ""}, USER, call("a", "b"), result("a"), result("b")]),
    (
        "chat",
        [
            USER,
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "1"},
        ],
    ),
    ("chat", [USER, call("a"), {"role": "tool", "tool_call_id": "a", "content": ""}]),
    ("responses", [USER, REASONING, fc("a"), fc("b"), fco("a"), fco("b"), SAYS]),
    ("responses", [USER, fc("a"), fco("a"), fc("b"), fco("b")]),
    ("responses", [{"type": "item_reference", "id": "fc_1"}, fco("a"), USER]),
    (
        "anthropic",
        [{"role": "system", "content": "x"}, USER, use("a", "b"), answers("a", "b", text="and?"), SAYS],
    ),
    (
        "anthropic",
        [
            USER,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, *use("a")["content"]],
            },
            answers("a"),
        ],
    ),
    ("harness", [{"kind": "tool_output", "content": ""}, {"kind": "system", "content": "late"}]),
]


@pytest.mark.parametrize(("dialect", "items"), LEGAL)
def test_legal_lists_have_no_violations(dialect: str, items: list[Item]) -> None:
    assert violations(items, dialect) == []
    assert violations(items, dialect, in_flight=False) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"])
@given(data=st.data())
def test_any_generated_legal_session_is_legal(dialect: str, data: st.DataObject) -> None:
    assert violations(data.draw(SESSIONS[dialect]), dialect, in_flight=False) == []


@pytest.mark.sweep
@pytest.mark.no_cover
@pytest.mark.parametrize("dialect", CONVERTERS)
def test_real_sessions_are_legal_in_every_dialect(dialect: str) -> None:
    for session in all_sessions():
        assert violations(CONVERTERS[dialect](session["messages"]), dialect) == [], session["id"]


def test_recorded_responses_requests_are_legal() -> None:
    for items in responses_lists():
        assert violations(items, "responses") == []


@pytest.mark.parametrize(
    ("dialect", "items"),
    [
        ("chat", [USER, call("a", "b"), result("a")]),
        ("chat", [USER, call("a")]),
        ("responses", [USER, fc("a"), fc("b"), fco("b")]),
        ("anthropic", [USER, use("a", "b"), answers("a")]),
    ],
)
def test_only_the_newest_open_batch_is_in_flight(dialect: str, items: list[Item]) -> None:
    assert violations(items, dialect) == []
    known, neutral = read(items, dialect)
    assert violations_in(neutral, known) == structure_violations(neutral, known) == []
    assert {violation.rule for violation in violations(items, dialect, in_flight=False)} == {"missing_result"}
    assert "missing_result" in {violation.rule for violation in violations([*items, USER], dialect)}


def test_an_aborted_call_is_not_in_flight() -> None:
    found = violations([USER, call("a", stop_reason="aborted")])
    assert [violation.rule for violation in found] == ["missing_result"]


@pytest.mark.parametrize(
    "asks",
    [call("x" * 500), call("x" * 500, name=""), call("a", name="x" * 500)],
    ids=["bad_id", "call_without_name", "bad_name"],
)
def test_a_long_id_or_name_is_shown_by_its_beginning(asks: Item) -> None:
    shown = violations([USER, asks])[-1].message
    assert "x" * 80 in shown
    assert "x" * 81 not in shown
