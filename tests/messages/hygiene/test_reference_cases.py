"""The reference cases for guard, sanitizing, turn limit and pairing, run from their file."""

from __future__ import annotations

from typing import Any

import pytest
from support.data import reference_cases

from compact.checks import violations
from compact.hygiene import limit_turns, repair_tool_pairs, sanitize
from compact.windows import check_window, window_of

Item = dict[str, Any]

NOT_OURS = {
    "O008": "the older guard let an invalid window pass; an invalid window blocks (O024)",
    "O074": "history limits per chat channel belong to the host",
    "O076": "history limits per chat channel belong to the host",
    "O078": "history limits per chat channel belong to the host",
}
AREAS = (
    "guard_16k_32k",
    "guard_resolve",
    "guard_new_4k_8k",
    "guard_message",
    "pairing_repair",
    "sanitize_calls",
    "call_ids",
    "limit_turns",
    "history_limit_lookup",
)


def cases(*areas: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{case['id']} {case['name']}")
        for case in reference_cases(*areas)
        if case["id"] not in NOT_OURS
    ]


def test_the_cases_left_out_are_named_with_a_reason() -> None:
    """A new case in the file is run, or stands in the list above: none is skipped in silence."""
    run = {param.values[0]["id"] for area in AREAS for param in cases(area)}
    assert run | set(NOT_OURS) == {case["id"] for area in AREAS for case in reference_cases(area)}
    assert len(run) > 30


def message(word: str) -> Item:
    """One word of the file's language, as a chat message."""
    kind, _, ids = word.partition(":")
    if kind in ("T", "T!"):
        calls = [
            {"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}}
            for i in ids.split(",")
        ]
        aborted = {"stop_reason": "aborted"} if kind == "T!" else {}
        return {"role": "assistant", "content": "working", "tool_calls": calls, **aborted}
    if kind in ("r", "r*"):
        return {"role": "tool", "tool_call_id": ids, "content": "result"}
    return {"role": "user" if kind[0] == "u" else "assistant", "content": word}


def word(item: Item) -> str:
    """A chat message in the file's language. Calls of an aborted reply are gone, its words are not."""
    if item["role"] == "tool":
        return f"r{'*' if 'missing tool result' in item['content'] else ''}:{item['tool_call_id']}"
    if item.get("stop_reason") == "aborted":
        return "T!"
    if item.get("tool_calls"):
        return "T:" + ",".join(call["id"] for call in item["tool_calls"])
    return str(item["content"])


@pytest.mark.parametrize("case", cases("guard_16k_32k"))
def test_guard_with_the_older_limits(case: Item) -> None:
    verdict = check_window(case["input"]["window"], min_tokens=16_000, warn_tokens=32_000)
    assert (verdict.warn, verdict.block) == (case["expected"]["warn"], case["expected"]["block"])


@pytest.mark.parametrize("case", cases("guard_new_4k_8k"))
def test_guard_with_the_default_limits(case: Item) -> None:
    expected = case["expected"]
    verdict = check_window(case["input"]["window"], reference_tokens=case["input"]["reference_window"])
    assert verdict.tokens == expected["tokens"]
    assert (verdict.warn, verdict.block) == (expected["warn"], expected["block"])
    assert (verdict.warn_tokens, verdict.min_tokens) == (expected["warn_below"], expected["hard_min"])


@pytest.mark.parametrize("case", cases("guard_resolve"))
def test_where_the_window_comes_from(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    model = "some-unlisted-model"
    if case["id"] == "O014":
        for wrong in ("64000", float("nan"), -1, 0):
            window = window_of(model, windows={model: wrong})
            assert (window.source, window.known) == ("default", False)
        return
    windows = {model: given["model_window"]} if given.get("model_window") else {}
    window = window_of(
        model, configured=given.get("models_config"), windows=windows, cap=given.get("agent_context_tokens")
    )
    assert window.tokens == expected["tokens"]
    if expected.get("block"):
        assert check_window(window.tokens, min_tokens=16_000, warn_tokens=32_000).block


@pytest.mark.parametrize("case", cases("guard_message"))
def test_the_guard_says_what_it_blocked(case: Item) -> None:
    verdict = check_window(case["input"]["window"])
    assert verdict.block
    for fact in ("3000", "4000"):
        assert fact in verdict.reason.replace(",", "")


@pytest.mark.parametrize("case", cases("pairing_repair"))
def test_pairing(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    if "messages" not in given:
        return check_synthetic(case)
    items = [message(entry) for entry in given["messages"]]
    repair = repair_tool_pairs(items)
    want = [entry.split(":")[0] if entry.startswith("T!") else entry for entry in expected["messages"]]
    assert [word(item) for item in repair.messages] == [
        message(w)["content"] if w in ("u", "A") else w for w in want
    ]
    assert repair.added == expected.get("added", repair.added)
    assert repair.dropped_orphans == expected.get("orphans", repair.dropped_orphans)
    if "moved" in expected:
        assert bool(repair.moved) == expected["moved"]
    if expected["messages"] == given["messages"] and not any("T!" in entry for entry in given["messages"]):
        assert repair.messages is items
    assert violations(repair.messages) == []
    return None


def check_synthetic(case: Item) -> None:
    if "call" in case["input"]:
        call = case["input"]["call"]
        function = {"name": call["name"], "arguments": "{}"}
        asks = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call["id"], "type": "function", "function": function}],
        }
        made = repair_tool_pairs([asks, {"role": "user", "content": "go on"}]).messages[1]
        assert (made["role"], made["tool_call_id"], made["name"]) == ("tool", call["id"], call["name"])
        assert case["expected"]["text_contains"] in made["content"]
    else:
        asks = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "", "arguments": "{}"}}],
        }
        named = {"role": "tool", "tool_call_id": "c1", "name": case["input"]["result_name"], "content": "x"}
        assert repair_tool_pairs([asks, named]).messages[1]["name"] == case["expected"]["result_name"]


