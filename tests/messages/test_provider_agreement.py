"""Our rules against an independent reading of the providers' documentation: the rules of the stand-ins."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.data import bundled_sessions
from support.dialects import CONVERTERS, to_artifacts
from support.mutations import damaged, damaged_artifacts, damaged_parts, damaged_untyped
from support.standins import provider_problems, sent
from support.strategies import SESSIONS

from compact import hygiene
from compact.checks import violations

Item = dict[str, Any]
DIALECTS = ["chat", "responses", "anthropic", "gemini", "converse"]
TYPED = ["chat", "responses", "anthropic"]
"""Dialects whose blocks have a type."""
ALL = [*DIALECTS, "ai_sdk", "harness"]
"""The last two are judged in the form in which they are sent."""
DAMAGE = {
    "gemini": damaged_untyped,
    "converse": damaged_untyped,
    "ai_sdk": damaged_parts,
    "harness": damaged_artifacts,
}

STRICTER = {
    # OpenAI takes empty texts, NULs and arguments that are not JSON; models and compatible servers do worse with them.
    # Results of the older function calls need no call, and results may stand in any order.
    "chat": {
        "empty_content",
        "invalid_text",
        "bad_arguments",
        "misplaced_part",
        "orphan_result",
        "result_order",
    },
    # The same; and an output may stand anywhere behind its call, and encrypted reasoning without an id anywhere.
    "responses": {
        "empty_content",
        "invalid_text",
        "bad_arguments",
        "orphan_result",
        "missing_result",
        "result_order",
        "result_not_adjacent",
        "reasoning_separated",
    },
    # Anthropic merges neighbours of one role; gateways in front of it refuse them. An empty reply may end the list.
    "anthropic": {"roles_alternate", "invalid_text", "empty_content", "result_order"},
    # Google takes neighbours of one role, responses in any order and beside other parts, and ids of any form; only newer
    # models ask for signatures. A thought alone, and an id that was used before, are nothing that it documents.
    "gemini": {
        "roles_alternate",
        "invalid_text",
        "empty_content",
        "result_order",
        "result_not_first",
        "bad_id",
        "duplicate_call_id",
        "missing_signature",
        "misplaced_part",
        "invalid_number",
    },
    # A number that JSON does not know makes the body no JSON; here it is judged before it is written. A system prompt that
    # is nothing but a cache point is none.
    "converse": {"invalid_text", "result_order", "invalid_number", "empty_content"},
}
"""Rules that are stricter than the provider, and why. Everything else must agree in both directions."""


def check_agreement(items: list[Item], dialect: str, why: object) -> None:
    found = violations(items, dialect, in_flight=False)
    refused = provider_problems(items, dialect)
    if [item for item in items if item.get("role") != "system"]:  # a list of nothing is no request
        assert found or not refused, (why, refused)
    assert refused or {violation.rule for violation in found} <= STRICTER[dialect], (why, found)


def check_sent(items: list[Item], dialect: str, why: object) -> None:
    before = copy.deepcopy(items)
    after = sent(items, dialect)
    assert violations(after, dialect, in_flight=False) == [], why
    if [item for item in after if item.get("role") != "system"]:
        assert provider_problems(after, dialect) == [], why
    assert items == before, why


def damaged_lists(seeds: range, dialect: str) -> Iterator[tuple[int, list[Item]]]:
    sessions = [session["messages"] for session in bundled_sessions() if len(session["messages"]) < 100]
    convert = to_artifacts if dialect == "harness" else CONVERTERS[dialect]
    lists = [convert(messages) for messages in sessions]
    damage = DAMAGE.get(dialect, damaged)
    for seed in seeds:
        yield seed, damage(random.Random(seed).choice(lists), seed)


def check_damaged(seeds: range, dialect: str) -> None:
    for seed, items in damaged_lists(seeds, dialect):
        if dialect in DIALECTS:
            check_agreement(items, dialect, (seed, dialect))
        check_sent(items, dialect, (seed, dialect))


@pytest.mark.parametrize("dialect", ALL)
def test_damaged_sessions_are_accepted_after_cleaning(dialect: str) -> None:
    check_damaged(range(60 if dialect in TYPED else 400), dialect)


@pytest.mark.sweep
@pytest.mark.no_cover
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
@pytest.mark.parametrize("dialect", ALL)
def test_many_damaged_sessions_are_accepted_after_cleaning(dialect: str, part: int) -> None:
    check_damaged(range(1000 + part * 600, 1600 + part * 600), dialect)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_thousands_of_damaged_sessions_are_accepted_after_cleaning(dialect: str, part: int) -> None:
    check_damaged(range(100_000 + part * 2_000, 102_000 + part * 2_000), dialect)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("dialect", ALL)
def test_none_of_twenty_thousand_damaged_lists_is_refused_after_cleaning(dialect: str, part: int) -> None:
    for seed, items in damaged_lists(range(200_000 + part * 2_500, 202_500 + part * 2_500), dialect):
        check_sent(items, dialect, (seed, dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_legal_sessions_are_accepted(dialect: str, data: st.DataObject) -> None:
    after = hygiene.sendable(data.draw(SESSIONS[dialect]), dialect)
    assert violations(after, dialect, in_flight=False) == []
    # Blocks of the future pass through untouched; today's provider does not know them.
    assert [problem for problem in provider_problems(after, dialect) if "future_thing" not in problem] == []


# --- nothing where content should be

EMPTY: dict[str, Any] = {
    "null": None,
    "empty text": "",
    "blank text": "  ",
    "empty list": [],
    "empty block": [{"type": "text", "text": ""}],
    "blank block": [{"type": "text", "text": " "}],
    "block without text": [{"type": "text", "text": None}],
    "bare strings": ["one", "two"],
    "missing": ...,
}
ROLES = {
    "chat": ["system", "developer", "user", "assistant", "assistant with calls", "tool"],
    "responses": ["system", "developer", "user", "assistant", "tool"],
    "anthropic": ["system", "user", "assistant", "assistant with calls", "tool"],
}


def session_with(dialect: str, role: str, content: Any) -> Any:
    """A short legal session in which one entry of this role has this content."""
    chat: list[Item] = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": "Yes.", "tool_calls": [_call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "text"},
        {"role": "assistant", "content": "Read."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": "Go on."},
    ]
    if dialect == "chat" or dialect == "responses":
        chat.insert(1, {"role": "developer", "content": "More rules."})
    items = copy.deepcopy(CONVERTERS[dialect](chat))
    place, key = _place(items, dialect, role)
    if content is ...:
        del place[key]
    elif role == "assistant with calls" and dialect == "anthropic":
        calls = [block for block in place[key] if block["type"] == "tool_use"]
        place[key] = [
            *(content if isinstance(content, list) else [{"type": "text", "text": content}]),
            *calls,
        ]
    else:
        place[key] = _in_dialect(copy.deepcopy(content), dialect, role)
    return items


def _call(call_id: str) -> Item:
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}


def _place(items: list[Item], dialect: str, role: str) -> tuple[Item, str]:
    if role == "tool":
        if dialect == "anthropic":
            return next(
                block
                for item in items
                for block in item["content"]
                if isinstance(block, dict) and block["type"] == "tool_result"
            ), "content"
        kind = "output" if dialect == "responses" else "content"
        return next(item for item in items if item.get("role") == "tool" or "output" in item), kind
    if role == "assistant with calls":
        return next(
            item for item in items if item.get("tool_calls") or item.get("role") == "assistant"
        ), "content"
    found = [item for item in items if item.get("role") == role and not item.get("tool_calls")]
    return found[-1], "content"


def _in_dialect(content: Any, dialect: str, role: str) -> Any:
    if dialect == "responses" and isinstance(content, list) and content and isinstance(content[0], dict):
        content[0]["type"] = "output_text" if role == "assistant" else "input_text"
    return content


MATRIX = [(dialect, role, form) for dialect in TYPED for role in ROLES[dialect] for form in EMPTY]


@pytest.mark.parametrize(("dialect", "role", "form"), MATRIX)
def test_every_role_without_content_is_made_legal_and_reported(dialect: str, role: str, form: str) -> None:
    if (dialect, role, form) == ("anthropic", "assistant with calls", "missing"):
        form = "null"  # its calls are its content
    items = session_with(dialect, role, EMPTY[form])
    check_agreement(items, dialect, (role, form))
    check_sent(items, dialect, (role, form))
    report = hygiene.clean_report(items, dialect=dialect)
    standing = {id(item) for item in report.messages}
    assert {id(item) for item in items} - standing <= {id(removed.message) for removed in report.removed}


def test_a_result_without_content_keeps_its_place() -> None:
    for form in ("null", "missing", "empty list"):
        after = hygiene.clean(session_with("chat", "tool", EMPTY[form]))
        assert {"role": "tool", "tool_call_id": "a", "content": ""} in after
        items = hygiene.clean(session_with("responses", "tool", EMPTY[form]))
        assert any(item.get("output") in ("", []) for item in items)


def test_a_begun_reply_loses_its_blanks_only_where_it_is_sent() -> None:
    items = [
        {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        {"role": "assistant", "content": "So "},
    ]
    assert violations(items, "anthropic") == []
    assert [v.rule for v in violations(items, "anthropic", in_flight=False)] == ["trailing_blanks"]
    assert hygiene.clean(items, dialect="anthropic") is items
    assert hygiene.sendable(items, "anthropic")[-1] == {"role": "assistant", "content": "So"}
    assert hygiene.sendable(items, "chat") is items


def test_calls_of_others_and_results_of_the_assistant_are_misplaced() -> None:
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    words = {"type": "text", "text": "Hi"}
    items: list[Item] = [
        {"role": "user", "content": [words, use]},
        {"role": "assistant", "content": [words, result]},
    ]
    assert {(v.index, v.rule) for v in violations(items, "anthropic")} >= {
        (0, "misplaced_part"),
        (1, "misplaced_part"),
    }
    check_sent(items, "anthropic", "misplaced")
    named = [
        {"role": "user", "content": "Hi"},
        {"role": "model", "content": "So", "tool_calls": [_call("a")]},
    ]
    cleaned = hygiene.clean(named, dialect="chat")
    assert cleaned[1]["role"] == "assistant", "what calls tools is a reply"


@pytest.mark.parametrize("dialect", [*TYPED, "converse"])
def test_another_name_for_the_model_is_the_assistant_and_any_other_role_the_user(dialect: str) -> None:
    for role, expected in (("model", "assistant"), ("AI", "assistant"), ("critic", "user")):
        items = [
            {"role": "user", "content": "Hi"},
            {"role": role, "content": "So"},
            {"role": "user", "content": "Go"},
        ]
        assert any(v.rule == "unknown_role" for v in violations(items, dialect))
        cleaned = hygiene.clean(items, dialect=dialect)
        assert expected in [item["role"] for item in cleaned if "So" in str(item["content"])]
        assert provider_problems(cleaned, dialect) == []


def test_too_many_cache_marks_are_reported_and_taken_off() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    items: list[Item] = []
    for n in range(6):
        items.append({"role": "user", "content": [{"type": "text", "text": f"part {n}", **mark}]})
        items.append({"role": "assistant", "content": "Yes."})
    check_agreement(items, "anthropic", "marks")
    assert [v.rule for v in violations(items, "anthropic")] == ["cache_marks"]
    check_sent(items, "anthropic", "marks")
    assert hygiene.clean_report(items, dialect="anthropic").removed == (), "a mark is no content"


def test_an_item_that_is_there_twice_keeps_one_id() -> None:
    message = {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "x"}
    once: list[Item] = [reasoning, message, call, output]
    items: list[Item] = [{"role": "user", "content": "Go"}, *once, *once]
    check_agreement(items, "responses", "twice")
    assert {v.rule for v in violations(items, "responses")} >= {"duplicate_item_id"}
    check_sent(items, "responses", "twice")
    after = hygiene.clean(items, dialect="responses")
    assert [item.get("id") for item in after].count("msg_1") == 1
    assert sum(item.get("role") == "assistant" for item in after) == 2, "what it says stays"
