"""`compact archive`, called in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.archive import SECRET, SettableClock, add_step, conversation, fs_archive, recorder
from support.engine import turns, user

from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.tools.cli.app import run

Call: TypeAlias = Callable[..., tuple[int, str, str]]
COMMANDS = ["ls", "show", "restore", "grep", "search", "ledger", "verify", "prune"]


@pytest.fixture
def called(capsysbinary: pytest.CaptureFixture[bytes]) -> Call:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = run(["archive", *map(str, arguments)])
        printed = capsysbinary.readouterr()
        return code, printed.out.decode(), printed.err.decode()

    return call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The configured root: two sessions, `alpha` with steps of 60 days ago and of today and one output."""
    root = tmp_path / ".compact" / "archive"
    clock = SettableClock(datetime.now(UTC) - timedelta(days=60))
    archive = fs_archive(root, recorder=recorder(clock))
    add_step(archive, "alpha", [{"role": "user", "content": f"old words, {SECRET}"}])
    clock.now = datetime.now(UTC)
    add_step(archive, "alpha", conversation(3))
    archive.put_output("alpha", "the zebra\neats \x1b[31mgrass\n", tool_name="bash", tool_call_id="c1")
    add_step(archive, "beta", conversation(1))
    return root


def opened(root: Path) -> Archive:
    return fs_archive(root)


def damage(root: Path, name: str = "state-001.json", session: str = "alpha") -> None:
    file = root / session / name
    file.write_bytes(file.read_bytes()[:-20])


# --- ls, show


def test_ls_lists_sessions(called: Call, root: Path) -> None:
    code, out, err = called("ls")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows] == ["session", "alpha", "beta"]
    assert (rows[1][1], rows[1][3]) == ("2", "1")
    found = json.loads(called("ls", "--json")[1])
    assert [(row["session_id"], row["steps"], row["outputs"]) for row in found] == [
        ("alpha", 2, 1),
        ("beta", 1, 0),
    ]


def test_ls_of_an_empty_archive_says_so(called: Call, tmp_path: Path) -> None:
    assert called("ls", "--root", tmp_path) == (0, "The archive is empty\n", "")
    assert json.loads(called("ls", "--root", tmp_path, "--json")[1]) == []


def test_show_gives_steps_and_files(called: Call, root: Path) -> None:
    code, out, err = called("show", "alpha")
    assert (code, err) == (0, "")
    assert out.startswith("Session alpha: 2 steps, 3 files, ")
    assert "/conversation_history/step-002.md" in out
    found = json.loads(called("show", "alpha", "--json")[1])
    assert [(row["step"], row["dialect"], row["messages"]) for row in found["steps"]] == [
        (1, "chat", 1),
        (2, "chat", 13),
    ]
    assert [info["path"] for info in found["files"]] == [info.path for info in opened(root).files("alpha")]


def test_damaged_records_are_shown_as_such(called: Call, root: Path) -> None:
    damage(root, "state-002.json")
    for arguments in (("ls",), ("show", "alpha")):
        code, out, err = called(*arguments)
        assert (code, err) == (0, "")
        assert "state-002.json cannot be read" in out
        assert "beta" in called("ls")[1]


# --- restore


def test_restore_gives_the_bytes_of_the_transcript(called: Call, root: Path) -> None:
    code, out, err = called("restore", "alpha")
    assert (code, err) == (0, "")
    assert out.encode() == (root / "alpha" / "transcript-pre-compact-002.jsonl").read_bytes()
    assert [json.loads(line) for line in out.splitlines()] == conversation(3)
    first = called("restore", "alpha", "--step", "1")[1]
    assert first.encode() == (root / "alpha" / "transcript-pre-compact-001.jsonl").read_bytes()
    assert SECRET not in first
    as_json = json.loads(called("restore", "alpha", "--json")[1])
    assert (as_json["session_id"], as_json["step"], as_json["dialect"]) == ("alpha", 2, "chat")
    assert as_json["messages"] == conversation(3)


def test_restore_writes_a_private_file_and_never_over_another(
    called: Call, root: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    code, out, err = called("restore", "alpha", "-o", file)
    assert (code, out, err) == (0, "", f"13 messages of alpha before step 2: {file}\n")
    assert file.stat().st_mode & 0o777 == 0o600
    whole = file.read_bytes()
    code, _, err = called("restore", "alpha", "--step", "1", "-o", file)
    assert (code, file.read_bytes()) == (2, whole)
    assert "exists already. Name another file, or overwrite it with --force" in err
    assert called("restore", "alpha", "--step", "1", "-o", file, "--force")[0] == 0
    assert file.read_bytes() == (root / "alpha" / "transcript-pre-compact-001.jsonl").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".compact", "out.jsonl"]