@pytest.mark.parametrize("case", cases("sanitize_calls"))
def test_sanitizing_calls(case: Item) -> None:
    import json

    expected = case["expected"]
    calls = []
    for block in case["input"]["blocks"]:
        function: Item = {"name": block["name"]}
        if "args" in block:
            function["arguments"] = None if block["args"] is None else json.dumps(block["args"])
        calls.append({"id": block["id"], "type": "function", "function": function})
    items = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    after = sanitize(items, allowed_tools=expected.get("allowed"))
    if expected.get("message_dropped"):
        assert after == items[:1]
        return
    kept = after[1]["tool_calls"]
    if "kept" in expected:
        assert [call["id"] for call in kept] == expected["kept"]
    if "names" in expected:
        assert [call["function"]["name"] for call in kept] == expected["names"]
    if "args" in expected:
        assert json.loads(kept[0]["function"]["arguments"]) == expected["args"]


@pytest.mark.parametrize("case", cases("call_ids"))
def test_call_ids(case: Item) -> None:
    given, expected = case["input"], case["expected"]
    dialect = "anthropic" if given["provider"] == "anthropic" else "chat"
    user = {"role": "user", "content": "go"}
    if "result_id" in given:
        block = {"type": "tool_result", "tool_use_id": given["result_id"], "content": "x"}
        says = {"role": "assistant", "content": "ok"}
        repair = repair_tool_pairs(
            sanitize([user, says, {"role": "user", "content": [block]}], dialect), dialect
        )
        assert repair.dropped_orphans == expected["orphans"]
        return
    call = {"type": "tool_use", "id": given["id"], "name": "read", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": given["id"], "content": "x"}
    items = [user, {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    assert expected["remapped"] == 0
    assert sanitize(items, "anthropic") is items


@pytest.mark.parametrize("case", cases("limit_turns"))
def test_limiting_turns(case: Item) -> None:
    items = [message(entry) for entry in case["input"]["messages"]]
    after = limit_turns(items, case["input"]["limit"])
    assert [word(item) for item in after] == case["expected"]["messages"]
    if len(after) == len(items):
        assert after is items
