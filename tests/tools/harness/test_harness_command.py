"""`compact harness`: exit codes, reports, files of every shape and size, and input that is none."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.data import FIXTURES, SHARED
from support.harness import message, output, system, task

from compact.tools.cli.app import run

SESSIONS = FIXTURES / "transcripts" / "sessions.jsonl.gz"
TALK = [system(), task(), message("call 5550100"), output("x " * 300), message("hi")]

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Called:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = run(["harness", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def written(folder: Path, value: Any, name: str = "talk.json", **how: Any) -> Path:
    file = folder / name
    file.write_text(json.dumps(value, **how))
    return file


def in_lines(folder: Path, values: list[Any], name: str = "talk.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(value) + "\n" for value in values))
    return file


def test_all_passed_is_0_and_one_failed_is_1(called: Called, tmp_path: Path) -> None:
    code, out, err = called(written(tmp_path, TALK), "--budget", "100")
    assert (code, err) == (0, "")
    assert "Session talk: passed, " in out
    assert "1 dropped, 1 span masked" in out
    code, out, _ = called(written(tmp_path, [system("Dial 5550100"), message("hi")]))
    assert code == 1
    assert "FAILED" in out
    assert "--pii-allow system" in " ".join(out.split())
    assert called(tmp_path / "talk.json", "--pii-allow", "system,task")[0] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_the_verdict_says_what_was_dropped(called: Called, tmp_path: Path, count: int) -> None:
    talk = [system(), *(message("word " * 9) for _ in range(200)), output("x " * 900), output("y")]
    for n in range(count):
        written(tmp_path, talk, f"{n}.json")
    code, out, _ = called(tmp_path, "--budget", "200", "--report", tmp_path / "out.md")
    dropped = f"{186 * count} of {203 * count} artifacts dropped ({185 * count} message, {count} tool_output)"
    verdict = "Session 0: passed, 193 of 200 tokens, " if count == 1 else "2 of 2 sessions passed, "
    assert code == 0
    assert " ".join(out.split()).startswith(verdict + dropped)
    assert dropped.partition(" (")[0] in (tmp_path / "out.md").read_text()
    for file in tmp_path.glob("*.json"):
        file.write_text(json.dumps([message("hi")]))
    (tmp_path / "out.md").unlink()
    assert ", nothing dropped" in called(tmp_path)[1]


def test_the_json_of_one_session_is_the_report_and_of_several_a_list(called: Called, tmp_path: Path) -> None:
    _, out, _ = called(written(tmp_path, TALK), "--json", "--budget", "1k")
    assert list(json.loads(out)) == ["passed", "tokens", "budget", "checks", "kept", "dropped", "masked"]
    code, out, _ = called(SESSIONS, "--json")
    found = json.loads(out)
    assert list(found) == ["passed", "sessions"]
    assert len(found["sessions"]) == 11
    assert code == (0 if found["passed"] else 1)


@pytest.mark.parametrize(
    "shape", ["lines", "list", "object", "indented", "indented object", "gzip lines", "gzip"]
)
def test_every_shape_of_a_file_gives_the_same_report(called: Called, tmp_path: Path, shape: str) -> None:
    straight = called(written(tmp_path, TALK, "talk.json"), "--json", "--budget", "200")[1]
    (tmp_path / "talk.json").unlink()
    value: Any = {"before": [1], "artifacts": TALK, "after": {"a": 2}} if "object" in shape else TALK
    if "lines" in shape:
        file = in_lines(tmp_path, TALK)
    else:
        file = written(tmp_path, value, indent=2 if "indented" in shape else None)
    if "gzip" in shape:
        packed = tmp_path / f"{file.name}.gz"
        packed.write_bytes(gzip.compress(file.read_bytes()))
        file = packed
    assert called(file, "--json", "--budget", "200")[1] == straight


def test_reports_are_written_in_three_forms_and_nothing_is_overwritten(
    called: Called, tmp_path: Path
) -> None:
    outs = [tmp_path / f"out.{ending}" for ending in ("json", "md", "html")]
    options = [word for out in outs for word in ("--report", out)]
    file = written(tmp_path, TALK)
    assert called(file, *options, "-o", tmp_path / "stable.json")[0] == 0
    assert json.loads(outs[0].read_text())["passed"] is True
    assert "| talk | yes |" in outs[1].read_text()
    assert outs[2].read_text().startswith("<!doctype html>")
    kept = json.loads((tmp_path / "stable.json").read_text())["artifacts"]
    assert [one["kind"] for one in kept] == ["system", "task", "message", "tool_output", "message"]
    assert called(tmp_path / "stable.json")[0] == 0, "what it writes it reads"
    before = [out.read_bytes() for out in outs]
    code, _, err = called(file, "--budget", "50", *options)
    assert code == 2
    assert "out.json exists already" in err
    assert [out.read_bytes() for out in outs] == before
    assert called(file, *options, "--force")[0] == 0


def test_a_failed_run_writes_nothing_over_even_with_force(called: Called, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"kind": "message", "content": "hi"}\n{"kind": "mess')
    code, _, err = called(broken, "--report", out, "--force")
    assert (code, out.read_text()) == (2, "mine")
    assert f"cannot read {broken}, line 2: its JSON is cut off" in err


def test_what_is_read_is_never_written_over_and_no_file_is_written_twice(
    called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, TALK)
    (tmp_path / "link.json").symlink_to(file)
    before = file.read_bytes()
    for options in (["-o", "talk.json"], ["--report", "./talk.json"], ["--report", "link.json"]):
        for force in ([], ["--force"]):
            code, out, err = called("talk.json", *options, *force)
            assert (code, out) == (2, "")
            assert "it is one of the files that are read" in err
    assert called(tmp_path, "-o", file, "--force")[0] == 2
    assert file.read_bytes() == before
    for options in (["--report", "z.json", "-o", "z.json"], ["--report", "z.json", "--report", "./z.json"]):
        code, _, err = called("talk.json", *options, "--force")
        assert code == 2
        assert "name the same file" in err
    assert not (tmp_path / "z.json").exists()


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ": it is empty"),
    "blank": (b"\n\n", ": it is empty"),
    "binary": (b"\x00\x01\x02" * 50, ": it is binary, not text"),
    "utf16": ('{"kind": "a"}'.encode("utf-16"), ": it is UTF-16 text"),
    "truncated list": (
        b'[\n{"kind": "message", "content": "hi"},\n{"kind": "mess',
        ", line 3: its JSON is cut off",
    ),
    "broken list": (
        b'[\n{"kind": "message", "content": "hi"},\n{"kind": }\n]',
        ", line 3: it is not JSON: Expecting value at column 10",
    ),
    "text behind a list": (
        b'[\n{"kind": "message", "content": "hi"}\n]\nmore',
        ", line 4: it is not JSON: Extra data",
    ),
    "content of a wrong kind": (
        b'{"kind": "message", "content": "hi"}\n{"kind": "message", "content": 5}\n',
        ", line 2: it is not an artifact: its 'content' is int, not text",
    ),
    "a kind of a wrong type": (b'[{"kind": 5, "content": "x"}]', "its 'kind' is int, not text"),
    "a line with a kind of a wrong type": (
        b'{"kind": 5}',
        ", line 1: it is not an artifact: its 'kind' is int, not text",
    ),
    "no artifacts": (b"[]", ": it has no messages"),
    "no artifacts under the key": (b'{"artifacts": []}', ": it has no messages"),
    "cut off in a string": (
        b'{"kind": "message", "content": "hi"}\n{"kind": "mess',
        ", line 2: its JSON is cut off: Unterminated string starting at column 10",
    ),
    "a list cut off in a string": (
        b'[\n{"kind": "message", "content": "hi"},\n{"kind": "mess',
        ", line 3: its JSON is cut off: Unterminated string starting at column 10",
    ),
    "no kind": (
        b'{"kind": "message", "content": "hi"}\n{"content": "x"}\n',
        ", line 2: it is not an artifact: it has no",
    ),
    "a wrong priority": (
        b'[\n{"kind": "m", "content": "hi"},\n{"kind": "m", "content": "x", "priority": "high"}]',
        ", line 3: it is not an artifact: its 'priority' is str, not a number",
    ),
    "a number": (
        b'{"kind": "message", "content": "hi"}\n17\n',
        ", line 2: it is a single int, not an artifact",
    ),
    "one bad artifact in a line": (
        b'[{"kind": "m", "content": "x"}, {"kind": "m"}]',
        "artifacts[1] is not an artifact",
    ),
    "not UTF-8": (b'{"kind": "message", "content": "hi"}\n{"kind": "\xff"}\n', ", line 2: it is not UTF-8"),
    "broken gzip": (
        gzip.compress(b'{"kind": "message", "content": "hi"}\n' * 999)[:60],
        "gzip data is broken",
    ),
    "prose": (b"Dear reader,\n\nnothing here.", ", line 1: it is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_file_and_line_and_exit_2(called: Called, tmp_path: Path, name: str) -> None:
    data, words = BAD[name]
    file = tmp_path / "in.jsonl"
    file.write_bytes(data)
    code, out, err = called(file, "--report", tmp_path / "out.json")
    assert (code, out) == (2, "")
    assert err.startswith(f"compact: cannot read {file}")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["missing.json"], "cannot read missing.json: there is no such file"),
        ([], "name a FILE"),
        (["."], "has no transcripts"),
        (["talk.json", "--budget", "0"], "--budget must be a number of tokens"),
        (["talk.json", "--budget", "-5"], "--budget must be a number of tokens"),
        (["talk.json", "--keep-messages", "-1"], "keep_messages must be"),
        (["talk.json", "--pii", "phones"], "there is no masking rule 'phones'"),
        (["talk.json", "--pii", "missing.yaml"], "cannot read missing.yaml: No such file"),
        (["talk.json", "--report", "out.pdf"], "a report ends in .json, .md, .html, not '.pdf'"),
        (["talk.json", "--report", "nowhere/out.json"], "there is no folder nowhere"),
        (["talk.json", "--scenarios"], "--scenarios stands alone"),
        (["--scenarios", "--report", "out.json"], "--scenarios stands alone"),
        (["--scenarios", "-o", "out.json"], "--scenarios stands alone"),
        (["talk.json", "--turns", "-o", "out.json"], "--turns and -o exclude each other"),
        (["talk.json", "--turns", "--every-turn"], "--turns and --every-turn exclude each other"),
        (["talk.json", "--heuristic", "best"], "there is no truncation heuristic"),
    ],
)
def test_bad_usage_is_exit_2(
    called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside" if options == ["."] else tmp_path)
    if options != ["."]:
        written(tmp_path, TALK)
    code, out, err = called(*options)
    assert (code, out) == (2, "")
    assert words in err


def test_lenient_leaves_bad_lines_out_and_says_which_once(called: Called, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(
        '{"kind": "message", "content": "hi"}\nbroken\n{"kind": "message"}\n{"kind": "note", "content": "x"}\n'
    )
    code, out, err = called(file, "--lenient", "--json")
    assert code == 0
    assert [line["kind"] for line in json.loads(out)["kept"]] == ["message", "note"]
    assert err.count("2 lines left out: line 2") == 1


def test_rules_come_from_a_file(called: Called, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - id: employee\n    pattern: 'EMP-[0-9]+'\n  - email\n")
    out = tmp_path / "stable.json"
    file = written(tmp_path, [message("EMP-7 wrote a@example.org in 2024")])
    assert called(file, "--pii", rules, "-o", out)[0] == 0
    assert json.loads(out.read_text())["artifacts"][0]["content"] == "<REDACTED> wrote <REDACTED> in 2024"
    rules.write_text("[{id: broken, pattern: '('}]")
    code, _, err = called(file, "--pii", rules)
    assert code == 2
    assert "redaction rule 'broken' is refused" in err


def test_turns_are_the_requests_of_one_session_and_a_change_is_named(called: Called, tmp_path: Path) -> None:
    def request(words: str) -> dict[str, Any]:
        return {"messages": [{"role": "system", "content": words}, {"role": "user", "content": "hi"}]}

    file = in_lines(tmp_path, [request("Obey."), request("Obey."), request("Obey?"), request("Obey.")])
    code, out, _ = called(file, "--turns", "--json")
    (control,) = [check for check in json.loads(out)["checks"] if check["name"] == "control"]
    assert code == 1
    assert len(control["details"]) == 1
    assert control["details"][0].startswith("turn 3: m0 (system) was altered: sha256 ")
    assert called(in_lines(tmp_path, [request("Obey.")] * 3), "--turns")[0] == 0


def test_every_turn_is_checked_and_the_largest_one_is_reported(called: Called, tmp_path: Path) -> None:
    def request(*words: str) -> dict[str, Any]:
        talk = [{"role": "user", "content": each} for each in words]
        return {"messages": [{"role": "system", "content": "Obey."}, *talk]}

    file = in_lines(
        tmp_path, [request("hi"), request("call 5550100"), request("hi", "word " * 200), request("hi")]
    )
    code, out, _ = called(file, "--turns", "--json", "--budget", "100")
    report = json.loads(out)
    details = {check["name"]: check["details"] for check in report["checks"]}
    assert (code, report["passed"]) == (1, False)
    assert list(details) == ["pii", "budget", "order", "control"]
    assert details["pii"] == ["turn 2: m1 (message) holds personal data: 1 span"]
    assert details["budget"][0].startswith("turn 3: 2")
    assert report["tokens"] > 200
    assert [line["id"] for line in report["kept"]] == ["m0", "m1", "m2"]
    assert (details["order"], details["control"]) == ([], [])


def test_the_scenarios_run_as_a_command(called: Called) -> None:
    code, out, _ = called("--scenarios")
    assert code == 0
    assert out.count("passed  ") == 4


def test_the_help_says_what_a_hit_in_a_system_artifact_does(called: Called) -> None:
    code, out, _ = called("--help")
    assert code == 0
    assert "a match in one fails the check" in " ".join(out.replace("│", " ").split())


@pytest.mark.sweep
@pytest.mark.no_cover
def test_every_shared_transcript_goes_through(called: Called) -> None:
    folder = SHARED / "data" / "transcripts"
    raw = [file for file in sorted((FIXTURES / "raw").iterdir()) if ".yaml" not in file.name]
    files = [*(sorted(folder.glob("*.gz")) if folder.exists() else [SESSIONS]), *raw]
    code, out, _ = called(*files, "--json", "--pii", "none")
    sessions = json.loads(out)["sessions"]
    assert code == 0
    assert len(sessions) > 11
    assert all(one["tokens"] <= one["budget"] for one in sessions)


_PEAK = """
import resource, sys
from compact.tools.cli.app import run
run(["count", sys.argv[2]])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code = run(["harness", sys.argv[1], "--budget", "20k", "--pii", "none", "--report", sys.argv[3]])
print(code, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def peak_growth(file: Path, folder: Path) -> tuple[int, int]:
    """Exit code, and by how many MB the peak grew beyond that of a process with everything loaded."""
    small = written(folder, [{"role": "user", "content": "hi"}], "small.json")
    out = folder / f"{file.name}.report.json"
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(file), str(small), str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    code, grown = done.stdout.split()[-2:]
    return int(code), int(grown)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["lines", "list"])
