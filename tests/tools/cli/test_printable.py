"""Nothing that comes from outside can control the terminal that a command prints to."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import compact.tools.cli
from compact import CompactConfig, CompactManager
from compact.tools.cli.app import run
from compact.tools.cli.printing import escaped, printable

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202edrow\r\x08\x7f"
BAD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
SECRET = "ghp_" + "wX4kQz8LmN2vB7tR5yJ9sD1fG6hK3pA0cEu2"


def talk(name: str = "assistant") -> list[dict[str, object]]:
    call = {
        "id": f"c{EVIL}",
        "type": "function",
        "function": {"name": f"t{EVIL}", "arguments": f'{{"a": "{EVIL}"'},
    }
    return [
        {"role": "user", "content": f"hello {EVIL}" * 30},
        {"role": name, "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{EVIL}", "content": EVIL},
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    session = {"id": f"s{EVIL}", "model": f"m{EVIL}", "messages": talk()}
    Path(f"good{EVIL}.jsonl").write_text(json.dumps(session))
    Path("bad.jsonl").write_text(json.dumps({**session, "messages": talk(f"r{EVIL}")}))
    Path("lines.jsonl").write_text(json.dumps(talk()[0]) + "\n{" + EVIL + "\n")
    Path(f"evil{EVIL}.yaml").write_text(
        f'"k{EVIL}": 1\n'.replace("\x07", "").replace("\x08", ""), errors="replace"
    )
    Path("found.json").write_text(
        json.dumps({f"k{EVIL}": 1, "model": f"m{EVIL}", "policy": {f"x{EVIL}": EVIL}})
    )
    Path("folder" + EVIL).mkdir()
    with CompactManager(CompactConfig(max_context_tokens=8_000)) as manager:
        manager.manual_compact(
            f"s{EVIL}", [*talk(), *[{"role": "user", "content": f"more {EVIL} words"}] * 40]
        )
    return tmp_path


COMMANDS: list[list[str]] = [
    ["count", f"good{EVIL}.jsonl"],
    ["count", "bad.jsonl", "--model", EVIL],
    ["count", f"missing{EVIL}.json"],
    ["count", "folder" + EVIL],
    ["count", "lines.jsonl"],
    ["count", "lines.jsonl", "--lenient"],
    ["count", f"good{EVIL}.jsonl", "--tools", f"missing{EVIL}"],
    ["count", f"good{EVIL}.jsonl", "--config", f"evil{EVIL}.yaml"],
    ["count", f"good{EVIL}.jsonl", "--config", "found.json"],
    ["count", f"good{EVIL}.jsonl", "--dialect", EVIL],
    ["check", f"good{EVIL}.jsonl"],
    ["check", "bad.jsonl"],
    ["check", "bad.jsonl", f"--x{EVIL}"],
    ["apply", f"good{EVIL}.jsonl", "--session", EVIL],
    ["apply", f"good{EVIL}.jsonl", "-o", f"no{EVIL}/out.json"],
    ["apply", f"good{EVIL}.jsonl", "--manual"],
    ["apply", f"good{EVIL}.jsonl", "--manual", "-o", f"out{EVIL}.json"],
    ["apply", f"good{EVIL}.jsonl", "--preset", EVIL],
    ["apply", f"good{EVIL}.jsonl", "--window", EVIL],
    ["replay", f"good{EVIL}.jsonl"],
    ["replay", f"good{EVIL}.jsonl", "bad.jsonl", "--policy", f"missing{EVIL}"],
    ["replay", "folder" + EVIL],
    ["replay", f"good{EVIL}.jsonl", "--report", f"x{EVIL}.html"],
    ["replay", f"good{EVIL}.jsonl", "--engine", EVIL],
    ["harness", f"good{EVIL}.jsonl"],
    ["harness", f"good{EVIL}.jsonl", "--pii", EVIL],
    ["regress", f"a{EVIL}", "bad.jsonl"],
    ["config", "show", "found.json"],
    ["config", "check", "found.json"],
    ["archive", "ls"],
    ["archive", "ls", "--root", EVIL],
    ["archive", "show", f"s{EVIL}"],
    ["archive", "show", f"other{EVIL}"],
    ["archive", "grep", "hello"],
    ["archive", "grep", f"({EVIL}"],
    ["archive", "search", "hello words", f"s{EVIL}"],
    ["archive", "verify"],
    ["archive", "prune", "--older-than", EVIL],
    ["archive", "restore", f"s{EVIL}", "-o", f"r{EVIL}.jsonl"],
    ["stats"],
    ["tail", f"s{EVIL}", "--no-follow"],
    ["tail", f"s{EVIL}", "--no-follow", "--json"],
    [f"nonsense{EVIL}"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: " ".join(words).replace(EVIL, "*"))
def test_no_command_prints_control_characters(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(arguments)
    out, err = capsys.readouterr()
    assert out or err
    assert not BAD.search(out), BAD.search(out)
    assert not BAD.search(err), BAD.search(err)


def test_only_one_file_writes_to_the_terminal() -> None:
    """A new command prints through `printing`, or this test names it."""
    direct = re.compile(
        r"sys\.(stdout|stderr)\.write|\.buffer\.write|typer\.echo|(?<![\w.])print\(|[^_]Console\("
    )
    home = Path(compact.tools.cli.__file__).parent
    writers = {file.name for file in home.glob("*.py") if direct.search(file.read_text(encoding="utf-8"))}
    assert writers == {"printing.py", "__init__.py"}, (
        "__init__ writes one fixed sentence, when rich is missing"
    )


def test_json_for_a_terminal_is_the_same_json() -> None:
    text = json.dumps({"a": EVIL, "b": "zażółć 日本 🎉\n"}, ensure_ascii=False)
    assert json.loads(escaped(text)) == json.loads(text)
    assert not BAD.search(escaped(text))
    assert printable("a\tb\nzażółć 日本 🎉") == "a\tb\nzażółć 日本 🎉"


def test_a_restored_session_is_escaped_on_a_terminal_only(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["archive", "restore", f"s{EVIL}"]) == 0
    raw = capsysbinary.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["archive", "restore", f"s{EVIL}"]) == 0
    shown = capsysbinary.readouterr().out
    assert not BAD.search(shown.decode())
    assert [json.loads(line) for line in shown.splitlines()] == [
        json.loads(line) for line in raw.splitlines()
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["count", "talk.jsonl"],
        ["count", "talk.jsonl", "--json"],
        ["check", "talk.jsonl"],
        ["check", "talk.jsonl", "--json"],
        ["apply", "talk.jsonl", "--json"],
        ["apply", "talk.jsonl", "--session", "other"],
        [
            "replay",
            "talk.jsonl",
            "--report",
            "r.html",
            "--report",
            "r.md",
            "--report",
            "r.json",
            "--requests",
            "r.jsonl",
        ],
        ["replay", "talk.jsonl", "--json"],
        ["harness", "talk.jsonl", "--report", "r.html", "--report", "r.md"],
    ],
    ids=" ".join,
)
def test_a_secret_in_a_session_id_is_masked_in_reports(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    Path("talk.jsonl").write_text(json.dumps({"id": f"job-{SECRET}", "messages": messages}) + "\nbroken\n")
    run([*arguments, "--lenient"])
    printed = "".join(capsys.readouterr())
    written = "".join(file.read_text() for file in tmp_path.glob("r.*"))
    assert "job-" in printed + written
    assert SECRET not in printed + written
