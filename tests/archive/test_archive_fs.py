"""The archive on a disk: order of system calls, permissions, links, leftovers, logs."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.archive import NoRedactor, add_step, conversation, dead_attempt, fs_archive, recorder

from compact import CompactConfig
from compact.archive import Record, keys
from compact.archive.records import trust_stored
from compact.archive.stores.files import FsStore
from compact.errors import ArchiveError
from compact.events import Started, Warned
from compact.events.session_key import SessionKey


def record(text: str = "content") -> Record:
    return trust_stored(text.encode())


def started(note: str = "n") -> Any:
    return recorder().event(Started(reason="manual", note=note), session_id="s", step=0)


# --- the order of system calls ---------------------------------------------------------------------------------------


def straced(tmp_path: Path, body: str) -> list[str]:
    """The system calls that a piece of code makes below its archive, in order, as 'name target'."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: the order of system calls cannot be observed")
    log = tmp_path / "strace.log"
    program = (
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from pathlib import Path\n"
        "from support.archive import *\n"
        "from compact.archive.stores.files import FsStore\n"
        "from compact.archive.records import trust_stored\n"
        "root = Path(sys.argv[2])\n"
        f"{body}\n"
    )
    calls = "openat,write,fsync,linkat,unlinkat,renameat,renameat2,mkdir,mkdirat,ftruncate,flock"
    command = [strace, "-f", "-y", "-e", f"trace={calls}", "-o", str(log), sys.executable, "-c", program]
    done = subprocess.run(
        [*command, str(Path(__file__).resolve().parents[1]), str(tmp_path / "archive")],
        capture_output=True,
        timeout=60,
        check=False,
    )
    if b"ptrace" in done.stderr and done.returncode:
        pytest.skip("this system does not let strace trace")
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    above = str(tmp_path)
    lines = [line for line in log.read_text().splitlines() if above in line and "ENOENT" not in line]
    return [call for call in (_short(line, above) for line in lines) if call]


def _short(line: str, above: str) -> str:
    line = re.sub(r"^\d+\s+", "", line)
    name = line.partition("(")[0]
    if name == "openat" and "O_CREAT" not in line:
        return ""
    if name in {"write", "fsync", "flock", "ftruncate"}:
        targets = re.findall(r"<([^>]*)>", line)[:1]
    else:
        targets = re.findall(r'"([^"]*)"', line)
    text = " ".join([name, *(target.removeprefix(above).lstrip("/") or "." for target in targets)])
    return re.sub(r"\.(tmp|attempt)-[0-9a-f]+-\d+-\d+-\d+(-\w+)?", r".\1\2", text)


def test_a_record_is_written_synced_named_and_its_folder_synced_in_that_order(tmp_path: Path) -> None:
    calls = straced(
        tmp_path,
        "store = FsStore(root)\n"
        "store.create('s/first', trust_stored(b'1'))\n"
        "store.create('s/second', trust_stored(b'2'))",
    )
    new_folders = ["mkdir archive", "fsync .", "mkdirat s", "fsync archive"]
    assert calls == [*new_folders, *_created("archive/s", "first"), *_created("archive/s", "second")]


def _created(folder: str, name: str) -> list[str]:
    return [
        "openat .tmp",
        f"write {folder}/.tmp",
        f"fsync {folder}/.tmp",
        f"linkat .tmp {name}",
        "unlinkat .tmp",
        f"fsync {folder}",
    ]


def test_a_step_is_durable_before_its_state_and_named_after_it(tmp_path: Path) -> None:
    calls = straced(tmp_path, "add_step(fs_archive(root, redactor=NoRedactor()), 's')")
    order = [
        "fsync archive/s/.attempt-transcript",
        "fsync archive/s/.attempt-summary",
        "fsync archive/s",
        "fsync archive/s/.tmp",
        "linkat .tmp state-001.json",
        "fsync archive/s",
        "write archive/s/events.jsonl",
        "fsync archive/s/events.jsonl",
        "fsync archive/s/seals-events.jsonl",
        "fsync archive/s",
        "renameat .attempt-transcript transcript-pre-compact-001.jsonl",
        "renameat .attempt-summary summary-001.json",
        "renameat .attempt-history step-001.md",
    ]
    remaining = iter(calls)
    for expected in order:
        assert expected in remaining, f"{expected!r} does not follow in {calls}"


