"""Artifacts become a request again: legal for every provider, and the same words as the messages that they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_by
from hypothesis import strategies as st
from support.data import all_sessions
from support.harness import message, output, system, task

from compact.checks import violations
from compact.errors import MessageError
from compact.harness import HarnessConfig, as_artifacts, stabilize, to_request
from compact.messages import dialects
from compact.messages.dialects import harness as dialect
from compact.tools.cli.app import run
from compact.tools.standins import (
    anthropic_problems,
    chat_problems,
    converse_problems,
    gemini_problems,
    responses_problems,
)

DIALECTS = ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"]
TOOL = {"name": "ls", "input_schema": {"type": "object"}}
EVERYTHING = HarnessConfig(budget=10_000_000, pii="none")


def messages_of(request: dict[str, Any]) -> list[Any]:
    return list(request.get("messages", request.get("input", request.get("contents", []))))


def is_legal(request: dict[str, Any], name: str) -> bool:
    """By our own checks, and by the strict stand-in for the provider that it is meant for."""
    refused: list[str] = []
    if name == "anthropic":
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": [TOOL], **request}
        refused = anthropic_problems(body)
    elif name == "gemini":
        refused = gemini_problems(request)
    elif name == "converse":
        refused = converse_problems({"toolConfig": {"tools": [{"toolSpec": TOOL}]}, **request})
    elif name in ("chat", "responses"):
        refused = (chat_problems if name == "chat" else responses_problems)({"model": "gpt-4o", **request})
    assert refused == []
    return violations(messages_of(request), name, in_flight=False) == []


def substance(items: Any, name: str | None = None) -> list[tuple[str, ...]]:
    """What is said, called and answered, in order, whatever the dialect and however it is cut into messages."""
    found: list[tuple[str, ...]] = []
    for each in dialects.read(items, name)[1]:
        for part in each.parts:
            if part.kind == "text" and part.text.strip():
                found.append((each.role, part.text))
            elif part.kind == "tool_call":
                found.append(("call", part.name, json.dumps(part.parsed_arguments(), sort_keys=True)))
            elif part.kind == "tool_result":
                found.append(("result", part.text))
    return found


CALLS = [
    {"id": f"call_{n}12345", "type": "function", "function": {"name": "ls", "arguments": f'{{"path":"{n}"}}'}}
    for n in range(3)
]
CHAT: list[Any] = [
    {"role": "system", "content": "Obey."},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "list them"},
    {"role": "assistant", "content": "Looking.", "tool_calls": CALLS[:2]},
    {"role": "tool", "tool_call_id": CALLS[0]["id"], "content": "a.py"},
    {"role": "tool", "tool_call_id": CALLS[1]["id"], "content": "b.py"},
    {"role": "assistant", "content": None, "tool_calls": CALLS[2:]},
    {"role": "tool", "tool_call_id": CALLS[2]["id"], "content": "c.py"},
    {"role": "assistant", "content": "Three files."},
    {"role": "user", "content": "thanks"},
]


@pytest.mark.parametrize("name", ["chat", "responses", "ai_sdk"])
def test_messages_go_through_artifacts_and_back_unchanged(name: str) -> None:
    request = stabilize(CHAT, EVERYTHING).to_request(name)
    assert is_legal(request, name)
    assert substance(messages_of(request), name) == substance(CHAT)


def test_anthropic_has_its_system_prompt_beside_the_messages() -> None:
    request = stabilize(CHAT, EVERYTHING).to_request("anthropic")
    assert is_legal(request, "anthropic")
    assert request["system"] == "Obey.\n\nBe brief."
    assert substance(request["messages"], "anthropic") == substance(CHAT)[2:]
    assert [one["role"] for one in request["messages"]] == ["user", "assistant"] * 3 + ["user"]


def test_the_messages_of_chat_are_the_very_same_values() -> None:
    found = to_request(as_artifacts(CHAT))["messages"]
    ids = {str(call["id"]): f"call_{n}" for n, call in enumerate(CALLS)}
    text = json.dumps(CHAT)
    for before, after in ids.items():
        text = text.replace(before, after)
    wanted = [{key: value for key, value in one.items() if value is not None} for one in json.loads(text)]
    assert found == wanted


@pytest.mark.sweep
@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("budget", [300, 2_000, 10_000_000])
def test_every_real_session_becomes_a_legal_request(name: str, budget: int) -> None:
    """Whole, and cut to a budget that tears calls from their outputs."""
    for session in all_sessions()[::7]:
        done = stabilize(session["messages"], HarnessConfig(budget=budget, pii="digits"))
        request = done.to_request(name)
        assert is_legal(request, name), session["id"]


@pytest.mark.sweep
def test_every_call_and_result_of_a_real_session_comes_back() -> None:
    sessions = all_sessions()
    compared = 0
    for session in sessions[:: 5 if len(sessions) > 100 else 1]:
        if violations(session["messages"], in_flight=False):
            continue  # a list that no provider takes is mended on the way
        request = stabilize(session["messages"], EVERYTHING).to_request("chat")
        traffic = [
            [one for one in substance(items) if one[0] in ("call", "result")]
            for items in (session["messages"], request["messages"])
        ]
        assert [one[:2] for one in traffic[0]] == [one[:2] for one in traffic[1]], session["id"]
        compared += bool(traffic[0])
    assert compared > min(10, len(sessions) // 3)


words = st.text(alphabet=st.sampled_from('ab \x00\ud800\n{}"'), max_size=8)
artifact = st.fixed_dictionaries(
    {"kind": st.sampled_from([*dialect.KINDS, "note", "reasoning"]), "content": words},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
        "title": words,
        "meta": st.fixed_dictionaries({}, optional={"call": st.sampled_from("ab"), "tool": words}),
    },
)


@given_by(st.lists(artifact, max_size=12), st.sampled_from(DIALECTS), st.booleans())
def test_any_list_of_artifacts_becomes_a_legal_request(drawn: list[Any], name: str, goes_on: bool) -> None:
    given = [
        {**one, "content": "x"} if one["kind"] in ("system", "task") and not one["content"].strip() else one
        for one in drawn
    ]
    given = [*given, message("go")] if goes_on else [message("go"), *given]
    request = to_request([system(), *given], name)
    assert is_legal(request, name)
    assert "go" in json.dumps(messages_of(request))


def test_an_output_without_its_call_gets_one_and_a_call_without_its_output_a_result() -> None:
    given = [message("hi"), output("10:02 Leeds", title="time table"), {"kind": "tool_call", "content": "ls"}]
    found = to_request(given)["messages"]
    assert found[1]["tool_calls"][0]["function"] == {"name": "time_table", "arguments": "{}"}
    assert found[2]["content"] == "time table\n10:02 Leeds"
    assert found[3]["tool_calls"][0]["function"]["name"] == "ls"
    assert found[4]["content"] == "[this output was left out of the context]"


def test_masked_arguments_are_still_arguments() -> None:
    arguments = json.dumps({"host": "db 12345", "ports": [8080, 12, 9090], "retry": {"after": 1500}, "n": 7})
    call = {"id": "c", "type": "function", "function": {"name": "dial", "arguments": arguments}}
    answer = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    session = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}, answer]
    request = stabilize(session, HarnessConfig(pii="digits")).to_request("anthropic")
    assert request["messages"][1]["content"][0]["input"] == {
        "host": "db <REDACTED>",
        "ports": ["<REDACTED>", 12, "<REDACTED>"],
        "retry": {"after": "<REDACTED>"},
        "n": 7,
    }
    assert to_request([{"kind": "tool_call", "content": "sh ls -l"}])["messages"][0]["tool_calls"][0][
        "function"
    ] == {"name": "sh", "arguments": '{"input":"ls -l"}'}


def test_a_task_is_an_instruction_and_other_kinds_say_what_they_are() -> None:
    given = [system(), task("Sort."), {"kind": "note", "content": "rain"}, message("hi", role="assistant")]
    assert to_request(given)["messages"] == [
        {"role": "system", "content": "Obey the operator."},
        {"role": "system", "content": "Sort."},
        {"role": "user", "content": "[note] rain"},
        {"role": "assistant", "content": "hi"},
    ]
    assert to_request([task("Sort.", role="user")])["messages"][0]["role"] == "user"


def test_reasoning_is_not_sent_back() -> None:
    thinking = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "ho"},
            ],
        },
    ]
    assert [one["kind"] for one in as_artifacts(thinking)] == ["message", "reasoning", "message"]
    request = to_request(as_artifacts(thinking), "anthropic")
    assert request["messages"][1] == {"role": "assistant", "content": "ho"}


@pytest.mark.parametrize(
    ("given", "name", "problem"),
    [
        ([message("hi", role="critic")], "chat", "has the role 'critic', which no provider knows"),
        ([system()], "anthropic", "there is nothing to send"),
        ([message("hi")], "harness", "cannot become a request"),
        ([message("hi")], "smoke", "unknown dialect 'smoke'"),
        ([message("hi"), {"kind": "message"}], "chat", r"artifacts\[1\] is not an artifact"),
    ],
)
def test_what_cannot_be_sent_is_refused(given: Any, name: str, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        to_request(given, name)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_command_writes_a_request(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "talk.json", tmp_path / "out.json"
    file.write_text(json.dumps(CHAT))
    assert run(["harness", str(file), "--pii", "none", "--request", name, "-o", str(out)]) == 0
    written = json.loads(out.read_text())
    assert written == stabilize(CHAT, HarnessConfig(pii="none")).to_request(name)
    capsys.readouterr()
    assert run(["check", str(out), "--dialect", name]) == 0, "compact reads what it writes"


def test_the_command_refuses_a_request_without_a_file_and_an_unknown_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(CHAT))
    assert run(["harness", str(file), "--request", "chat"]) == 2
    assert "--request needs -o" in " ".join(capsys.readouterr().err.split())
    assert run(["harness", str(file), "--request", "smoke", "-o", str(tmp_path / "o")]) == 2
    assert "smoke" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