def test_a_file_of_200_mb_is_streamed(tmp_path: Path, shape: str) -> None:
    file = tmp_path / "big.json"
    words = json.dumps("lorem ipsum dolor sit amet " * 400)
    with file.open("w") as stream:
        stream.write("[" if shape == "list" else "")
        for n in range(20_000):
            stream.write(f'{{"kind": "tool_output", "content": {words}, "id": "{n}"}}')
            stream.write("\n" if shape == "lines" else ", ")
        stream.write('{"kind": "message", "content": "hi"}' + ("]" if shape == "list" else ""))
    assert file.stat().st_size > 200_000_000
    code, grown = peak_growth(file, tmp_path)
    assert code == 0
    assert grown < 100


@pytest.mark.sweep
def test_a_file_of_20_mb_is_streamed(tmp_path: Path) -> None:
    file = tmp_path / "big.jsonl"
    line = json.dumps(output("lorem ipsum dolor sit amet " * 4_000))
    file.write_text((line + "\n") * 200)
    assert file.stat().st_size > 20_000_000
    code, grown = peak_growth(file, tmp_path)
    assert code == 0
    assert grown < 16, "less than the file"


@pytest.mark.slow
def test_100_000_artifacts_are_one_session(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"kind": "message", "content": "word {n}"}}\n' for n in range(100_000)))
    out = tmp_path / "out.json"
    assert run(["harness", str(file), "--pii", "none", "--report", str(out), "--budget", "9k"]) == 0
    report = json.loads(out.read_text())
    assert len(report["kept"]) + len(report["dropped"]) == 100_000
    assert report["kept"][-1]["id"] == "message-99999"
    assert report["tokens"] <= 9_000