def test_restore_does_not_write_through_a_dangling_link(called: Call, root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    code, _, err = called("restore", "alpha", "-o", tmp_path / "link")
    assert (code, "exists" in err) == (2, True)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("restore", "alpha", "--step", "9"), "has no step 9: it has 1 to 2"),
        (("restore", "alpha", "--step", "0"), "Invalid value for '--step'"),
        (("restore", "alpha", "-o", "missing/folder/x"), "there is no folder"),
        (("show", "alpah"), "there is no session 'alpah'. There are: alpha"),
        (("search", "x", "gamma"), "there is no session 'gamma'"),
        (("verify", "../alpha"), "there is no session '../alpha'"),
        (("grep", "("), "RE2 does not accept the pattern"),
        (("prune",), "--older-than"),
        (("prune", "--older-than", "30"), "'30' is not a duration: write 30d, 12h, 90m or 2w"),
        (("prune", "--older-than", "-3d"), "is not a duration"),
        (("ls", "--root", "nowhere"), "there is no archive at nowhere. Name its folder with --root"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    called: Call, root: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = called(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("compact: ")
    assert err.count("\n") == 1


def test_a_damaged_transcript_is_not_restored(called: Call, root: Path) -> None:
    damage(root, "transcript-pre-compact-002.jsonl")
    code, out, err = called("restore", "alpha")
    assert (code, out) == (2, "")
    assert "is not what was written" in err


# --- grep, search


def test_grep_looks_into_all_sessions_or_one(called: Call, root: Path) -> None:
    code, out, _ = called("grep", "file number 0")
    assert code == 0
    assert [line.partition("/")[0] for line in out.splitlines()] == ["alpha", "beta"]
    code, out, _ = called("grep", "FILE NUMBER", "beta", "-i")
    assert (code, len(out.splitlines())) == (0, 1)
    (found,) = json.loads(called("grep", "zebra", "--json")[1])
    assert (found["session_id"], found["line"], found["column"], found["text"]) == (
        "alpha",
        1,
        4,
        "the zebra",
    )
    assert called("grep", "no such words") == (1, "", "")
    assert called("grep", "no such words", "--json") == (1, "[]\n", "")


def test_search_prints_passages_with_their_places(called: Call, root: Path) -> None:
    code, out, err = called("search", "zebra", "alpha")
    assert (code, err) == (0, "")
    assert out.startswith("1. /tool_outputs/bash_c1_")
    assert ":1-2, tool bash\n   the zebra\n" in out
    (found,) = json.loads(called("search", "zebra", "alpha", "--json")[1])
    assert (found["first_line"], found["last_line"], found["text"][:9]) == (1, 2, "the zebra")
    assert called("search", "giraffe", "alpha") == (1, "No passage has any of these words\n", "")


def test_what_is_printed_cannot_steer_a_terminal(called: Call, root: Path) -> None:
    for arguments in (("grep", "grass"), ("search", "grass", "alpha")):
        out = called(*arguments)[1]
        assert "grass" in out
        assert "\x1b" not in out


# --- verify, prune


def test_verify_says_what_is_wrong(called: Call, root: Path) -> None:
    assert called("verify") == (0, "2 sessions: everything is as it was written\n", "")
    assert json.loads(called("verify", "--json")[1]) == {"sessions": 2, "problems": []}
    damage(root)
    damage(root, "conversation_history/step-002.md")
    code, out, _ = called("verify")
    assert (code, out.splitlines()[0]) == (1, "2 sessions: 2 problems")
    code, out, _ = called("verify", "alpha", "--json")
    problems = json.loads(out)["problems"]
    assert (code, sorted(problem["code"] for problem in problems)) == (1, ["changed", "damaged"])
    assert called("verify", "beta")[0] == 0


def test_verify_checks_every_session_and_repairs_copies(called: Call, root: Path) -> None:
    page = root / "alpha" / "conversation_history" / "step-002.md"
    kept = page.read_bytes()
    page.unlink()
    page.symlink_to("/etc/passwd")
    (root / "beta" / "session.json").unlink()
    (root / "beta" / "session.json").symlink_to("nowhere")
    code, out, _ = called("verify", "--json")
    found = {(each["session_id"], each["key"]) for each in json.loads(out)["problems"]}
    assert (code, json.loads(out)["sessions"]) == (1, 2)
    assert found >= {("alpha", "alpha/conversation_history/step-002.md"), ("beta", "beta/session.json")}
    code, out, _ = called("verify", "alpha", "--repair")
    assert (code, out.splitlines()) == (
        0,
        ["1 file written anew from the transcripts", "1 session: everything is as it was written"],
    )
    assert page.read_bytes() == kept
    (root / "alpha" / "session.json").write_text('{"format":1,"session_id":"alpha"}\n')
    assert "1 session unchained: an earlier version began them" in called("verify", "alpha")[1]


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_prune_removes_old_steps_and_never_the_newest(called: Call, root: Path) -> None:
    before = files_of(root)
    code, out, err = called("prune", "--older-than", "30d", "--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith("Would remove 3 records, ")
    assert files_of(root) == before
    planned = json.loads(called("prune", "--older-than", "30d", "--dry-run", "--json")[1])
    done = json.loads(called("prune", "--older-than", "30d", "--json")[1])
    assert done == {**planned, "dry_run": False}
    assert before - files_of(root) == {key for each in done["removed"] for key in each["keys"]}
    assert called("prune", "--older-than", "0s")[1].startswith("Removed 0 records")
    assert called("restore", "alpha")[0] == called("restore", "beta")[0] == 0
    assert called("verify")[0] == 0
    assert "pruned" in called("show", "alpha")[1]
    assert "was pruned at" in called("restore", "alpha", "--step", "1")[2]


def test_prune_leaves_a_damaged_session_and_goes_on_with_the_others(called: Call, root: Path) -> None:
    clock = SettableClock(datetime.now(UTC) - timedelta(days=50))
    archive = fs_archive(root, recorder=recorder(clock))
    add_step(archive, "gamma", conversation())
    add_step(archive, "gamma", conversation())
    damage(root)
    code, out, _ = called("prune", "--older-than", "4w", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 1
    assert [(each["session_id"], each["step"]) for each in found["removed"]] == [("gamma", 1)]
    assert list(found["refused"]) == ["alpha"]
    assert "was left as it is" in called("prune", "--older-than", "4w")[1]


# --- all of them


def test_the_configured_root_is_the_default(called: Call, root: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    root.rename(moved)
    assert called("ls")[0] == 2
    (tmp_path / "compact.yaml").write_text("archive: {root: elsewhere}\n")
    code, _, problem = called("ls")
    assert code == 2
    assert "archive.root may not be set" in problem, "nobody named the file"
    assert "alpha" in called("ls", "--config", "compact.yaml")[1]
    assert called("ls", "--root", root)[0] == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_it_does_and_shows_an_example(called: Call, command: str) -> None:
    code, out, _ = called(command, "--help")
    assert code == 0
    assert f"Example: compact archive {command}" in out
    assert "--root" in out
    assert "--json" in out


def test_a_masked_session_id_is_found_by_its_real_one(called: Call, root: Path) -> None:
    archive = opened(root)
    add_step(archive, f"user {SECRET}", conversation(1))
    code, out, _ = called("show", f"user {SECRET}")
    assert code == 0
    assert out.startswith("Session user ")
    assert SECRET not in called("ls")[1]


def test_sessions_whose_ids_are_masked_are_listed_and_searched_by_their_folders(
    called: Call, root: Path
) -> None:
    archive = opened(root)
    ids = [f"{who} {SECRET}" for who in ("user", "guest")]
    for session_id in ids:
        add_step(archive, session_id, conversation(1))
        archive.put_output(session_id, "a giraffe", tool_name="bash", tool_call_id="c1")
    rows = {row["folder"]: row for row in json.loads(called("ls", "--json")[1])}
    for session_id in ids:
        row = rows[archive.folder(session_id)]
        assert (row["steps"], row["outputs"], row["problem"]) == (1, 1, None)
        assert row["newest_step_at"]
    code, out, _ = called("grep", "giraffe", "--json")
    assert code == 0
    assert len(json.loads(out)) == 2


# --- tenants


def test_every_command_sees_one_tenant(called: Call, root: Path) -> None:
    archive = opened(root)
    for tenant in ("acme", "we/ird"):
        add_step(archive.for_tenant(tenant), "alpha", [{"role": "user", "content": f"I am {tenant}"}])
    before = called("ls")
    assert called("tenants") == (0, "acme\nwe/ird\n", "")
    assert json.loads(called("tenants", "--json")[1]) == ["acme", "we/ird"]
    for tenant in ("acme", "we/ird"):
        (row,) = json.loads(called("ls", "--tenant", tenant, "--json")[1])
        assert (row["session_id"], row["steps"]) == ("alpha", 1)
        assert f"I am {tenant}" in called("restore", "alpha", "--tenant", tenant)[1]
        assert called("grep", "I am", "--tenant", tenant)[1].count("I am") >= 1
        assert called("search", "I am", "alpha", "--tenant", tenant)[0] == 0
        assert called("show", "alpha", "--tenant", tenant)[0] == 0
        assert json.loads(called("verify", "--tenant", tenant, "--json")[1]) == {
            "sessions": 1,
            "problems": [],
        }
    assert called("ls") == before
    assert called("grep", "I am acme")[0] == 1
    assert called("prune", "--older-than", "0s", "--tenant", "acme")[0] == 0
    assert opened(root).verify() == []


def test_an_unknown_tenant_is_an_error_that_names_others(called: Call, root: Path) -> None:
    code, _, err = called("ls", "--tenant", "acme")
    assert code == 2
    assert "there is no tenant 'acme'. The archive has no tenants" in err
    add_step(opened(root).for_tenant("acme"), "s")
    assert "There are: acme" in called("ls", "--tenant", "acm")[2]
    code, _, err = called("ls", "--tenant", " ")
    assert code != 0
    assert "tenant must not be only blanks" in err


def test_the_configured_tenant_is_the_default(
    called: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_step(opened(root).for_tenant("acme"), "s")
    monkeypatch.setenv("COMPACT_TENANT", "acme")
    assert [row["session_id"] for row in json.loads(called("ls", "--json")[1])] == ["s"]
    assert called("tenants")[1] == "acme\n"


def test_verify_checks_every_tenant_and_names_it(called: Call, root: Path) -> None:
    for tenant in ("acme", "beta", "Ann Smith"):
        add_step(opened(root).for_tenant(tenant), "s")
    assert called("verify") == (0, "5 sessions: everything is as it was written\n", "")
    tenants = root / "_tenants"
    (tenants / "acme" / "s" / "summary-001.json").unlink()
    (tenants / "beta" / ".tenant" / "tenant.json").write_bytes(
        (tenants / "acme" / ".tenant" / "tenant.json").read_bytes()
    )
    code, out, _ = called("verify")
    assert code == 1
    assert "tenant acme: s/summary-001.json" in out
    assert "tenant beta: .tenant/tenant.json" in out
    problems = json.loads(called("verify", "--json")[1])["problems"]
    assert [(each["tenant"], each["code"]) for each in problems] == [
        ("acme", "missing"),
        ("beta", "misplaced"),
    ]
    assert called("verify", "alpha")[0] == 0


def test_a_session_is_opened_by_what_is_listed(called: Call, root: Path) -> None:
    session_id = "user:ann@example.org"
    add_step(opened(root), session_id)
    folder = opened(root).folder(session_id)
    label = next(
        row["session_id"] for row in json.loads(called("ls", "--json")[1]) if row["folder"] == folder
    )
    assert "ann@" not in label
    for name in (session_id, label, folder):
        for command in ("show", "restore", "verify"):
            assert called(command, name)[0] == 0
        assert json.loads(called("show", name, "--json")[1])["session_id"] == label
    code, _, err = called("show", "user:bob@example.org")
    assert (code, "there is no session" in err) == (2, True)


def test_ledger_lists_what_the_newest_step_left(called: Call, tmp_path: Path) -> None:
    settings = CompactConfig(archive={"adapter": "fs", "root": str(tmp_path)}, max_context_tokens=16_000)
    with CompactManager(settings) as made:
        made.manual_compact("s", [user("Never push to main."), *turns(12), user("Go on.")])
        made.pin("s", "Be brief.")
    code, out, _ = called("ledger", "s", "--root", tmp_path)
    assert code == 0
    assert out.splitlines()[0] == "Session s: 2 entries"
    assert "Never push to main." in out
    assert "pinned" in out
    code, out, _ = called("ledger", "s", "--root", tmp_path, "--json")
    assert [entry["text"] for entry in json.loads(out)["entries"]] == ["Never push to main.", "Be brief."]
    assert called("ledger", "none", "--root", tmp_path)[0] == 2
