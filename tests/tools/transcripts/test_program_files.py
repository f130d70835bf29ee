"""What each program's files have besides plain turns: compactions, rewinds, branches, bookkeeping, unknown entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.recorded_formats import WRITERS, Step, Talk, Turn, responses

from compact.messages import dialects
from compact.tools.transcripts import Marker, RecordedSession, TranscriptError, read_sessions

TALK: Talk = [Turn("Fix it.", [Step("Done.")])]
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]}
REPLY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def only(path: Path, **options: Any) -> RecordedSession:
    (session,) = read_sessions(path, **options)
    return session


def written(folder: Path, content: Any, name: str = "talk.json") -> Path:
    """A file of one JSON value; of one per line, if it is named so."""
    file = folder / name
    values = content if name.endswith("l") else [content]
    file.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return file


def texts(session: RecordedSession) -> list[str]:
    return [message.text for message in dialects.read(session.messages, session.dialect)[1]]


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
    session = only(written(tmp_path, value))
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
    session = only(written(tmp_path, value))
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
    assert (session.system, session.model, session.dialect) == ("Be brief.", "gemini-2.5-pro", "chat")


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


# --- what is not understood

LOGS: dict[str, list[Any]] = {
    "a log with types": [{"type": "info", "msg": "started"}, {"type": "api_call", "ms": 12}],
    "a log with types and contents": [
        {"type": "info", "content": "started"},
        {"type": "debug", "content": "x"},
    ],
    "a log with levels": [{"level": "info", "message": "started", "ts": 1}],
    "a log with sessions": [{"type": "info", "sessionId": "s", "message": "started"}],
    "events of an agent": [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}],
    "a rollout of events only": [
        line("session_meta", id="c", timestamp="t"),
        line("event_msg", type="token_count"),
    ],
    "a rollout of unknown items": [line("session_meta", id="c", timestamp="t"), item({"type": "hologram"})],
    "traces": [{"name": "compact.started", "session_id": "s", "properties": {}}],
    "roles without contents": [{"role": "user", "time": 1}, {"role": "assistant", "time": 2}],
    "Bedrock messages": [{"role": "user", "content": [{"text": "hi"}]}],
    "AI SDK UI messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
    "ShareGPT rows": [{"conversations": [{"from": "human", "value": "hi"}]}],
    "prompts": [{"prompt": "a", "completion": "b"}],
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("shape", ["lines", "list", "messages"])
def test_what_is_not_understood_is_an_error_that_says_what_was_seen(
    tmp_path: Path, name: str, lenient: bool, shape: str
) -> None:
    entries = LOGS[name]
    if shape == "lines":
        file = written(tmp_path, entries, "log.jsonl")
    else:
        file = written(tmp_path, entries if shape == "list" else {"messages": entries})
    with pytest.raises(TranscriptError) as caught:
        list(read_sessions(file, lenient))
    words = str(caught.value)
    assert any(key in words for key in sorted(entries[0])), words
    assert caught.value.hint or lenient


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"SQLite format 3\x00", "it is an SQLite database. Export the session as JSON first; for opencode"),
        (b"PK\x03\x04", "it is a ZIP archive. Unpack it; of a ChatGPT export"),
        (b"\x28\xb5\x2f\xfd", "it is compressed with zstd. Unpack it first"),
    ],
)
def test_a_container_says_how_to_get_at_the_transcript(tmp_path: Path, start: bytes, words: str) -> None:
    file = tmp_path / "opencode.db"
    file.write_bytes(start + b"\x00" * 50)
    with pytest.raises(TranscriptError, match=words):
        list(read_sessions(file))


def test_a_new_type_of_item_is_carried_along_among_known_ones(tmp_path: Path) -> None:
    new = {"type": "hologram", "id": "h1", "rays": []}
    entries = [*responses([Turn("hi", [Step("yes")])]), {"type": "reasoning", "id": "r", "summary": []}, new]
    assert only(written(tmp_path, entries)).messages == entries
    with pytest.raises(TranscriptError, match="hologram"):
        list(read_sessions(written(tmp_path, [new])))


def test_a_list_with_one_stranger_names_it(tmp_path: Path) -> None:
    file = written(tmp_path, [{"role": "user", "content": "hi"}, {"type": "note", "words": "x"}])
    with pytest.raises(
        TranscriptError, match=r"messages\[1\] is not a message: it has the keys type, words \(type 'note'\)"
    ):
        list(read_sessions(file))
    session = only(file, lenient=True)
    assert (texts(session), len(session.skipped)) == (["hi"], 1)
