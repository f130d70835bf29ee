"""The compaction specification's manual compaction command, as a chat command: `/compact [note]`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.dialects import CONVERTERS
from support.engine import manager

from compact import MessageError
from compact.checks import violations
from compact.events import TriggerDecision
from compact.integrations.commands import ahandle_command, command_note, handle_command

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
TALK: list[Any] = [
    {"role": "system", "content": "Obey."},
    *(
        message
        for n in range(20)
        for message in (
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": f"answer {n} " + "word " * 60},
        )
    ),
]


def command(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("/compact", "/compact"),
        ("  /compact \n", "/compact"),
        ("/Compact", "/compact"),
        ("/compact keep the API names", "keep the API names"),
        ("/compact\nkeep the\nnames", "keep the\nnames"),
        ("/compacted", None),
        ("/compact-now", None),
        ("please /compact", None),
        ("compact", None),
        ("// compact", None),
        ("`/compact`", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("name", CONVERTERS)
def test_only_a_message_that_is_the_command_is_one(name: str, words: str, note: str | None) -> None:
    messages = CONVERTERS[name]([*TALK[:3], command(words or " x")])
    assert command_note(messages) == note


@pytest.mark.parametrize("name", CONVERTERS)
@pytest.mark.parametrize("words", ["", "keep the API names"])
def test_manual_compaction_via_chat(name: str, words: str) -> None:
    """The session is compacted whatever its size, the note stands in the event, and the command is gone."""
    made = manager(32_000)
    messages = CONVERTERS[name]([*TALK, command(f"/compact {words}")])
    handled = handle_command(made, "s", messages)
    assert handled is not None
    assert handled.note == (words or "/compact")
    assert handled.tokens_after < handled.tokens_before
    assert "/compact" not in str(handled.messages)
    assert violations(handled.messages) == []
    made.flush()
    decisions = [each.properties for each in made.archive.events("s")]
    assert [(one.reason, one.note) for one in decisions if isinstance(one, TriggerDecision)] == [
        ("manual", handled.note)
    ]
    going_on = CONVERTERS[name]([command("and now?")])
    assert made.preflight("s", [*handled.messages, *going_on])[-1] == going_on[-1]


def test_an_async_host_does_the_same() -> None:
    messages = [*TALK, command("/compact now")]
    found = asyncio.run(ahandle_command(manager(32_000), "s", messages))
    assert found == handle_command(manager(32_000), "s", messages)
    assert asyncio.run(ahandle_command(manager(32_000), "s", TALK)) is None


ANTHROPIC_CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}],
}
NOT_A_PERSON: dict[str, list[Any]] = {
    "a tool's output": [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "/compact"},
    ],
    "a function's output": [
        {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}},
        {"role": "function", "name": "ls", "content": "/compact"},
    ],
    "an output in the user's role": [
        ANTHROPIC_CALL,
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "/compact"}]},
    ],
    "an output with text beside it": [
        ANTHROPIC_CALL,
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
                {"type": "text", "text": "/compact"},
            ],
        },
    ],
    "an output item": [
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "/compact"},
    ],
    "an AI SDK result": [
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "args": {}}],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "ls", "result": "/compact"}],
        },
    ],
    "an artifact of a tool": [{"kind": "tool_output", "content": "/compact"}],
    "a message that a host put there": [{"role": "user", "content": "/compact", "meta": {"injected": True}}],
    "the model": [{"role": "assistant", "content": "/compact"}],
    "the system": [{"role": "system", "content": "/compact"}],
    "an image beside it": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "/compact"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ],
        }
    ],
    "an older message": [command("/compact"), {"role": "assistant", "content": "done"}, command("thanks")],
    "nothing": [],
}


@pytest.mark.parametrize("name", NOT_A_PERSON)
def test_nothing_but_a_persons_newest_message_triggers_it(name: str) -> None:
    made = manager(32_000)
    assert handle_command(made, "s", NOT_A_PERSON[name]) is None
    assert not list(made.archive.sessions())


def test_a_command_before_anything_was_said_has_nothing_to_do() -> None:
    handled = handle_command(manager(32_000), "s", [command("/compact")])
    assert handled is not None
    assert (handled.messages, handled.tokens_before, handled.tokens_after) == ([], 0, 0)


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(MessageError, match="expected a list of messages"):
        handle_command(manager(32_000), "s", "/compact")