def test_events_go_out_in_one_write(tmp_path: Path) -> None:
    calls = straced(
        tmp_path,
        "from compact.events import Started\n"
        "archive = fs_archive(root, redactor=NoRedactor())\n"
        "make = recorder()\n"
        "archive.append_events('s', [make.event(Started(reason='manual', note='x' * 9000), session_id='s', step=0)] * 9)",
    )
    assert calls.count("write archive/s/events.jsonl") == 1
    assert calls.count("flock archive/s/events.jsonl") == 1


# --- rights and links ------------------------------------------------------------------------------------------------


def git_sees(folder: Path) -> list[str]:
    """The files that git would add in a repository."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    command = ["git", "-C", str(folder), "ls-files", "--others", "--exclude-standard"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("there", ["nothing", "the folder", "a .gitignore"])
def test_the_default_root_stays_out_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ignore = tmp_path / ".compact" / ".gitignore"
    if there != "nothing":
        ignore.parent.mkdir()
    if there == "a .gitignore":
        ignore.write_text("archive/\n!.gitignore\n")
    archive = CompactConfig().archive
    add_step(fs_archive(Path(archive.root)), "s", conversation(1))
    assert git_sees(tmp_path) == ([".compact/.gitignore"] if there == "a .gitignore" else [])
    if there != "a .gitignore":
        assert ignore.read_text() == "*\n"


def test_a_gitignore_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    root = tmp_path / ".compact" / "archive"
    add_step(fs_archive(root), "s", conversation(1))
    (root.parent / ".gitignore").unlink()
    add_step(fs_archive(root), "s", conversation(2))
    assert not (root.parent / ".gitignore").exists()


def test_a_folder_of_the_users_own_gets_no_gitignore(tmp_path: Path) -> None:
    add_step(fs_archive(tmp_path / "data" / "archive"), "s", conversation(1))
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["archive"]
    assert fs_archive(tmp_path / "data" / "archive").verify() == []


def test_files_are_0600_and_folders_0700(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "archive"
    archive = fs_archive(root)
    add_step(archive, "s")
    archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "deep", root, *root.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize(
    "place", ["s", "s/tool_outputs", "s/events.jsonl", "s/session.json", "s/conversation_history"]
)
def test_a_symbolic_link_inside_the_root_is_never_followed(tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "file"
    target.write_text("mine")
    link = tmp_path / "archive" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(target if "." in link.name else outside)
    archive = fs_archive(tmp_path / "archive")

    def write() -> None:
        archive.put_output("s", "text", tool_name="t", tool_call_id="c")
        add_step(archive, "s")

    with pytest.raises(ArchiveError, match=r"ELOOP|ENOTDIR"):
        write()
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert target.read_text() == "mine"


def test_a_link_planted_in_a_folder_is_neither_read_nor_listed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("not yours")
    archive = fs_archive(tmp_path / "archive")
    archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    (tmp_path / "archive" / "s" / "tool_outputs" / "planted.txt").symlink_to(secret)
    with pytest.raises(ArchiveError, match="ELOOP"):
        archive.read_text("s", "/tool_outputs/planted.txt")
    assert len(archive.files("s")) == 1


def test_a_pipe_in_a_files_place_does_not_hang(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path / "archive")
    archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    os.mkfifo(tmp_path / "archive" / "s" / "tool_outputs" / "pipe.txt")
    with pytest.raises(ArchiveError, match="not a regular file"):
        archive.read_text("s", "/tool_outputs/pipe.txt")


def test_a_folder_without_write_permission_is_an_archive_error(unprivileged_folder: Path) -> None:
    (unprivileged_folder / "archive").mkdir(mode=0o500)
    with pytest.raises(ArchiveError, match="EACCES"):
        add_step(fs_archive(unprivileged_folder / "archive"), "s")


def test_the_root_stays_where_it_was_when_the_working_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = fs_archive(Path(".compact/archive"))
    output = archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    assert output.address == f".compact/archive/s{output.path}"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert archive.read_text("s", output.path) == "text"


def test_filesystems_without_hard_links_keep_the_same_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refused)
    store = FsStore(tmp_path / "alone")
    assert store.create("s/x", record("one")) == "created"
    assert store.create("s/x", record("two")) == "taken"
    assert store.read("s/x") == b"one"
    add_step(fs_archive(tmp_path / "archive"), "s")
    assert fs_archive(tmp_path / "archive").verify() == []
    assert not list(tmp_path.rglob(".*"))


def test_without_any_exclusive_rename_it_is_refused_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    with pytest.raises(ArchiveError, match="EPERM"):
        FsStore(tmp_path).create("s/x", record())
    assert not list((tmp_path / "s").iterdir())


def test_a_folder_that_cannot_be_synced_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def fsync(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    assert FsStore(tmp_path).create("s/x", record()) == "created"


def test_what_is_already_there_is_made_durable_before_it_counts_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote it may have died between naming and syncing it."""
    FsStore(tmp_path).create("s/x", record())
    synced: list[int] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        real(file)

    store = FsStore(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    assert store.create("s/x", record()) == "same"
    assert synced[-2:] == [(tmp_path / name).stat().st_ino for name in ("s/x", "s")]


# --- what others leave behind ----------------------------------------------------------------------------------------


def test_leftovers_of_dead_processes_are_swept_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    root = tmp_path / "s"
    add_step(fs_archive(tmp_path), "s")
    living = f"{keys.owner_of(os.getppid())}-1"
    elsewhere = "00000000-1-1-1"
    for owner in (dead_attempt(), living, elsewhere):
        (root / f".tmp-{owner}").write_text("half")
        (root / f".attempt-{owner}-transcript").write_text("half")
        (root / "conversation_history" / f".attempt-{owner}-history").write_text("half")
    (root / ".attempt-injected-transcript").write_text("of nobody that can be asked")
    fs_archive(tmp_path).begin("s", conversation(1), dialect="chat", after=1).abandon()
    left = sorted(path.name for path in root.rglob(".*"))
    assert len(left) == 7
    assert not any(dead_attempt() in name for name in left)

    for path in root.rglob(".*"):
        os.utime(path, (0, 0))
    fs_archive(tmp_path).begin("s", conversation(1), dialect="chat", after=1).abandon()
    assert not list(root.rglob(".*")), "after a day age decides"


def test_an_attempt_that_is_too_old_cannot_commit(tmp_path: Path) -> None:
    """Its staged files may count as abandoned by then."""
    archive = fs_archive(tmp_path, attempt_ttl_s=0.0)
    with (
        archive.begin("s", conversation(1), dialect="chat", after=0) as attempt,
        pytest.raises(ArchiveError, match=r"older than 0 s.*archive\.attempt_ttl_s"),
    ):
        attempt.commit(summary={}, state={})
    assert archive.steps("s") == []


def test_a_foreign_file_under_a_contract_name_is_not_taken_for_the_record(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    with archive.begin("s", conversation(1), dialect="chat", after=0) as attempt:
        (tmp_path / "s" / "transcript-pre-compact-001.jsonl").write_text("{}\n")
        step = attempt.commit(summary={}, state={})
    assert step.unfinished  # type: ignore[union-attr]
    assert archive.restore("s").messages == conversation(1)
    warnings = [e.properties.code for e in archive.events("s") if isinstance(e.properties, Warned)]
    assert warnings == ["unfinished_step"]


def test_two_ids_that_mean_one_folder_are_told_apart(tmp_path: Path) -> None:
    """On a filesystem that ignores case, 'ABC' and 'abc' are one folder."""
    fs_archive(tmp_path).put_output("abc", "text", tool_name="t", tool_call_id="c")
    (tmp_path / "abc").rename(tmp_path / "ABC")
    with pytest.raises(ArchiveError, match="belongs to another session: 'abc'"):
        fs_archive(tmp_path).put_output("ABC", "text", tool_name="t", tool_call_id="c")


# --- the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", ['{"name": "compact.star', "x" * 200_000, '{"a": 1}'])
def test_a_torn_last_line_is_cut_off_and_reported(tmp_path: Path, torn: str) -> None:
    archive = fs_archive(tmp_path)
    archive.append_events("s", [started("before")])
    log = tmp_path / "s" / "events.jsonl"
    with log.open("a") as file:
        file.write(torn)
    assert [e.name for e in archive.events("s")] == ["compact.started"], "readers pass over it"
    archive.append_events("s", [started("after")])
    found = [e.properties for e in archive.events("s")]
    assert [p.note for p in found if isinstance(p, Started)] == ["before", "after"]
    assert [p.code for p in found if isinstance(p, Warned)] == ["torn_events"]
    assert all(json.loads(line) for line in log.read_text().splitlines())
    assert archive.verify() == []


def test_a_log_that_is_only_a_torn_line_starts_anew(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    archive.put_output("s", "t", tool_name="t", tool_call_id="c")
    (tmp_path / "s" / "events.jsonl").write_text("half")
    archive.append_events("s", [started()])
    assert [e.name for e in archive.events("s")] == ["compact.started", "compact.warning"]


def test_a_line_that_is_no_event_is_passed_over_and_verify_names_it(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    archive.append_events("s", [started("one")])
    with (tmp_path / "s" / "events.jsonl").open("a") as file:
        file.write("garbage\n")
    archive.append_events("s", [started("two")])
    assert len(archive.events("s")) == 2
    (problem,) = archive.verify()
    assert (problem.key, problem.code) == ("s/events.jsonl", "damaged")
    assert problem.message.startswith("line 2 is not an event")


def test_a_lock_that_nobody_gives_back_ends_in_an_error(tmp_path: Path) -> None:
    store = FsStore(tmp_path, lock_timeout_s=0.05)
    store.append("s/events.jsonl", record("line\n"))
    with (tmp_path / "s" / "events.jsonl").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ArchiveError, match=r"another process held the lock for 0.05 s \(ETIMEDOUT\)"):
            store.append("s/events.jsonl", record("line\n"))
    store.append("s/events.jsonl", record("line\n"))
    assert store.read_log("s/events.jsonl") == b"line\nline\n"


# --- threads and forks -----------------------------------------------------------------------------------------------


def _in_child(root: str, queue: Any) -> None:
    archive = fs_archive(Path(root), redactor=NoRedactor())
    queue.put(add_step(archive, "s").step)


def test_other_processes_continue_where_this_one_stopped(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    add_step(fs_archive(tmp_path), "s")
    child = context.Process(target=_in_child, args=(str(tmp_path), queue))
    child.start()
    child.join(60)
    assert queue.get(timeout=5) == 2
    assert add_step(fs_archive(tmp_path), "s").step == 3


def test_an_archive_works_on_in_a_forked_child(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, "s")
    program = (
        "import os, sys; sys.path[:0] = [sys.argv[1]]\n"
        "from pathlib import Path\n"
        "from support.archive import *\n"
        "archive = fs_archive(Path(sys.argv[2]), redactor=NoRedactor())\n"
        "add_step(archive, 's')\n"
        "attempt = archive.begin('s', conversation(1), dialect='chat', after=2)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    add_step(archive, 's')\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "result = commit(attempt)\n"
        "assert isinstance(result, Taken), result\n"
        "assert add_step(archive, 's').step == 4\n"
    )
    tests = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program, tests, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert archive.steps("s") == [1, 2, 3, 4]
    assert archive.verify() == []


def test_threads_may_share_an_archive(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path, redactor=NoRedactor())
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(4):
                archive.put_output(f"s{n % 2}", f"text {i}", tool_name="t", tool_call_id=str(i))
                archive.append_events(f"s{n % 2}", [started(f"{n}.{i}")])
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for session in ("s0", "s1"):
        assert len(archive.files(session)) == 4
        assert sum(isinstance(e.properties, Started) for e in archive.events(session)) == 12
    assert archive.verify() == []


# --- corners ---------------------------------------------------------------------------------------------------------


def test_names_that_were_given_already_are_passed_over(tmp_path: Path) -> None:
    """Two processes may finish the same step at the same time."""
    store = FsStore(tmp_path)
    store.stage("s/.attempt-x-transcript", record("staged"))
    os.link(tmp_path / "s" / ".attempt-x-transcript", tmp_path / "s" / "final")
    store.publish([("s/.attempt-x-transcript", "s/final")])
    store.publish([("s/.attempt-x-transcript", "s/final")])
    assert [blob.key for blob in store.blobs("s")] == ["s/final"]
    with pytest.raises(ArchiveError, match="ENOENT"):
        store.publish([("s/.attempt-y-transcript", "s/other")])


def test_a_folder_that_is_removed_under_a_running_archive_is_made_again(tmp_path: Path) -> None:
    store = FsStore(tmp_path / "archive")
    store.create("s/x", record())
    shutil.rmtree(tmp_path / "archive")
    assert store.read("s/x") is None
    assert store.blobs("s") == []
    assert store.folders() == []
    store.delete(["s/x", "t/y"])
    with pytest.raises(ArchiveError, match="the folder was removed meanwhile"):
        store.create("s/x", record())
    assert store.create("s/x", record()) == "created"
    store.sync("s/no-log-yet")


@pytest.mark.parametrize("key", ["../x", "s/../x", "s//x", "/s/x", "s/.", "s/a\0b", ""])
def test_a_key_that_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    store = FsStore(tmp_path / "archive")
    with pytest.raises(ArchiveError, match="not a key of the archive"):
        store.read(key)
    with pytest.raises(ArchiveError, match="not a key of the archive"):
        store.create(key, record())
    assert not list(tmp_path.iterdir())


def test_verify_names_what_does_not_belong(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, "one")
    add_step(archive, "two")
    (tmp_path / ".odd folder").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "one" / "tool_outputs").mkdir()
    (tmp_path / "one" / "tool_outputs" / "note.txt").write_text("by hand")
    shutil.copy(tmp_path / "two" / "state-001.json", tmp_path / "one" / "state-001.json")
    (tmp_path / "two" / "session.json").write_text("[]")
    found = {(p.session_id, p.key, p.code) for p in archive.verify()}
    assert {
        (".odd folder", ".odd folder", "orphan"),
        ("one", "one/tool_outputs/note.txt", "orphan"),
        ("one", "one/state-001.json", "misplaced"),
        ("two", "two/session.json", "damaged"),
    } <= found
    assert not any(session == "empty" for session, _, _ in found)
    assert archive.sessions() == ["one", "two"]


def test_a_session_record_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    fs_archive(tmp_path).put_output("s", "text", tool_name="t", tool_call_id="c")
    (tmp_path / "s" / "session.json").write_text("{")
    with pytest.raises(ArchiveError, match=r"its session\.json cannot be read"):
        fs_archive(tmp_path).put_output("s", "text", tool_name="t", tool_call_id="c")


def test_where_the_start_of_a_process_is_unknown_its_number_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, *_ = keys.this_process().split("-")
    assert not keys.is_gone(f"{machine}-{os.getpid()}-0-1")
    assert keys.is_gone(f"{machine}-{2**22 + 1}-0-1")
    assert keys.is_gone(f"{machine}-{os.getpid()}-1-1"), "the number was used again"
    assert not keys.is_gone("00000000-1-1-1")

    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert not keys.is_gone(f"{machine}-1-0-1")


def test_an_archive_forgets_sessions_it_has_not_seen_lately(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("compact.archive.recent.MOST_SESSIONS", 3)
    redactors: list[str] = []

    def session_redactor(key: SessionKey) -> NoRedactor:
        redactors.append(key.session_id)
        return NoRedactor()

    archive = fs_archive(tmp_path, redactor=NoRedactor(), session_redactor=session_redactor)
    for number in (0, 1, 2, 3, 3, 4, 5, 4, 0):
        archive.put_output(f"s{number}", "text", tool_name="t", tool_call_id="c")
    assert redactors == ["s0", "s1", "s2", "s3", "s4", "s5", "s0"], "only the last three are remembered"
    assert not archive.put_output("s0", "text", tool_name="t", tool_call_id="c").new
