"""`mark_protected`: the compaction specification's protected memory, for a message of any dialect."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from support.dialects import CONVERTERS
from support.engine import manager

from compact import MessageError, mark_protected, unmarked
from compact.tools.standins import anthropic_problems

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CHAT = [
    {"role": "user", "content": "Never push."},
    {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
]


@dataclass
class Said:
    role: str
    content: str
    meta: dict[str, Any] | None = None


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: str
    content: str


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: str
    content: str


MESSAGES: list[Any] = [
    *(item for convert in CONVERTERS.values() for item in convert(CHAT)),
    {"kind": "message", "content": "Never push."},
    {"role": "user", "content": "hi", "meta": {"mine": 1}},
    {"role": "user", "content": "hi", "metadata": {"mine": 1}},
    Said("user", "hi"),
    Said("user", "hi", {"mine": 1}),
    Model(role="user", content="hi"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_the_copy_is_protected_and_the_message_is_as_before(message: Any) -> None:
    before = copy.deepcopy(message)
    marked = mark_protected(message)
    assert type(marked) is type(message)
    assert message == before
    notes = marked["meta"] if isinstance(marked, dict) else marked.meta
    assert notes["protected"] is True
    assert mark_protected(marked) is marked
    assert unmarked([message])[0] is message
    assert mark_protected(message, protected=False) is message
    bare = mark_protected(marked, protected=False)
    assert mark_protected(bare) == marked


@pytest.mark.parametrize("make", [dict, Said, Model])
@pytest.mark.parametrize("form", ["preflight", "manual_compact"])
def test_protected_message_never_pruned(make: Any, form: str) -> None:
    """It comes back as the same object, however much goes, and its words are not summarized."""
    rule = mark_protected(make(role="user", content="Never push to the zebra branch."))
    talk: list[Any] = [make(role="system", content="Obey.")]
    for n in range(60):
        talk += [
            make(role="user", content=f"question {n}"),
            make(role="assistant", content=f"answer {n} " + "word " * 300),
        ]
    talk.insert(7, rule)
    talk.append(make(role="user", content="and now?"))
    found = getattr(manager(16_000), form)("s", talk)
    assert len(found) < len(talk)
    assert any(one is rule for one in found)
    others = [str(one) for one in found if one is not rule]
    assert not any("zebra" in text for text in others)


@pytest.mark.parametrize("nothing", [None, "words", 5, [], object(), Said])
def test_what_is_no_message_is_refused(nothing: Any) -> None:
    with pytest.raises(MessageError, match="only a message can be protected"):
        mark_protected(nothing)


def test_a_message_that_cannot_hold_the_mark_is_refused() -> None:
    with pytest.raises(MessageError, match="Closed takes no 'meta'"):
        mark_protected(Closed(role="user", content="hi"))
    with pytest.raises(MessageError, match="its 'meta' is str"):
        mark_protected({"role": "user", "content": "hi", "meta": "mine"})


def test_marks_are_taken_off_before_sending_and_notes_of_the_host_are_not() -> None:
    plain = {"role": "user", "content": "hi"}
    noted = {**plain, "meta": {"mine": 1}}
    assert unmarked([mark_protected(plain), mark_protected(noted), plain]) == [
        plain,
        mark_protected(noted),
        plain,
    ]
    assert unmarked([mark_protected(Said("user", "hi"))]) == [Said("user", "hi")]
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [mark_protected(plain)],
    }
    assert anthropic_problems(body) == ["messages.0.meta: Extra inputs are not permitted"]
    assert anthropic_problems({**body, "messages": unmarked(body["messages"])}) == []
