"""A stand-in in a process of its own, with a script in a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from compact.errors import ConfigError
from compact.tools.standins import Call, Fault, Refusal, Reply
from compact.tools.standins.script_files import read_script

SCRIPT = [
    {"text": "Let me look.", "calls": [{"name": "read", "arguments": {"path": "a.txt"}}], "thinking": "Hm."},
    [{"fault": "overloaded", "retry_after_s": 3}, "Read."],
    {"status": 402, "message": "No credit left.", "kind": "billing_error"},
]
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]


def write(folder: Path, value: Any) -> Path:
    path = folder / "answers.json"
    path.write_text(json.dumps(value))
    return path


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    first, second, third = read_script(write(tmp_path, SCRIPT))
    assert first == Reply("Let me look.", [Call("read", {"path": "a.txt"})], "Hm.")
    assert second == [Fault("overloaded", 3), "Read."]
    assert third == Refusal(402, "No credit left.", "billing_error")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "is not a list of answers"),
        ([], "is not a list of answers"),
        ([5], r"answers\.json\[0\] is no answer"),
        ([["x", 5]], r"answers\.json\[0\]\[1\] is no answer"),
        ([{"txt": "x"}], "has other fields than"),
        ([{"status": 500}], "is incomplete"),
        ([{"calls": ["read"]}], r"calls\[0\] has other fields"),
    ],
)
def test_a_script_that_cannot_be_read_says_where(tmp_path: Path, given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_script(write(tmp_path, given))


@pytest.mark.parametrize("text", ["[", "\x00"])
def test_a_file_that_is_no_list_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_script(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_script(tmp_path / "missing")


def test_a_process_says_its_address_answers_by_turn_and_writes_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "compact.tools.standins", "--script", str(write(tmp_path, SCRIPT))]
    with subprocess.Popen(
        [*command, "--log", str(log), "--window", "300"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("compact standins: http://127.0.0.1:")
            statuses = session(line.split()[-1])
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert statuses == [200, 529, 200, 402, 400, 200]
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    assert [each["answer"] for each in lines] == ["reply", "overloaded", "reply", "402", "nothing", "reply"]
    assert [each["turn"] for each in lines[:4]] == [0, 1, 1, 2]
    assert "prompt is too long" in lines[4]["problems"][0]
    assert lines[0]["tokens"] > 0 == lines[0]["cache"]["read"]


def session(url: str) -> list[int]:
    """A session with one call, a title, and a request that is too long."""
    statuses = []

    def ask(messages: list[Any], tools: Any = TOOLS) -> Any:
        body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": messages, "tools": tools}
        found = httpx.post(f"{url}/v1/messages", json=body, headers={"x-api-key": "none"}, timeout=30)
        statuses.append(found.status_code)
        return found.json()

    messages: list[Any] = [{"role": "user", "content": "Read it."}]
    blocks = ask(messages)["content"]
    result = {"type": "tool_result", "tool_use_id": blocks[-1]["id"], "content": "x"}
    messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    ask(messages)
    messages += [
        {"role": "assistant", "content": ask(messages)["content"]},
        {"role": "user", "content": "On."},
    ]
    ask(messages)
    ask([{"role": "user", "content": "word " * 600}])
    assert ask([{"role": "user", "content": "A title?"}], [])["content"][0]["text"] == "Yes."
    return statuses


def test_a_process_without_a_readable_script_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compact.tools.standins", "--script", str(tmp_path / "missing")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "cannot be read" in ended.stderr
