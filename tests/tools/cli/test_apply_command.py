"""`compact apply`: a transcript in, a shorter one out, and a report of what went where."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.data import FIXTURES

from compact import CompactConfig
from compact.checks import violations
from compact.tokens import estimate
from compact.tools.cli.app import run
from compact.tools.cli.outputs import write_output
from compact.tools.transcripts import read_sessions

SESSIONS = FIXTURES / "transcripts" / "sessions.jsonl.gz"
CLAUDE_CODE = FIXTURES / "raw" / "claude_code_small.jsonl.gz"

Messages: TypeAlias = list[Any]


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = run(["apply", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def talk(turns: int = 30, words: int = 60) -> Messages:
    """Turns with a tool call each: about 200 tokens a turn."""
    found: Messages = [{"role": "system", "content": "Be brief."}]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"n": {n}}}'}}
        output = " ".join(f"out{n}x{k}" for k in range(words))
        found += [
            {"role": "user", "content": f"Read number {n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": output},
            {"role": "assistant", "content": f"Number {n} is fine."},
        ]
    return found


def written(folder: Path, value: Any, name: str = "talk.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(value))
    return file


def sessions_in(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir())


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- the result


def test_the_result_is_a_shorter_list_that_fits_and_is_legal(called: Any, tmp_path: Path) -> None:
    file, out = written(tmp_path, talk()), tmp_path / "out.json"
    code, printed, err = called(file, "-o", out, "--window", "6k", "--root", tmp_path / "archive")
    assert (code, err) == (0, "")
    after = json.loads(out.read_text())
    assert violations(after, "chat") == []
    assert estimate(after, "gpt-4o").total <= CompactConfig().budget(6_000)
    assert after[0] == talk()[0]
    assert after[-1] == talk()[-1]
    assert f"Written to {out}: {len(after)} messages, chat\n" in printed


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.json.gz", "out.jsonl.gz", "out"])
def test_the_name_says_how_it_is_written(called: Any, tmp_path: Path, name: str) -> None:
    """A JSON list, bare lines, gzip of each: all can be read again as a transcript."""
    out = tmp_path / name
    assert called(written(tmp_path, talk()), "-o", out, "--window", "6k")[0] == 0
    data = gzip.decompress(out.read_bytes()) if name.endswith(".gz") else out.read_bytes()
    lines = data.decode().splitlines()
    first = lines[0] if "jsonl" in name else lines[1].rstrip(",")
    assert json.loads(first) == talk()[0]
    (session,) = read_sessions(out)
    assert estimate(session.messages, "gpt-4o").total <= 4_500


def test_the_same_input_gives_the_same_bytes(called: Any, tmp_path: Path) -> None:
    file = written(tmp_path, talk())
    for name in ("a", "b"):
        called(file, "-o", tmp_path / f"{name}.jsonl.gz", "--window", "6k", "--root", tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_the_result_is_in_the_dialect_of_the_input(called: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code, printed, _ = called(CLAUDE_CODE, "-o", out, "--window", "12k", "--manual", "--json")
    report = json.loads(printed)
    assert (code, report["dialect"], report["changed"]) == (0, "anthropic", True)
    assert report["model"] == "claude-opus-4-5-20251101", "the transcript's own"
    assert violations(json.loads(out.read_text()), "anthropic") == []


def test_characters_of_any_kind_survive(called: Any, tmp_path: Path) -> None:
    strange = "日本 \U0001f600 \u2028 \x1b[31m"
    messages = [*talk(), {"role": "user", "content": strange}]
    out = tmp_path / "out.json"
    assert called(written(tmp_path, messages), "-o", out, "--window", "6k")[0] == 0
    assert json.loads(out.read_text())[-1]["content"] == strange


# --- the archive


def test_everything_that_left_is_in_the_archive(called: Any, tmp_path: Path) -> None:
    root = tmp_path / "archive"
    code, printed, _ = called(
        written(tmp_path, talk()), "-o", tmp_path / "out.json", "--window", "6k", "--root", root, "--json"
    )
    report = json.loads(printed)
    assert (code, report["step"], report["archive"]) == (0, 1, f"{root}/{report['session']}/")
    assert "transcript-pre-compact-001.jsonl" in report["files"]
    folder = root / report["session"]
    assert all((folder / name).is_file() for name in report["files"])
    lines = (folder / "transcript-pre-compact-001.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == talk()


def test_the_archive_is_the_configured_one_without_a_root(called: Any, tmp_path: Path) -> None:
    assert called(written(tmp_path, talk()), "-o", tmp_path / "out.json", "--window", "6k")[0] == 0
    (folder,) = sessions_in(tmp_path / ".compact/archive")
    assert (folder / "state-001.json").is_file()


def test_a_second_time_the_same_step_is_applied_again(called: Any, tmp_path: Path) -> None:
    file, first, second = written(tmp_path, talk()), tmp_path / "1.json", tmp_path / "2.json"
    called(file, "-o", first, "--window", "6k")
    code, printed, _ = called(file, "-o", second, "--window", "6k")
    assert code == 0
    assert "Step 1 in the archive is about this session: it was applied again" in printed
    assert first.read_bytes() == second.read_bytes()
    (folder,) = sessions_in(tmp_path / ".compact/archive")
    assert not (folder / "state-002.json").exists()


@pytest.mark.parametrize("own_id", [None, "s1"])
def test_two_files_never_share_a_session(called: Any, tmp_path: Path, own_id: str | None) -> None:
    """Not even if they have the same name, and name the same session: each is restored as it was."""
    root = tmp_path / "archive"
    talks = {place: [*talk(30 + n), {"role": "user", "content": place}] for n, place in enumerate("abc")}
    reports = {}
    for place, messages in talks.items():
        (tmp_path / place).mkdir()
        file = written(tmp_path / place, {"id": own_id, "messages": messages})
        out = tmp_path / f"{place}.json"
        reports[place] = json.loads(called(file, "-o", out, "--window", "6k", "--root", root, "--json")[1])
        assert json.loads(out.read_text())[-1] == messages[-1]
    assert len(sessions_in(root)) == len({report["session"] for report in reports.values()}) == 3
    assert {report["id"] for report in reports.values()} == {own_id or "talk"}
    for place, report in reports.items():
        assert report["step"] == 1
        lines = (root / report["session"] / "transcript-pre-compact-001.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == talks[place]


def test_a_file_that_grew_continues_its_session(called: Any, tmp_path: Path) -> None:
    root = tmp_path / "archive"
    for turns, name in ((30, "1.json"), (60, "2.json")):
        file = written(tmp_path, talk(turns))
        report = json.loads(
            called(file, "-o", tmp_path / name, "--window", "6k", "--root", root, "--json")[1]
        )
    assert (len(sessions_in(root)), report["step"]) == (1, 2)


def test_what_comes_through_a_pipe_is_named_by_its_content(
    called: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "archive"
    names: list[str] = []
    for turns in (30, 40, 30):
        reading, writing = os.pipe()
        os.write(writing, json.dumps(talk(turns)).encode())
        os.close(writing)
        out = tmp_path / f"{len(names)}.json"
        printed = called(f"/dev/fd/{reading}", "-o", out, "--window", "6k", "--root", root, "--json")[1]
        os.close(reading)
        names.append(json.loads(printed)["session"].rpartition("-")[2])
    assert names[0] == names[2] != names[1]


def unwritable(folder: Path) -> dict[str, Path]:
    (folder / "plain").write_text("")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "nowhere").symlink_to(folder / "missing.json")
    return {
        "a folder": folder,
        "no folder": folder / "none" / "out.json",
        "a file in place of its folder": folder / "plain" / "out.json",
        "a name that is too long": folder / f"{'n' * 300}.json",
        "a link to itself": folder / "loop",
        "a link to nothing": folder / "nowhere",
        "a device": Path("/dev/full"),
    }


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    "what",
    [
        "a folder",
        "no folder",
        "a file in place of its folder",
        "a name that is too long",
        "a link to itself",
        "a device",
    ],
)
def test_an_output_that_cannot_be_written_leaves_no_step(
    called: Any, tmp_path: Path, what: str, force: list[str]
) -> None:
    file, out = written(tmp_path, talk()), unwritable(tmp_path)[what]
    code, printed, err = called(file, "-o", out, "--window", "6k", *force)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert str(out) in err
    assert not (tmp_path / ".compact").exists()


def test_a_link_to_nothing_is_not_written_through(called: Any, tmp_path: Path) -> None:
    file, out = written(tmp_path, talk()), unwritable(tmp_path)["a link to nothing"]
    assert called(file, "-o", out, "--window", "6k")[0] == 2
    assert not (tmp_path / ".compact").exists()
    assert called(file, "-o", out, "--window", "6k", "--force")[0] == 0
    assert not out.is_symlink()


def test_a_disk_without_room_is_found_before_the_pass(
    called: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, offset: int, length: int) -> None:
        assert length == file.stat().st_size
        raise OSError(errno.ENOSPC, "No space left on device")

    file = written(tmp_path, talk())
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    code, _, err = called(file, "-o", tmp_path / "out.json", "--window", "6k")
    assert (code, err) == (
        2,
        f"compact: cannot write {tmp_path / 'out.json'}: No space left on device, in {tmp_path}\n",
    )
    assert files_in(tmp_path) == ["talk.json"]


def test_without_an_output_nothing_is_written_at_all(called: Any, tmp_path: Path) -> None:
    file = written(tmp_path, talk())
    code, printed, err = called(file, "--window", "6k", "--root", tmp_path / "archive")
    assert (code, err) == (0, "")
    assert files_in(tmp_path) == ["talk.json"]
    assert "This was a dry run: nothing was written. Add -o OUT to write the result." in printed


# --- the report


def test_the_report_adds_up(called: Any, tmp_path: Path) -> None:
    code, printed, _ = called(written(tmp_path, talk()), "--window", "6k", "--json")
    report = json.loads(printed)
    before, after = report["before"], report["after"]
    assert code == 0
    assert (before["messages"], before["tokens"]) == (121, estimate(talk(), "gpt-4o").total)
    assert before["usage_pct"] == pytest.approx(before["tokens"] / 6_000)
    assert sum(report["saved"].values()) == before["tokens"] - after["tokens"]
    assert sum(level["messages"] for level in report["levels"]) == after["messages"]
    assert sum(level["tokens"] for level in report["levels"]) + 3 == after["tokens"]
    assert (before["violations"], after["violations"]) == (0, 0)
    assert report["summary"].startswith("<COMPACT-SUMMARY v1>")
    assert "messages" not in report


def test_the_page_says_the_same_in_words(called: Any, tmp_path: Path) -> None:
    report = json.loads(called(written(tmp_path, talk()), "--window", "6k", "--json")[1])
    _, out, _ = called(written(tmp_path, talk()), "--window", "6k")
    rows = [line.split() for line in out.splitlines()]
    for name, verdict in (("before", "refuse it: too long"), ("after", "take it")):
        size = report[name]
        row = next(row for row in rows if row[:1] == [name])
        assert row[1:3] == [f"{size['messages']:,}", f"{size['tokens']:,}"]
        assert " ".join(row).endswith(verdict)
    for stage, tokens in report["saved"].items():
        assert [stage, f"{tokens:,}"] in [row[:2] for row in rows]
    for level in report["levels"]:
        assert [level["level"], str(level["messages"])] in [row[:2] for row in rows]
    assert "Compacted, as step 1; compaction starts at 4,500 of 6,000 tokens" in out
    assert "transcript-pre-compact-001.jsonl  the session as it was, message for message" in out


def test_levels_tell_how_much_of_a_message_stands(called: Any, tmp_path: Path) -> None:
    """The newest output, huge, is a preview; older ones are pointers; the oldest are in the summary."""
    messages = talk(20, 100)
    messages[-2]["content"] = "\n".join(f"row {n}" for n in range(8_000))
    report = json.loads(called(written(tmp_path, messages), "--window", "6k", "--json")[1])
    levels = {level["level"]: level["messages"] for level in report["levels"]}
    assert (levels["offloaded"], levels["summary"]) == (1, 1)
    assert levels["whole"] > 1
    assert report["saved"]["offload"] > 20_000
    (large,) = [moved for moved in report["moved"] if moved["tokens_before"] > 20_000]
    assert (large["tool"], large["path"].startswith("/tool_outputs/read_c19_")) == ("read", True)


def test_shrunk_outputs_are_told_from_whole_ones(called: Any, tmp_path: Path) -> None:
    window = estimate(talk(), "gpt-4o").total * 10 // 9
    report = json.loads(called(written(tmp_path, talk()), "--window", str(window), "--json")[1])
    levels = {level["level"]: level["messages"] for level in report["levels"]}
    assert levels == {"whole": 121 - len(report["moved"]), "shrunk": len(report["moved"])}
    assert levels["shrunk"] > 1


def test_an_offload_alone_is_not_called_a_compaction(called: Any, tmp_path: Path) -> None:
    """A huge output is moved out whatever the total; no step is made for it."""
    messages = talk(1)
    messages[3]["content"] = "\n".join(f"row {n}" for n in range(8_000))
    file = written(tmp_path, messages)
    report = json.loads(called(file, "--json")[1])
    assert (report["step"], report["changed"], list(report["saved"])) == (None, True, ["offload"])
    assert [(level["level"], level["messages"]) for level in report["levels"]] == [
        ("whole", 4),
        ("offloaded", 1),
    ]
    assert "Put in order, not compacted" in called(file)[1]


def test_a_broken_transcript_is_mended(called: Any, tmp_path: Path) -> None:
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "lost"}
    file = written(tmp_path, [*talk(1), orphan])
    code, out, _ = called(file)
    assert code == 0
    assert "refuse it: 1 violation" in out
    after = next(line for line in out.splitlines() if line.startswith("after"))
    assert after.endswith("take it")


def test_nothing_to_do_is_said_and_the_list_is_written_as_it_is(called: Any, tmp_path: Path) -> None:
    file, out = written(tmp_path, talk(2)), tmp_path / "out.json"
    code, printed, err = called(file, "-o", out)
    assert (code, err) == (0, "")
    assert "Nothing to do: compaction starts at 108,800 of 128,000 tokens" in printed
    assert json.loads(out.read_text()) == talk(2)


def test_nothing_can_be_saved_is_said_too(called: Any, tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "word " * 17_500}, {"role": "user", "content": "Hi."}]
    code, printed, _ = called(written(tmp_path, messages), "--window", "20k")
    assert code == 0
    assert "Nothing could be saved: all of it is recent or protected" in printed


def test_a_manual_compaction_acts_below_the_threshold(called: Any, tmp_path: Path) -> None:
    file = written(tmp_path, talk(20))
    assert "Nothing to do" in called(file)[1]
    report = json.loads(called(file, "--manual", "--json")[1])
    assert report["step"] == 1
    assert report["after"]["messages"] < report["before"]["messages"]


# --- settings


def test_settings_come_from_a_file_a_preset_or_the_options(called: Any, tmp_path: Path) -> None:
    file = written(tmp_path, talk(5))
    config = written(tmp_path, {"model": "o3", "max_context_tokens": 50_000}, "mine.json")

    def report(*options: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(called(file, "--json", *options)[1])
        return found

    assert (report()["model"], report()["window"]) == ("gpt-4o", 128_000)
    given = report("--config", config)
    assert (given["model"], given["window"], given["trigger"]) == ("o3", 50_000, 42_500)
    given = report("--config", config, "--model", "gpt-4.1", "--window", "9000")
    assert (given["model"], given["window"]) == ("gpt-4.1", 9_000)
    assert report("--preset", "selective")["trigger"] == 60_000
    assert report("--window", "1M")["window"] == 1_000_000
    assert report("--window", "32_000")["window"] == 32_000


def test_one_of_several_sessions_is_named(called: Any) -> None:
    ids = [session.id for session in read_sessions(SESSIONS)]
    report = json.loads(called(SESSIONS, "--session", ids[3], "--json")[1])
    assert report["id"] == ids[3]
    assert report["session"].startswith(f"{ids[3]}-")
    code, out, err = called(SESSIONS)
    assert (code, out) == (2, "")
    assert err.startswith(
        f"compact: {SESSIONS} has {len(ids)} sessions. Choose one with --session: {ids[0]}, "
    )
    assert f"and {len(ids) - 5} more" in err
    code, _, err = called(SESSIONS, "--session", "nobody")
    assert code == 2
    assert "has no session 'nobody'. It has: " in err


def test_the_system_prompt_and_the_tools_of_a_request_are_counted(called: Any, tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "read", "description": "word " * 800}}]
    bare = json.loads(called(written(tmp_path, {"messages": talk(5)}, "a.json"), "--json")[1])
    request = {"messages": talk(5), "tools": tools, "system": "word " * 500}
    full = json.loads(called(written(tmp_path, request, "b.json"), "--json")[1])
    assert full["before"]["tokens"] > bare["before"]["tokens"] + 1_300


# --- what goes wrong


def test_an_existing_file_is_never_overwritten_without_force(called: Any, tmp_path: Path) -> None:
    file, out = written(tmp_path, talk()), tmp_path / "out.json"
    out.write_text("mine")
    code, _, err = called(file, "-o", out, "--window", "6k")
    assert (code, out.read_text()) == (2, "mine")
    assert err == f"compact: {out} exists already. Name another file, or overwrite it with --force\n"
    assert not (tmp_path / ".compact").exists(), "it was refused before anything was done"
    assert called(file, "-o", out, "--window", "6k", "--force")[0] == 0
    assert len(json.loads(out.read_text())) > 1
    assert files_in(tmp_path)[-2:] == ["out.json", "talk.json"], "no temporary file is left"


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine")
    with pytest.raises(Exception, match="exists already"):
        write_output(out, b"ours", force=False)
    assert files_in(tmp_path) == ["out.json"]
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--window", "many"], "--window must be a number of tokens like 32k or 32000, got 'many'"),
        (["--window", "0"], "--window must be a number of tokens"),
        (["--window", "k"], "--window must be a number of tokens"),
        (["--preset", "nice"], "preset"),
        (["--preset", "layered", "--config", "x.json"], "--config and --preset exclude each other"),
        (["--config", "missing.yaml"], "missing.yaml"),
        (["-o", "-"], "-o needs the name of a file"),
        (["-o", "nowhere/out.json"], "there is no folder nowhere"),
        (["--session", "other"], "has no session 'other'. It has: talk"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    called: Any, tmp_path: Path, options: list[str], words: str
) -> None:
    code, out, err = called(written(tmp_path, talk(1)), *options)
    assert (code, out) == (2, "")
    assert err.startswith("compact: ")
    assert err.count("\n") == 1
    assert words in err


def test_an_entry_that_is_no_message_is_named(called: Any, tmp_path: Path) -> None:
    file = written(tmp_path, [*talk(1), {"role": "user", "content": 3}])
    code, _, err = called(file)
    assert code == 2
    assert "messages[5]" in err


def test_what_cannot_fit_is_exit_code_1_with_what_takes_the_room(called: Any, tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "word " * 9_000}, {"role": "user", "content": "Hi."}]
    out = tmp_path / "out.json"
    code, printed, err = called(written(tmp_path, messages), "-o", out, "--window", "8k")
    assert (code, printed) == (1, "")
    assert err.startswith("compact: session talk: what must stay takes 9,0")
    assert "system prompt" in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_a_window_too_small_to_work_in_is_exit_code_1(called: Any, tmp_path: Path) -> None:
    code, _, err = called(written(tmp_path, talk(1)), "--window", "2k")
    assert code == 1
    assert "2000 tokens is too small for a working session" in err


def test_an_archive_whose_place_is_taken_by_a_file_is_exit_code_1(called: Any, tmp_path: Path) -> None:
    root = written(tmp_path, {}, "archive")
    out = tmp_path / "out.json"
    code, _, err = called(written(tmp_path, talk()), "-o", out, "--window", "6k", "--root", root)
    assert (code, out.exists()) == (1, False)
    assert err.startswith("compact: session talk: ")
