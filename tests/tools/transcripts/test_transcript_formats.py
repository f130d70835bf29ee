"""Session files of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.data import FIXTURES, shared_file

from compact.messages import dialects
from compact.tools.transcripts import Marker, RecordedSession, TranscriptError, read_sessions

RAW = FIXTURES / "raw"


def only(path: Path, **options: Any) -> RecordedSession:
    (session,) = read_sessions(path, **options)
    return session


def written(tmp_path: Path, lines: list[Any]) -> Path:
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def cc(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of a Claude Code file."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if "id" in more:
        message["id"] = more.pop("id")
    return {"type": kind, "sessionId": "s", "isSidechain": False, "message": message, **more}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "ok"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_lines_of_one_reply_and_results_of_one_batch_become_one_message_each(tmp_path: Path) -> None:
    """Even when Claude Code wrote the first result before the reply's next call."""
    lines = [
        cc("user", "go"),
        cc("assistant", [text("both")], id="m1"),
        cc("assistant", [use("a")], id="m1"),
        cc("user", [result("a"), text("note")]),
        cc("assistant", [use("b")], id="m1"),
        cc("user", [result("b")]),
        cc("assistant", [text("done")], id="m2"),
        cc("user", "next"),
        cc("assistant", "plain", id="m2"),
    ]
    assert only(written(tmp_path, lines)).messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [text("both"), use("a"), use("b")]},
        {"role": "user", "content": [result("a"), result("b"), text("note")]},
        {"role": "assistant", "content": [text("done")]},
        {"role": "user", "content": "next"},
        {"role": "assistant", "content": [text("plain")]},
    ]


def test_what_is_not_the_main_conversation_is_left_out(tmp_path: Path) -> None:
    lines = [
        {"type": "summary", "summary": "a title", "leafUuid": "x"},
        {"type": "file-history-snapshot", "isSnapshotUpdate": False},
        cc("user", "go", uuid="u1"),
        cc("user", "side", isSidechain=True),
        cc("assistant", [text("side")], isSidechain=True),
        cc("user", "go", uuid="u1"),
        cc("user", "noise", isMeta=True),
        {"type": "system", "subtype": "turn_duration", "sessionId": "s"},
        {"type": "queue-operation", "sessionId": "s"},
    ]
    session = only(written(tmp_path, lines))
    assert session.messages == [
        {"role": "user", "content": "go"},
        {"role": "user", "content": "noise", "meta": {"injected": True}},
    ]
    assert session.skipped == []
    _, neutral = dialects.read(session.messages, session.dialect)
    assert [message.starts_turn for message in neutral] == [True, False]


def test_compactions_of_claude_code_are_marked(tmp_path: Path) -> None:
    lines = [
        cc("user", "go"),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "sessionId": "s",
            "content": "Conversation compacted",
        },
        cc("user", "This session is being continued", isCompactSummary=True),
        cc("assistant", [text("on it")]),
    ]
    session = only(written(tmp_path, lines))
    assert session.markers == [Marker(1, "boundary", "Conversation compacted"), Marker(1, "summary")]
    assert session.messages[1]["meta"] == {"injected": True}


def test_a_real_claude_code_file() -> None:
    session = only(RAW / "claude_code_small.jsonl.gz")
    assert (session.format, session.dialect) == ("claude_code", "anthropic")
    assert session.id == "0a0314fb-b206-450f-b895-cd5181a28ae5"
    assert session.model == "claude-opus-4-5-20251101"
    assert [message["role"] for message in session.messages] == ["user", "assistant"] * 9
    assert [block["type"] for block in session.messages[1]["content"]] == ["thinking", "text", "tool_use"]
    assert session.skipped == []


def test_broken_records_of_a_claude_code_file_are_reported_not_raised() -> None:
    session = only(RAW / "cc_edge_cases.jsonl.gz")
    assert {skipped.line: skipped.reason for skipped in session.skipped} == {
        10: "its message has no content",
        11: "its message is a str, not an object",
        13: "it is not a Claude Code record",
        14: "it is not a Claude Code record",
        15: "it is not a Claude Code record",
        16: "it is not a Claude Code record",
        18: "its message's content is not made of blocks",
    }
    assert len(session.messages) == 11


def test_a_real_pi_file() -> None:
    session = only(RAW / "pi_session_start.jsonl.gz")
    assert (session.format, session.dialect, session.model) == ("pi", "anthropic", "claude-sonnet-4-5")
    assert [(skipped.line, skipped.reason) for skipped in session.skipped] == [
        (3, "the reply was aborted before it said anything")
    ]
    _, neutral = dialects.read(session.messages, session.dialect)
    assert sum(len(message.calls) for message in neutral) == 58
    assert [len(message.calls) for message in neutral if message.aborted] == [16]
    batch = next(place for place, message in enumerate(neutral) if len(message.calls) > 1)
    assert [call.id for call in neutral[batch].calls] == [
        answer.call_id for answer in neutral[batch + 1].results
    ]


