"""What `compact apply` says about the files that it writes, and what they then hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compact.checks import violations
from compact.tools.cli.app import run


def outputs(turns: int = 12, words: int = 180) -> list[Any]:
    """Turns whose tool outputs are most of what there is."""
    found: list[Any] = []
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        text = " ".join(f"w{n}x{k}" for k in range(words))
        found += [
            {"role": "user", "content": f"Read number {n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
            {"role": "assistant", "content": "It is fine."},
        ]
    return found


def restored(root: Path, name: str, step: int) -> list[Any]:
    out = root.parent / f"step{step}.jsonl"
    assert run(["archive", "restore", name, "--step", str(step), "--root", str(root), "-o", str(out)]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_number_that_json_does_not_know_is_said_mended_and_kept(
    text: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = f'{{"role":"user","content":"x","n":[{text}]}}'
    file, out, root = tmp_path / f"talk.{ending}", tmp_path / "out.jsonl", tmp_path / "archive"
    file.write_text(f"[{message}]" if ending == "json" else message)
    assert run(["check", str(file)]) == 1
    assert "invalid_number" in capsys.readouterr().out
    assert run(["apply", str(file), "-o", str(out), "--root", str(root)]) == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"role": "user", "content": "x", "n": [text]}
    ]
    (removed,) = root.glob("*/conversation_history/removed_*.jsonl")
    assert f'"n":["{text}"]' in removed.read_text()


def test_each_file_is_called_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([*outputs(), {"role": "user", "content": ""}]))
    root = tmp_path / "archive"
    assert (
        run(["apply", str(file), "-o", str(tmp_path / "o.json"), "--window", "9500", "--root", str(root)])
        == 0
    )
    printed = capsys.readouterr().out
    said = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    (summary,) = root.glob("*/summary-001.json")
    assert json.loads(summary.read_text())["summaries"] == []
    assert "if any" in said["summary-001.json"]
    (removed,) = root.glob("*/conversation_history/removed_*.jsonl")
    assert "what repairs removed" in said[f"conversation_history/{removed.name}"]
    assert "as a page" in said["conversation_history/step-001.md"]
    assert len([line for line in printed.splitlines() if line.startswith("conversation_history/")]) == 2


def test_restore_gives_what_went_into_each_step_of_a_file_that_grows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, root, reports = tmp_path / "talk.json", tmp_path / "archive", []
    for turns in (12, 24):
        file.write_text(json.dumps(outputs(turns)))
        out = tmp_path / f"out{turns}.json"
        arguments = ["apply", str(file), "-o", str(out), "--window", "9500", "--root", str(root), "--json"]
        assert run(arguments) == 0
        reports.append(json.loads(capsys.readouterr().out))
        assert violations(json.loads(out.read_text())) == []
    assert [report["step"] for report in reports] == [1, 2]
    name = reports[0]["session"]
    first, second = (restored(root, name, step) for step in (1, 2))
    assert first == outputs(12)
    assert len(first) == reports[0]["before"]["messages"]
    left = json.loads((tmp_path / "out12.json").read_text())
    assert second == [*left, *outputs(24)[len(first) :]]
