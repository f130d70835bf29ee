"""LangChain dumps of every class, and ChatGPT exports with every type of content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.recorded_formats import WRITERS
from support.talks import Step, Talk, Turn
from support.transcript_files import only, texts, written

from compact.tools.transcripts import read_sessions

TALK: Talk = [Turn("Fix it.", [Step("Done.")])]


# --- LangChain


def test_messages_of_every_langchain_class(tmp_path: Path) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    load = pytest.importorskip("langchain_core.load")
    call = {"name": "t", "args": {"x": 1}, "id": "c1"}
    bad = {"name": "u", "args": "{broken", "id": "c2", "error": "not JSON"}
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c1", "name": "t", "input": {"x": 1}},
    ]
    old = {"tool_calls": [{"id": "c3", "type": "function", "function": {"name": "v", "arguments": "{}"}}]}
    talk = [
        messages.SystemMessage("s"),
        messages.ChatMessage(role="developer", content="d"),
        messages.HumanMessage("h", name="anna"),
        messages.AIMessage(blocks, tool_calls=[call], invalid_tool_calls=[bad]),
        messages.ToolMessage("out", tool_call_id="c1", artifact={"raw": 1}),
        messages.ToolMessage([{"type": "text", "text": "no"}], tool_call_id="c2", status="error"),
        messages.RemoveMessage(id="1"),
        messages.FunctionMessage(name="f", content="r"),
        messages.AIMessageChunk("chunk"),
    ]
    first = only(written(tmp_path, load.dumpd(talk)))
    assert [message["role"] for message in first.messages] == [
        "system",
        "developer",
        "user",
        "assistant",
        "tool",
        "tool",
        "function",
        "assistant",
    ]
    reply = first.messages[3]
    assert [made["id"] for made in reply["tool_calls"]] == ["c1", "c2"]
    assert reply["tool_calls"][1]["function"]["arguments"] == "{broken"
    assert (reply["content"], reply["reasoning_content"]) == ([{"type": "text", "text": "hi"}], "hm")
    assert first.left_out == {"RemoveMessage": 1, "artifact of a tool": 1}
    for form in (messages.messages_to_dict(talk), [message.model_dump() for message in talk]):
        assert only(written(tmp_path, form)).messages == first.messages
    legacy = {"type": "ai", "data": {"content": "", "additional_kwargs": old, "tool_calls": []}}
    assert only(written(tmp_path, [legacy])).messages[0]["tool_calls"] == old["tool_calls"]


def test_the_short_form_of_langgraph_is_read_too(tmp_path: Path) -> None:
    short = [
        {"type": "system", "content": "s"},
        {"type": "human", "content": "h"},
        {"type": "ai", "content": "a"},
    ]
    session = only(written(tmp_path, {"messages": short}))
    assert [(message["role"], message["content"]) for message in session.messages] == [
        ("system", "s"),
        ("user", "h"),
        ("assistant", "a"),
    ]


def test_an_entry_that_is_no_message_of_langchain_is_reported(tmp_path: Path) -> None:
    strange = {"lc": 1, "type": "not_implemented", "id": ["x", "Runnable"], "repr": "R()"}
    said = {"type": "human", "data": {"content": "hi"}}
    session = only(written(tmp_path, {"messages": [said, strange]}))
    assert texts(session) == ["hi"]
    assert [skipped.reason for skipped in session.skipped] == [
        "an entry of it is not a message of LangChain (keys: id, lc, repr, type)"
    ]


# --- ChatGPT


def conversation(*messages: dict[str, Any], name: str = "c1") -> dict[str, Any]:
    """A conversation without branches, one node for each message."""
    nodes: dict[str, Any] = {"n0": {"id": "n0", "message": None, "parent": None, "children": []}}
    for place, message in enumerate(messages, 1):
        nodes[f"n{place}"] = {
            "message": {"id": f"m{place}", **message},
            "parent": f"n{place - 1}",
            "children": [],
        }
        nodes[f"n{place - 1}"]["children"].append(f"n{place}")
    return {"conversation_id": name, "mapping": nodes, "current_node": f"n{len(messages)}"}


def gpt(role: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {"author": {"role": role, "name": more.pop("name", None)}, "content": content, **more}


def test_every_conversation_of_an_export_is_a_session(tmp_path: Path) -> None:
    value = [conversation(gpt("user", f"hi {n}"), name=f"c{n}") for n in range(3)]
    found = list(read_sessions(written(tmp_path, value, "conversations.json")))
    assert [(session.id, texts(session)) for session in found] == [(f"c{n}", [f"hi {n}"]) for n in range(3)]


def test_the_branch_that_was_seen_last_is_read_and_the_others_are_counted(tmp_path: Path) -> None:
    session = only(WRITERS["chatgpt"](TALK, tmp_path))
    assert texts(session) == ["Fix it.", "Done."]
    assert session.left_out == {"empty system message": 1, "message of another branch": 1}


def test_contents_of_every_type(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1", "width": 3}
    profile = {
        "content_type": "user_editable_context",
        "user_profile": "I am Anna.",
        "user_instructions": "Be brief.",
    }
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Plan", "content": "look first"}]}
    quote = {"content_type": "tether_quote", "title": "T", "url": "http://x", "text": "quoted"}
    value = conversation(
        gpt("user", profile),
        gpt("user", {"content_type": "multimodal_text", "parts": [picture, "what is it?"]}),
        gpt("assistant", thoughts),
        gpt("assistant", {"content_type": "reasoning_recap", "content": "Thought for 3s"}),
        gpt("assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"),
        gpt("tool", {"content_type": "execution_output", "text": "1"}, name="python"),
        gpt("tool", quote, name="python"),
        gpt("assistant", "A cat.", metadata={"model_slug": "gpt-5"}),
        gpt("tool", "found by the host", name="file_search"),
        gpt("assistant", {"content_type": "hologram", "rays": []}),
        gpt("assistant", {"content_type": "future_text", "text": "still text"}),
    )
    session = only(written(tmp_path, value))
    assert session.model == "gpt-5"
    injected, asked, call, answer, reply, host, last = session.messages
    assert injected == {"role": "user", "content": "I am Anna.\nBe brief.", "meta": {"injected": True}}
    assert [block["text"] for block in asked["content"]] == ["[image file-service://f1]", "what is it?"]
    assert call["reasoning_content"] == "Plan\nlook first"
    assert call["tool_calls"][0]["function"] == {"name": "python", "arguments": '{"input":"print(1)"}'}
    assert answer["tool_call_id"] == call["tool_calls"][0]["id"]
    assert [block["text"] for block in answer["content"]] == ["1", "T\nhttp://x\nquoted"]
    assert (reply["content"], host["meta"], last["content"]) == ("A cat.", {"injected": True}, "still text")
    assert session.left_out == {"reasoning_recap": 1}
    assert [skipped.reason for skipped in session.skipped] == [
        "a message's content type 'hologram' is not known"
    ]


def test_a_tool_that_printed_nothing_has_answered(tmp_path: Path) -> None:
    code, silent = {"content_type": "code", "text": "x = 1"}, {"content_type": "execution_output", "text": ""}
    value = conversation(
        gpt("user", "go"),
        gpt("assistant", code, recipient="python"),
        gpt("tool", silent, name="python"),
        gpt("user", "?"),
    )
    assert [message["role"] for message in only(written(tmp_path, value)).messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_a_tree_that_goes_in_a_circle_ends(tmp_path: Path) -> None:
    value = conversation(gpt("user", "a"), gpt("assistant", "b"))
    value["mapping"]["n0"]["parent"] = "n2"
    assert texts(only(written(tmp_path, value))) == ["a", "b"]
