"""What each dialect says, in the neutral form."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from compact.errors import MessageError
from compact.messages import Image, Message, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult, dialects


def read_one(item: Any, dialect: str) -> Message:
    return dialects.read([item], dialect)[1][0]


def test_chat_calls_results_images_refusals_and_reasoning() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    message = read_one(
        {"role": "assistant", "content": "Let me look.", "reasoning_content": "hm", "tool_calls": [call]},
        "chat",
    )
    assert message.parts == (Reasoning("hm"), Text("Let me look."), ToolCall("c1", "read", '{"path": "a"}'))
    assert message.calls[0].parsed_arguments() == {"path": "a"}
    result = read_one({"role": "tool", "tool_call_id": "c1", "content": "data"}, "chat")
    assert (result.role, result.results) == ("tool", (ToolResult("c1", (Text("data"),)),))
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    assert read_one({"role": "user", "content": [picture]}, "chat").parts == (
        Image("https://example.com/a.png", detail="low"),
    )
    assert read_one({"role": "assistant", "content": None, "refusal": "No."}, "chat").parts == (
        Refusal("No."),
    )


def test_chat_legacy_function_calls_pair_by_position() -> None:
    call = read_one(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}, "chat"
    )
    result = read_one({"role": "function", "name": "f", "content": "1"}, "chat")
    assert call.calls == (ToolCall("", "f", "{}", by_position=True),)
    assert result.results[0].by_position
    assert result.results[0].name == "f"


def test_responses_items_of_every_kind() -> None:
    fields = {"id": "rs_1", "summary": [{"type": "summary_text", "text": "plan"}], "encrypted_content": "x"}
    assert read_one({"type": "reasoning", **fields}, "responses").parts == (Reasoning("plan", signed=True),)
    call = read_one({"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"}, "responses")
    assert call.calls == (ToolCall("c", "sh", "ls", free_form=True),)
    click = {"type": "computer_call", "call_id": "c2", "action": {"type": "click"}}
    assert read_one(click, "responses").calls == (
        ToolCall("c2", "computer", {"type": "click"}, free_form=True),
    )
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}
    output = read_one({"type": "computer_call_output", "call_id": "c2", "output": shot}, "responses")
    assert output.results[0].content == (Image("data:image/png;base64,AA=="),)
    for kind in ("item_reference", "web_search_call", "compaction", "mcp_approval_request"):
        item = {"type": kind, "id": "x"}
        assert read_one(item, "responses").parts == (Opaque(kind, origin=item),)


def test_anthropic_blocks_and_a_system_message_in_the_list() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "Reading.", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
    ]
    message = read_one({"role": "assistant", "content": blocks}, "anthropic")
    assert message.signed
    assert [part.kind for part in message.parts] == ["reasoning", "reasoning", "text", "tool_call"]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": True}
    answer = read_one({"role": "user", "content": [result]}, "anthropic")
    assert answer.results == (ToolResult("t1", (Text("x"),), is_error=True),)
    assert not answer.starts_turn, "a result in the user's role starts no turn"
    assert dialects.detect(
        [{"role": "system", "content": "Be kind."}, {"role": "assistant", "content": blocks}]
    ).NAME == ("anthropic")


def test_ai_sdk_parts_as_the_addendum_shows_them() -> None:
    part = {
        "type": "tool-call",
        "toolCallId": "c1",
        "toolName": "write_file",
        "args": {"path": "a", "content": "b"},
    }
    items = [
        {"role": "assistant", "content": [part]},
        {"role": "tool", "content": "ok", "metadata": {"tool_name": "write_file"}},
    ]
    known, messages = dialects.read(items)
    assert known.NAME == "ai_sdk"
    assert messages[0].calls[0].parsed_arguments() == {"path": "a", "content": "b"}
    assert messages[1].results == (ToolResult("", (Text("ok"),), name="write_file", by_position=True),)


def test_harness_artifacts_by_kind_or_type() -> None:
    items = [
        {"kind": "system", "content": "Rules."},
        {"type": "task", "content": "Do it."},
        {"type": "message", "content": "Hi."},
        {"kind": "tool_output", "content": "log"},
        {"kind": "note", "content": "n", "role": "critic"},
    ]
    known, messages = dialects.read(items)
    assert known.NAME == "harness"
    assert [message.role for message in messages] == ["system", "task", "user", "tool", "critic"]
    assert [message.protected for message in messages] == [False, True, False, False, False]


@pytest.mark.parametrize("key", ["meta", "metadata"])
def test_protected_comes_from_meta_or_metadata(key: str) -> None:
    assert read_one({"role": "user", "content": "x", key: {"protected": True}}, "chat").protected
    assert not read_one({"role": "user", "content": "x", key: {"protected": False}}, "chat").protected


class Call(BaseModel):
    id: str
    type: str
    function: dict[str, str]


class Reply(BaseModel):
    """An SDK's own message class, as the OpenAI client returns it."""

    model_config = ConfigDict(extra="allow")
    role: str
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