def test_a_pi_file_with_branches_gives_the_last_one(tmp_path: Path) -> None:
    def entry(name: str, parent: str | None, **value: Any) -> dict[str, Any]:
        return {"type": "message", "id": name, "parentId": parent, "timestamp": "t", **value}

    def said(words: str) -> dict[str, Any]:
        return {"role": "user", "content": words}

    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    lines = [
        {"type": "session", "id": "p1", "timestamp": "t"},
        entry("1", None, message=said("root")),
        entry("2", "1", message=said("abandoned")),
        entry("3", "1", type="compaction", summary="so far"),
        entry("4", "3", message={"role": "assistant", "content": [thought, image]}),
        entry("5", "4", message={"role": "bashExecution", "content": "ls"}),
    ]
    session = only(written(tmp_path, lines))
    assert [message["role"] for message in session.messages] == ["user", "assistant"]
    assert session.messages[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]
    assert session.markers == [Marker(1, "boundary", "so far")]
    assert [skipped.reason for skipped in session.skipped] == [
        "messages of role 'bashExecution' are not read"
    ]


@pytest.mark.parametrize("message", [None, "text", {"role": "user"}, {"role": "user", "content": [5]}])
def test_a_pi_line_without_a_message_is_noted(tmp_path: Path, message: Any) -> None:
    said = {"type": "message", "message": {"role": "user", "content": "hi"}}
    lines = [{"type": "session", "id": "p", "timestamp": "t"}, {"type": "message", "message": message}, said]
    session = only(written(tmp_path, lines))
    assert (len(session.messages), len(session.skipped)) == (1, 1)


def test_a_pi_file_with_a_stray_line(tmp_path: Path) -> None:
    said = {"type": "message", "message": {"role": "user", "content": "hi"}}
    file = written(tmp_path, [{"type": "session", "id": "p", "timestamp": "t"}, 5, said])
    with pytest.raises(TranscriptError, match="line 2: it is not a pi record"):
        only(file)
    assert len(only(file, lenient=True).skipped) == 1


def test_a_real_openhands_file() -> None:
    session = only(RAW / "openhands_one_run.jsonl.gz")
    assert (session.id, session.format) == ("ponylang__ponyc-4595", "openhands")
    assert [message["role"] for message in session.messages[:5]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    calls = [call["id"] for message in session.messages for call in message.get("tool_calls", [])]
    answers = [message["tool_call_id"] for message in session.messages if message["role"] == "tool"]
    assert calls[:-1] == answers  # the last call is `finish`
    assert session.tools


def test_an_openhands_reply_with_two_calls_is_one_message(tmp_path: Path) -> None:
    reply = {
        "id": "r1",
        "choices": [{"message": {"content": "both", "tool_calls": [{"id": "a"}, {"id": "b"}]}}],
    }
    history: list[Any] = [
        {"action": "message", "source": "user", "args": {"content": "go"}},
        {
            "action": "run",
            "source": "agent",
            "tool_call_metadata": {"tool_call_id": "a", "model_response": reply},
        },
        {
            "action": "run",
            "source": "agent",
            "tool_call_metadata": {"tool_call_id": "b", "model_response": reply},
        },
        {"observation": "run", "content": "1", "tool_call_metadata": {"tool_call_id": "a"}},
        {"observation": "run", "content": None, "tool_call_metadata": {"tool_call_id": "b"}},
        {"action": "run", "tool_call_metadata": {"model_response": None}},
        {"action": "message", "source": "agent", "message": "done"},
        "noise",
    ]
    session = only(written(tmp_path, [{"history": history}]))
    assert [message["role"] for message in session.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "assistant",
    ]
    assert [message["content"] for message in session.messages] == ["go", "both", "1", "", None, "done"]


def test_a_real_swe_agent_trajectory() -> None:
    session = only(RAW / "sweagent_marshmallow_fc.traj.gz")
    assert (session.format, len(session.messages)) == ("swe_agent", 28)
    calls = [call["id"] for message in session.messages for call in message.get("tool_calls", [])]
    assert calls == [message["tool_call_id"] for message in session.messages if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("folder", "name", "sessions"),
    [
        ("transcripts", "entire_claude_code.jsonl.gz", 72),
        ("transcripts", "misc_coding.jsonl.gz", 3),
        ("transcripts", "tau_bench.jsonl.gz", 215),
        ("transcripts", "trail_smolagents.jsonl.gz", 48),
        ("raw", "pi_large_session.jsonl.gz", 1),
        ("raw", "openhands_output.jsonl.gz", 3),
    ],
)
def test_shared_transcripts_read(folder: str, name: str, sessions: int) -> None:
    found = list(read_sessions(shared_file("data", folder, name)))
    assert len(found) == sessions
    for session in found:
        assert session.messages
        dialects.read(session.messages, session.dialect)
