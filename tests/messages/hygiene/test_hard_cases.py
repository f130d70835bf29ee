"""Cases that once went wrong, each with what it should have been."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

import compact
from compact import hygiene
from compact.checks import violations
from compact.errors import ConfigError, MessageError
from compact.messages.dialects import detect, read
from compact.tokens import estimate

Item = dict[str, Any]
USER = {"role": "user", "content": "go"}


def call(call_id: str) -> Item:
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, text: str = "x") -> Item:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_a_server_that_repeats_one_id_stays_legal_for_a_host_that_keeps_the_list() -> None:
    kept = [USER]
    for n in range(6):
        kept = hygiene.clean([*kept, call("call_0"), result("call_0", f"answer {n}")])
        assert violations(kept) == []
    assert [item["content"] for item in kept if item["role"] == "tool"] == [f"answer {n}" for n in range(6)]
    full = hygiene.clean(
        [USER, *(m for n in range(6) for m in (call("call_0"), result("call_0", f"answer {n}")))]
    )
    assert full == kept, "both kinds of host get the same ids"


class ToolUse(BaseModel):
    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]


class Assistant(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: list[ToolUse]


class OddDump:
    def model_dump(self) -> Item:
        return {"role": "user", "content": "from an odd object"}


class BrokenDump:
    def model_dump(self, **_: Any) -> Item:
        raise RuntimeError("no")


def test_sdk_objects_whose_type_and_role_are_defaults_are_read_whole() -> None:
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "RESULT"}]}
    for reply in (
        {"role": "assistant", "content": [ToolUse(id="t1", name="f", input={})]},
        Assistant(content=[ToolUse(id="t1", name="f", input={})]),
    ):
        items = [USER, reply, answer]
        assert detect(items).NAME == "anthropic"
        assert hygiene.clean(items) is items


def test_objects_with_another_model_dump_are_read_or_refused_with_their_index() -> None:
    assert read([USER, OddDump()])[1][1].text == "from an odd object"
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        read([USER, BrokenDump()])


def test_ai_sdk_calls_without_an_id_pair_by_position() -> None:
    items = [
        USER,
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "f", "args": {"x": 1}}]},
        {"role": "tool", "content": "out", "metadata": {"tool_name": "f"}},
    ]
    assert hygiene.clean(items) is items


def test_an_aborted_reply_and_its_retry_stay_two_messages() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "IMPORTANT"}
    items = [
        USER,
        {"role": "assistant", "content": [{"type": "text", "text": "Let me"}], "stop_reason": "aborted"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
    ]
    once = hygiene.clean(items)
    assert violations(once, "anthropic") == []
    assert hygiene.clean(once) is once
    assert any(item is items[3] for item in once)


def test_anthropic_neighbours_keep_their_marks_and_keys() -> None:
    rule = {"role": "user", "content": [{"type": "text", "text": "never"}], "meta": {"protected": True}}
    injected = {"role": "user", "content": "reminder", "meta": {"injected": True}}
    person = {"role": "user", "content": "never delete prod", "unknown": 1}
    items = [{"role": "user", "content": "bulk"}, rule, injected, person]
    after = hygiene.clean(items, dialect="anthropic")
    assert violations(after, "anthropic") == []
    assert all(any(a is b for b in after) for a in items)
    assert [m.starts_turn for m in read(after, "anthropic")[1] if m.role == "user"] == [
        True,
        True,
        False,
        True,
    ]


def test_the_marker_is_no_persons_turn() -> None:
    items = [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "x"}]
    once = hygiene.clean(items, max_turns=1, dialect="anthropic")
    assert hygiene.clean(once, max_turns=1, dialect="anthropic") is once


@pytest.mark.parametrize(
    "first",
    [{"role": "developer", "content": [{"type": "text", "text": "hi"}]}, {"role": "tool", "content": "x"}],
)
def test_a_mix_that_no_dialect_has_is_a_clear_error(first: Item) -> None:
    with pytest.raises(MessageError) as caught:
        violations([first, {"role": "user", "type": "message", "content": [{"type": "text", "text": "x"}]}])
    assert caught.value.index in (0, 1)


def test_a_call_whose_function_is_no_object_is_dropped_not_a_crash() -> None:
    items = [USER, {"role": "assistant", "content": "hm", "tool_calls": [{"id": "a", "function": "x"}]}]
    assert violations(items)
    assert violations(hygiene.clean(items)) == []


def test_an_empty_system_message_is_dropped_where_it_would_be_refused() -> None:
    items = [{"role": "system", "content": ""}, USER]
    after = hygiene.clean(items, dialect="anthropic")
    assert violations(after, "anthropic") == []
    assert hygiene.clean(after, dialect="anthropic") is after


def test_a_reference_may_stand_for_an_output() -> None:
    asked = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items = [USER, asked, {"type": "item_reference", "id": "fco_1"}, USER]
    assert violations(items) == []
    assert hygiene.clean(items) is items


def test_taking_out_lonely_reasoning_leaves_no_second_result() -> None:
    items = [
        {"type": "item_reference", "id": "x"},
        {"type": "function_call_output", "call_id": "b", "output": "1"},
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ]
    once = hygiene.clean(items)
    assert violations(once) == []
    assert hygiene.clean(once) is once


def test_newer_and_unknown_response_items_are_carried_along() -> None:
    clicked = {"type": "computer_call", "call_id": "c", "actions": [{"type": "click"}]}
    shot = {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": "u"},
    }
    items = [USER, clicked, shot, {"type": "tool_search_output", "tools": []}]
    assert detect(items).NAME == "responses"
    assert hygiene.clean(items) is items


def test_pictures_never_cost_by_their_length() -> None:
    for size in (10_000, 1_000_000):
        data = "iVBORw0KGgo" + "A" * size
        file = [{"role": "user", "content": [{"type": "file", "data": data, "mimeType": "image/png"}]}]
        made = [{"type": "image_generation_call", "id": "i", "result": data, "status": "completed"}]
        assert estimate(file, dialect="ai_sdk").total < 2000
        assert estimate(made, dialect="responses").total < 2000


def test_every_name_that_dir_shows_exists() -> None:
    for name in dir(compact):
        assert getattr(compact, name) is not None


@pytest.mark.parametrize("wrong", [None, 5, {}, b""])
def test_what_is_no_list_cannot_be_estimated(wrong: Any) -> None:
    with pytest.raises(MessageError, match="expected a list of messages"):
        estimate(wrong)


@pytest.mark.parametrize("wrong", [1.5, "2", True, -1])
def test_a_turn_limit_that_is_no_number_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="max_turns must be 0 or more"):
        hygiene.limit_turns([USER], wrong)