def test_sdk_objects_are_read_beside_dicts_and_come_back_as_themselves() -> None:
    call = Call(id="c1", type="function", function={"name": "read", "arguments": "{}"})
    reply = Reply(role="assistant", tool_calls=[call])
    items = [{"role": "user", "content": "hi"}, reply, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    known, messages = dialects.read(items)
    assert known.NAME == "chat"
    assert messages[1].calls[0].name == "read"
    assert dialects.write(known, messages)[1] is reply
    changed = known.write(messages[1].with_parts((Text("now text"),)))
    assert isinstance(changed, Reply)
    assert changed.content == "now text"
    assert changed.tool_calls is None


@pytest.mark.parametrize(
    ("items", "index", "expected"),
    [
        ([{"role": "user", "content": "x"}, 7], 1, "int"),
        ([{"role": "user", "content": "x"}, "hello"], 1, "str"),
        ([{"role": "user", "content": "x"}, None], 1, "NoneType"),
        ([{"role": "user", "content": "x"}, {}], 1, "keys: none"),
        ([{"foo": 1}], 0, "keys: foo"),
        ([{"role": "user", "content": 5}], 0, "keys: content, role"),
        ([{"role": "tool", "tool_call_id": "a", "content": "x"}, {"type": "function_call"}], 1, "chat"),
        ([{"type": "reasoning"}, {"role": "user", "content": [{"type": "tool_use"}]}], 1, "responses"),
    ],
)
def test_an_entry_that_is_no_message_is_named_by_index_and_what_was_expected(
    items: list[Any], index: int, expected: str
) -> None:
    with pytest.raises(MessageError) as caught:
        dialects.read(items)
    assert caught.value.index == index
    assert f"messages[{index}]" in str(caught.value)
    assert expected in str(caught.value)
    assert "Expected" in caught.value.hint


@pytest.mark.parametrize(
    ("item", "dialect", "problem"),
    [
        ({"content": "x"}, "chat", "no 'role'"),
        ({"role": 3, "content": "x"}, "chat", "'role' is 3"),
        ({"role": "user", "content": {"a": 1}}, "chat", "'content' is dict"),
        ({"role": "user", "content": [5]}, "chat", "content[0] is not a block"),
        ({"role": "assistant", "tool_calls": {}}, "chat", "'tool_calls' is dict"),
        ({"role": "assistant", "tool_calls": ["x"]}, "chat", "tool_calls[0] is not a call"),
        ({"type": 5}, "responses", "'type' is 5"),
        ({"kind": "system"}, "harness", "'content' is NoneType"),
        ({"content": "x"}, "harness", "no 'kind'"),
    ],
)
def test_a_malformed_entry_says_what_is_wrong(item: dict[str, Any], dialect: str, problem: str) -> None:
    with pytest.raises(MessageError, match="messages\\[0\\] is not a") as caught:
        dialects.read([item], dialect)
    assert problem in str(caught.value)


@pytest.mark.parametrize("wrong", ["text", b"bytes", {"role": "user"}, 5, None])
def test_something_that_is_no_list_is_refused(wrong: Any) -> None:
    with pytest.raises(MessageError, match="expected a list of messages"):
        dialects.read(wrong)


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(MessageError, match="chat, responses, anthropic, ai_sdk, harness"):
        dialects.get("esperanto")
    assert dialects.get("OpenAI-Chat").NAME == "chat"


def test_an_empty_list_is_a_list_of_chat_messages() -> None:
    assert dialects.read([]) == (dialects.get("chat"), [])


def test_the_marks_of_an_aborted_turn() -> None:
    for key in ("stop_reason", "stopReason", "finish_reason"):
        assert read_one({"role": "assistant", "content": "x", key: "aborted"}, "chat").aborted
    assert read_one(
        {"type": "message", "role": "assistant", "content": "x", "status": "incomplete"}, "responses"
    ).aborted
    assert not read_one({"role": "assistant", "content": "x", "finish_reason": "stop"}, "chat").aborted
