"""What each program's files have besides plain turns: compactions, rewinds, branches, bookkeeping, unknown entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.recorded_formats import WRITERS
from support.talks import Step, Talk, Turn, contents
from support.transcript_files import only, texts, written

from compact.messages import dialects
from compact.tools.transcripts import Marker, TranscriptError, read_sessions

TALK: Talk = [Turn("Fix it.", [Step("Done.")])]
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]}
REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": kind, "payload": payload}


def item(entry: dict[str, Any]) -> dict[str, Any]:
    return line("response_item", **entry)


# --- Codex


def test_the_header_of_a_rollout_names_the_session_its_prompt_and_its_model(tmp_path: Path) -> None:
    session = only(WRITERS["codex new"](TALK, tmp_path))
    assert (session.id, session.system, session.model) == ("0199a213", "Be brief.", "gpt-5-codex")
    assert (session.format, session.dialect) == ("codex", "responses")
    assert session.left_out == {"turn_context": 1, "event_msg": 2}
    _, neutral = dialects.read(session.messages, session.dialect)
    assert [message.starts_turn for message in neutral if message.role == "user"] == [False, True]


@pytest.mark.parametrize(
    "header", [{}, {"instructions": None}, {"git": {}, "cwd": "/p", "instructions": "Be brief."}]
)
def test_the_headers_of_older_rollouts(tmp_path: Path, header: dict[str, Any]) -> None:
    first = {"id": "c1", "timestamp": "t", **header}
    session = only(written(tmp_path, [first, SAID, {"record_type": "state"}, REPLY], "rollout.jsonl"))
    assert (session.id, session.messages) == ("c1", [SAID, REPLY])
    assert session.left_out == {"record state": 1}
    assert session.system == (header.get("instructions") or None)


def test_a_compaction_of_codex_is_marked_and_what_it_added_is_kept(tmp_path: Path) -> None:
    summary = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "So far: fixed."}],
    }
    sealed = {"type": "compaction", "encrypted_content": "AAAA"}
    new = line("compacted", message="So far: fixed.", replacement_history=[SAID, summary, sealed])
    old = line("compacted", message="So far: fixed.")
    for compacted, added in ((new, [summary, sealed]), (old, [summary])):
        lines = [
            line("session_meta", id="c1", timestamp="t"),
            item(SAID),
            item(REPLY),
            compacted,
            item(REPLY),
        ]
        session = only(written(tmp_path, lines, "rollout.jsonl"))
        assert session.markers == [Marker(2, "boundary", "So far: fixed."), Marker(2, "summary")]
        found = [{key: value for key, value in each.items() if key != "meta"} for each in session.messages]
        assert found == [SAID, REPLY, *added, REPLY]
        assert session.messages[2]["meta"] == {"injected": True}


def test_turns_that_codex_rolled_back_are_left_out(tmp_path: Path) -> None:
    again = {**SAID, "content": [{"type": "input_text", "text": "No, this."}]}
    back = line("event_msg", type="thread_rolled_back", num_turns=1)
    lines = [
        line("session_meta", id="c", timestamp="t"),
        item(SAID),
        item(REPLY),
        item(again),
        item(REPLY),
        back,
    ]
    session = only(written(tmp_path, [*lines, item(SAID)], "rollout.jsonl"))
    assert session.messages == [SAID, REPLY, SAID]
    assert session.left_out == {"rolled-back item": 2}


def test_items_of_every_type_are_kept_and_others_are_counted_or_reported(tmp_path: Path) -> None:
    kept: list[dict[str, Any]] = [
        SAID,
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "AAAA"},
        {
            "type": "local_shell_call",
            "call_id": "a",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"]},
        },
        {"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "ok"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
        REPLY,
    ]
    older = {"type": "function_call_output", "call_id": "a", "output": {"content": "files", "success": True}}
    mail = line(
        "inter_agent_communication",
        author="root",
        recipient="b",
        content=[{"type": "input_text", "text": "hi"}],
    )
    lines = [line("session_meta", id="c", timestamp="t"), *map(item, kept), item(older), mail]
    lines += [
        item({"type": "ghost_snapshot", "ghost_commit": {}}),
        item({"type": "hologram"}),
        line("world_state"),
    ]
    session = only(written(tmp_path, lines, "rollout.jsonl"))
    assert session.messages[: len(kept)] == kept
    assert session.messages[len(kept)] == {**older, "output": "files"}
    assert texts(session)[-1] == "hi"
    assert session.left_out == {"ghost_snapshot": 1, "world_state": 1}
    assert [skipped.reason for skipped in session.skipped] == ["its type 'hologram' is not known"]


# --- Gemini


def test_a_recorded_session_counts_its_notices_and_reports_unknown_records(tmp_path: Path) -> None:
    file = WRITERS["gemini session"](TALK, tmp_path)
    value = json.loads(file.read_text())
    value["messages"].append({"id": "z", "type": "telepathy", "content": "x"})
    session = only(written(tmp_path, value))
    assert (session.id, session.model) == ("g1", "gemini-2.5-pro")
    assert session.left_out == {"info": 1}
    assert [skipped.reason for skipped in session.skipped] == ["its type 'telepathy' is not known"]
    assert session.messages[-1]["reasoning_content"] == "**Plan** look"


def test_rewinds_updates_and_checkpoints_of_a_recorded_session(tmp_path: Path) -> None:
    def said(name: str, words: str) -> dict[str, Any]:
        return {"id": name, "timestamp": "t", "type": "user", "content": words}

    head = {"sessionId": "g", "projectHash": "h"}
    lines = [
        head,
        said("a", "one"),
        said("b", "two"),
        said("c", "three"),
        {"$rewindTo": "b"},
        said("d", "four"),
    ]
    lines += [said("a", "ONE"), {"$set": {"summary": "s"}}]
    session = only(written(tmp_path, lines, "session.jsonl"))
    assert texts(session) == ["ONE", "four"]
    assert session.left_out == {"rewound record": 2, "earlier state of a record": 1, "$set": 1}
    rebuilt = only(written(tmp_path, [*lines, {"$set": {"messages": [said("x", "new")]}}], "session.jsonl"))
    assert texts(rebuilt) == ["new"]


def test_parts_of_every_kind_are_kept(tmp_path: Path) -> None:
    parts: list[Any] = [
        "bare text",
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"inline_data": {"mime_type": "application/pdf", "data": "BBBB"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "gs://bucket/x.jpg"}},
        {"hologram": {}},
    ]
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    signed = {"text": "done", "thoughtSignature": "sig"}
    value = [{"role": "user", "parts": parts}, {"role": "model", "parts": [code, ran, signed]}]
    assert only(written(tmp_path, value)).messages == value, "a list of contents is read as it is"
    session = only(written(tmp_path, {"history": value}, "checkpoint-a.json"))
    blocks = session.messages[0]["content"]
    assert [block["type"] for block in blocks] == ["text", "text", "image_url", "file", "image_url"]
    assert blocks[2]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert blocks[4]["image_url"]["url"] == "gs://bucket/x.jpg"
    said = json.dumps(session.messages[1])
    assert all(words in said for words in ("print(1)", "OUTCOME_OK", "done"))
    assert session.left_out == {"thought signature": 1}
    assert [skipped.reason for skipped in session.skipped] == ["a part of it is not known (keys: hologram)"]


def test_results_without_ids_answer_the_calls_of_their_name_in_order(tmp_path: Path) -> None:
    calls: list[Any] = [{"functionCall": {"name": name, "args": {}}} for name in ("a", "b", "a")]
    answers = [
        {"functionResponse": {"name": name, "response": {"n": n}}} for n, name in enumerate(("b", "a", "a"))
    ]
    value = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [*answers, {"text": "and?"}]},
    ]
    session = only(written(tmp_path, {"history": value}, "checkpoint-a.json"))
    assert [call["id"] for call in session.messages[1]["tool_calls"]] == ["call_1", "call_2", "call_3"]
    assert [(m["tool_call_id"], m["content"]) for m in session.messages[2:5]] == [
        ("call_2", '{"n":0}'),
        ("call_1", '{"n":1}'),
        ("call_3", '{"n":2}'),
    ]
    assert session.messages[5] == {"role": "user", "content": "and?"}


def test_the_log_of_prompts_is_read_by_session(tmp_path: Path) -> None:
    def entry(session: str, number: int, words: str) -> dict[str, Any]:
        return {"sessionId": session, "messageId": number, "type": "user", "message": words, "timestamp": "t"}

    file = written(
        tmp_path, [entry("a", 0, "one"), entry("b", 0, "two"), entry("a", 1, "three")], "logs.json"
    )
    found = {session.id: texts(session) for session in read_sessions(file)}
    assert found == {"a": ["one", "three"], "b": ["two"]}


def test_the_prompt_and_the_model_of_a_gemini_request(tmp_path: Path) -> None:
    session = only(WRITERS["gemini request"](TALK, tmp_path))
    assert (session.system, session.model, session.dialect) == ("Be brief.", "gemini-2.5-pro", "gemini")
    assert session.messages == contents(TALK), "a request is read as it is, signatures included"


# --- opencode


def part(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"prt_{kind}", "sessionID": "ses_1", "messageID": "msg_1", **more}


def opencode(parts: list[Any], role: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"info": {"id": "msg_1", "sessionID": "ses_1", "role": role, **more}, "parts": parts}


def test_parts_of_opencode_are_converted_counted_or_reported(tmp_path: Path) -> None:
    asked = [
        part("text", text="look"),
        part("file", mime="image/png", url="data:image/png;base64,AAAA", filename="a.png"),
        part("text", text="read by the host", synthetic=True),
        part("text", text="for the screen", ignored=True),
        part("agent", name="build"),
    ]
    failed = {"status": "error", "input": {"path": "x"}, "error": "no such file"}
    shot = {
        "status": "completed",
        "input": {},
        "output": "taken",
        "attachments": [part("file", mime="image/png", url="u")],
    }
    running = {"status": "running", "input": {"n": 1}}
    answered = [
        part("reasoning", text="hm"),
        part("tool", callID="a", tool="read", state=failed),
        part("tool", callID="b", tool="shot", state=shot),
        part("tool", callID="c", tool="bash", state=running),
        part("patch", hash="h", files=[]),
        part("hologram"),
    ]
    value = {"info": {"id": "ses_1", "time": {}}, "messages": [opencode(asked, "user"), opencode(answered)]}
    session = only(written(tmp_path, value))
    assert [message["role"] for message in session.messages] == ["user", "user", "assistant", "tool", "tool"]
    assert session.messages[1]["meta"] == {"injected": True}
    assert [call["id"] for call in session.messages[2]["tool_calls"]] == ["a", "b", "c"]
    assert session.messages[2]["reasoning_content"] == "hm"
    assert session.messages[3]["content"] == "no such file"
    assert [block["type"] for block in session.messages[4]["content"]] == ["text", "image_url"]
    assert session.left_out == {"ignored text": 1, "agent": 1, "patch": 1}
    assert [skipped.reason for skipped in session.skipped] == ["a part's type 'hologram' is not known"]


def test_a_compaction_of_opencode_is_marked(tmp_path: Path) -> None:
    value = [
        opencode([part("text", text="go")], "user"),
        opencode([part("compaction", auto=True)], "user"),
        opencode([part("text", text="So far.")], summary=True),
        opencode([part("text", text="on")], "user"),
    ]
    session = only(written(tmp_path, value))
    assert session.markers == [Marker(1, "boundary"), Marker(1, "summary")]
    assert texts(session) == ["go", "So far.", "on"]


@pytest.mark.parametrize("piece", ["message/ses_1/msg_0001.json", "part/msg_0001/prt_0000.json"])
def test_one_file_of_a_storage_says_which_to_name(tmp_path: Path, piece: str) -> None:
    WRITERS["opencode storage"](TALK, tmp_path)
    with pytest.raises(TranscriptError, match="of an opencode session") as caught:
        list(read_sessions(tmp_path / "storage" / piece))
    assert "storage/session/<project>/<session>.json" in caught.value.hint


def test_a_session_file_whose_messages_are_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="the head of an opencode session, and there is no"):
        list(read_sessions(written(tmp_path, {"id": "ses_9", "time": {}, "title": "t"})))
    with pytest.raises(TranscriptError, match="neither a message nor a session"):
        list(read_sessions(written(tmp_path, {"id": "ses_/../../x", "time": {}})))


# --- Cline


def test_notes_of_cline_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "1770000000000"
    folder.mkdir()
    session = only(WRITERS["cline"](TALK, folder))
    assert (session.id, session.model, session.dialect) == ("1770000000000", "claude-sonnet-4-5", "anthropic")
    assert [set(message) for message in session.messages] == [{"role", "content"}] * 2
    assert session.left_out == {"note ts": 2, "note modelInfo": 2}


@pytest.mark.parametrize("beside", [False, True])
def test_what_the_window_showed_is_refused_with_the_file_to_name(tmp_path: Path, beside: bool) -> None:
    shown = [{"ts": 1, "type": "say", "say": "task", "text": "go"}, {"ts": 2, "type": "ask", "ask": "tool"}]
    if beside:
        WRITERS["cline"](TALK, tmp_path)
    with pytest.raises(TranscriptError, match="not what was sent to the model") as caught:
        list(read_sessions(written(tmp_path, shown, "ui_messages.json")))
    assert (str(tmp_path) in caught.value.hint) is beside
    assert "api_conversation_history.json" in caught.value.hint


# --- Claude Code, pi


def test_the_transcript_of_a_subagent_is_its_own_conversation(tmp_path: Path) -> None:
    def said(role: str, words: str) -> dict[str, Any]:
        message = {"role": role, "content": words}
        return {"type": role, "sessionId": "s", "agentId": "a1", "isSidechain": True, "message": message}

    session = only(written(tmp_path, [said("user", "go"), said("assistant", "gone")], "agent-a1.jsonl"))
    assert (session.id, texts(session)) == ("a1", ["go", "gone"])


def test_what_claude_code_streams_is_read_too(tmp_path: Path) -> None:
    def streamed(kind: str, **more: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "session_id": "s1",
            "uuid": f"u-{kind}-{len(more)}",
            "parent_tool_use_id": None,
            **more,
        }

    call = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]
    answer = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    side = {"role": "user", "content": "for a subagent"}
    lines = [
        streamed("system", subtype="init", tools=["Read"], model="claude-sonnet-4-5"),
        streamed("assistant", message={"id": "m1", "role": "assistant", "content": call}),
        streamed("user", parent_tool_use_id="t1", message=side),
        streamed("user", message={"role": "user", "content": answer}),
        streamed("result", subtype="success", result="done", num_turns=1),
    ]
    session = only(written(tmp_path, lines, "stream.jsonl"))
    assert (session.id, session.format) == ("s1", "claude_code")
    assert [message["content"] for message in session.messages] == [call, answer]
    assert session.left_out == {"system": 1, "line of a side conversation": 1, "result": 1}


def test_unknown_lines_of_claude_code_and_pi_are_reported(tmp_path: Path) -> None:
    said = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "hi"}}
    session = only(written(tmp_path, [said, {"type": "hologram", "sessionId": "s"}], "cc.jsonl"))
    assert [skipped.reason for skipped in session.skipped] == ["its type 'hologram' is not known"]
    head = {"type": "session", "id": "p", "timestamp": "t"}
    told = {"type": "message", "message": {"role": "user", "content": "hi"}}
    branch = {"type": "branch_summary", "summary": "tried x"}
    session = only(written(tmp_path, [head, told, branch, {"type": "hologram"}], "pi.jsonl"))
    assert texts(session) == ["hi", "tried x"]
    assert session.left_out == {"session": 1}
    assert [skipped.reason for skipped in session.skipped] == ["its type 'hologram' is not known"]
