"""Messages of every dialect are masked, as dicts and as SDK objects, even if a secret is split over blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from support.data import all_sessions
from support.redaction import letters

from compact.redaction import MASK, Redactor

REDACTOR = Redactor()
KEY = f"sk-ant-api03-{letters('split', 60)}"
GENERATED = letters("cut off", 24)

MESSAGES: dict[str, Any] = {
    "chat": {"role": "user", "content": f"use {KEY}"},
    "chat call": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"key": KEY})}}
        ],
    },
    "chat result": {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"api_key": KEY})},
    "responses call": {
        "type": "function_call",
        "call_id": "c1",
        "name": "f",
        "arguments": json.dumps({"k": KEY}),
    },
    "responses output": {"type": "function_call_output", "call_id": "c1", "output": f"token: {KEY}"},
    "anthropic call": {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"password": "hunter2", "k": [KEY]}}
        ],
    },
    "anthropic result": {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": f"is {KEY}"}]}
        ],
    },
    "ai sdk": {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c", "input": {"apiKey": KEY}}],
    },
    "harness": {"kind": "tool_output", "content": f"password=hunter2 {KEY}"},
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_message_of_every_dialect_is_masked_as_a_copy(message: dict[str, Any]) -> None:
    before = json.dumps(message)
    masked = REDACTOR.redact_message(message)
    text = json.dumps(masked)
    assert KEY not in text
    assert "hunter2" not in text
    assert MASK in text
    assert json.dumps(message) == before
    assert masked.keys() == message.keys()


def test_secret_split_over_neighbouring_blocks_is_found() -> None:
    blocks = [
        {"type": "text", "text": f"the key: {KEY[:20]}"},
        {"type": "text", "text": KEY[20:40]},
        {"type": "text", "text": f"{KEY[40:]} is it"},
        {"type": "image", "source": {}},
        {"type": "text", "text": "end"},
    ]
    masked = REDACTOR.redact_message({"role": "user", "content": blocks})["content"]
    assert [block.get("text") for block in masked] == [f"the key: {MASK}", MASK, f"{MASK} is it", None, "end"]
    assert masked[3] is blocks[3]


@pytest.mark.parametrize(
    ("parts", "masked"),
    [
        (["password: ", "hunter2"], ["password: ", MASK]),
        (["password=", GENERATED], ["password=", MASK]),
        (["Authorization: Bearer ", GENERATED], ["Authorization: Bearer ", MASK]),
        (["AWS_SECRET_ACCESS_KEY=", f"{GENERATED} ok"], ["AWS_SECRET_ACCESS_KEY=", f"{MASK} ok"]),
        (["api_key", f"={GENERATED}"], ["api_key", f"={MASK}"]),
        (["pass", "", "word=hunter2"], ["pass", "", f"word={MASK}"]),
        (['{"password":', f'"{GENERATED}"}}'], ['{"password":', f'"{MASK}"}}']),
        (['{"password": ', "12345}"], ['{"password": ', f"{MASK}}}"]),
    ],
)
def test_secret_cut_off_from_its_name_is_found(parts: list[str], masked: list[str]) -> None:
    content = [{"type": "text", "text": part} for part in parts]
    result = REDACTOR.redact_messages([{"role": "user", "content": content}])[0]["content"]
    assert [part["text"] for part in result] == masked


def test_json_part_next_to_a_text_part_is_still_masked_as_json() -> None:
    content = [{"type": "text", "text": '{"password": 12345}'}, {"type": "text", "text": " is it"}]
    masked = REDACTOR.redact_message({"role": "user", "content": content})["content"]
    assert [part["text"] for part in masked] == [f'{{"password": "{MASK}"}}', " is it"]


def test_thousands_of_split_secrets_are_found_in_one_message() -> None:
    content = [{"type": "text", "text": text} for text in ["password: ", "hunter2 "] * 2_000]
    masked = REDACTOR.redact_message({"role": "user", "content": content})["content"]
    assert [part["text"] for part in masked] == ["password: ", f"{MASK} "] * 2_000


def test_secret_split_inside_a_tool_result_is_found() -> None:
    parts = [{"type": "text", "text": KEY[:30]}, {"type": "text", "text": KEY[30:]}]
    message = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": parts}]}
    masked = REDACTOR.redact_message(message)
    assert [part["text"] for part in masked["content"][0]["content"]] == [MASK, MASK]


class Part(BaseModel):
    type: str
    text: str


class SdkMessage(BaseModel):
    role: str
    content: list[Part] | str


def test_sdk_object_keeps_its_class() -> None:
    message = SdkMessage(
        role="user", content=[Part(type="text", text=KEY[:20]), Part(type="text", text=KEY[20:])]
    )
    masked = REDACTOR.redact_message(message)
    assert masked == SdkMessage(
        role="user", content=[Part(type="text", text=MASK), Part(type="text", text=MASK)]
    )
    clean = SdkMessage(role="user", content="hello")
    assert REDACTOR.redact_message(clean) is clean


@pytest.mark.parametrize("item", ["password=hunter2", ["password=hunter2"], 5, None])
def test_item_that_is_not_a_message_is_masked_too(item: Any) -> None:
    assert "hunter2" not in str(REDACTOR.redact_message(item))


def test_deep_message_does_not_overflow() -> None:
    content: Any = "password=hunter2"
    for _ in range(5_000):
        content = {"content": [content, {"text": "a"}, {"text": "b"}]}
    masked = REDACTOR.redact_message(content)
    for _ in range(5_000):
        masked = masked["content"][0]
    assert masked == f"password={MASK}"


@pytest.mark.sweep
@pytest.mark.no_cover
def test_real_sessions_keep_their_shape_and_mostly_their_objects() -> None:
    """A clean message of a real transcript is returned as the same object, and a masked one differs only in strings."""
    masked = total = 0
    for session in all_sessions()[:25]:
        for message in session["messages"]:
            result = REDACTOR.redact_message(message)
            total += 1
            if result is not message:
                masked += 1
                assert result.keys() == message.keys()
                assert MASK in json.dumps(result)
    assert masked < total * 0.01
