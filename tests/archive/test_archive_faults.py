"""Disk errors at every system call: acknowledged writes stay, and everything else is either old or new."""

from __future__ import annotations

import errno
import fcntl
import os
import posix
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.archive import NoRedactor, add_step, commit, conversation, fs_archive, recorder

from compact.archive import Step, keys
from compact.archive.stores import durable, files
from compact.errors import ArchiveError
from compact.events import Event, Started

ERRNOS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE)
CANNOT_FAIL = {"fspath", "getpid"}


class Faulty:
    """Stands for the modules `os` and `fcntl`: counts their system calls, and lets one of them fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail_at: int | None = None
        self.error = errno.EIO
        self.half_writes = False

    def module(self, real: Any) -> Any:
        outer = self

        class Module:
            def __getattr__(self, name: str) -> Any:
                value = getattr(real, name)
                is_call = (
                    callable(value)
                    and (hasattr(posix, name) or real is not os)
                    and not isinstance(value, type)
                )
                return outer.wrapped(name, value) if is_call and name not in CANNOT_FAIL else value

        return Module()

    def wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) - 1 == self.fail_at:
                if name == "close":
                    real(*args)  # the kernel frees the descriptor, whatever it reports
                if name == "write" and self.half_writes:
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                raise OSError(self.error, os.strerror(self.error))
            # What the disk does is not the question here, and waiting for it takes most of the time.
            return None if name == "fsync" else real(*args, **options)

        return call


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    found = Faulty()
    # Those who look at what a failure left are other processes: for them the one that failed has ended.
    monkeypatch.setattr(keys, "is_gone", lambda attempt: True)
    for module in (durable, files):
        monkeypatch.setattr(module, "os", found.module(os))
    monkeypatch.setattr(durable, "fcntl", found.module(fcntl))
    return found


@dataclass
class Acknowledged:
    """What the archive confirmed before it failed."""

    outputs: list[tuple[str, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


def scenario(root: Path, done: Acknowledged) -> None:
    """An output, an event, an abandoned attempt, a step: every kind of write."""
    archive = fs_archive(root, redactor=NoRedactor())
    make = recorder()
    text = "an output"
    done.outputs.append((archive.put_output("s", text, tool_name="t", tool_call_id="c").path, text))
    event = make.event(Started(reason="manual", note=None), session_id="s", step=0)
    archive.append_events("s", [event])
    done.events.append(event)
    after = len(archive.steps("s"))
    archive.begin("s", conversation(1), dialect="chat", after=after).abandon()
    with archive.begin("s", conversation(1), dialect="chat", after=after) as attempt:
        result = commit(attempt, position=after)
    assert isinstance(result, Step)
    done.steps.append(result.step)


def check(root: Path, done: Acknowledged, before: int) -> None:
    archive = fs_archive(root, redactor=NoRedactor())
    assert archive.verify() == []
    for path, text in done.outputs:
        assert archive.read_text("s", path) == text
    found = archive.events("s")
    assert [event for event in found if event in done.events] == done.events
    steps = archive.steps("s")
    assert steps == list(range(1, len(steps) + 1))
    assert set(done.steps) <= set(steps)
    assert len(steps) <= before + 1
    for step in steps:
        assert archive.restore("s", step).messages == conversation(1)
        assert archive.step("s", step).state == {"position": step - 1}
    assert add_step(archive, "s", conversation(1), position=len(steps)).step == len(steps) + 1
    names = {entry.name for entry in (root / "s").iterdir()}
    for step in range(1, len(steps) + 2):
        assert {f"state-{step:03d}.json", f"summary-{step:03d}.json"} <= names
        assert f"transcript-pre-compact-{step:03d}.jsonl" in names
    left = [path for path in root.rglob("*") if path.name.startswith(".")]
    assert left == [], "the next writer removes what the failure left"
    assert archive.verify() == []


def trace_of(root: Path, faulty: Faulty) -> list[str]:
    faulty.calls.clear()
    faulty.fail_at = None
    scenario(root, Acknowledged())
    return list(faulty.calls)


def fail_each(tmp_path: Path, faulty: Faulty, before: int, places: Iterator[tuple[int, int]]) -> int:
    template = tmp_path / "template"
    failed = 0
    for place, error in places:
        root = tmp_path / "archive"
        shutil.rmtree(root, ignore_errors=True)
        if template.exists():
            shutil.copytree(template, root)
        faulty.calls.clear()
        faulty.fail_at, faulty.error = place, error
        done = Acknowledged()
        with suppress(ArchiveError):
            scenario(root, done)
        failed += not done.steps
        faulty.fail_at = None
        try:
            check(root, done, before)
        except AssertionError as problem:
            raise AssertionError(
                f"call {place} ({faulty.calls[place]}), {errno.errorcode[error]}"
            ) from problem
    return failed


@pytest.mark.sweep
@pytest.mark.no_cover
def test_any_error_at_any_system_call_leaves_the_old_state_or_the_new(tmp_path: Path, faulty: Faulty) -> None:
    """Each call fails once, with one of the four errors in turn; `make slow` runs all four at each."""
    calls = trace_of(tmp_path / "trace", faulty)
    assert {"open", "write", "fsync", "link", "unlink", "close", "mkdir", "flock"} <= set(calls)
    assert len(calls) > 150
    failed = fail_each(tmp_path, faulty, 0, ((n, ERRNOS[n % 4]) for n in range(len(calls))))
    assert failed > len(calls) / 2


@pytest.mark.slow
@pytest.mark.parametrize("half_writes", [False, True])
@pytest.mark.parametrize("before", [0, 2])
def test_every_error_at_every_system_call(
    tmp_path: Path, faulty: Faulty, before: int, half_writes: bool
) -> None:
    if before:
        archive = fs_archive(tmp_path / "template", redactor=NoRedactor())
        for position in range(before):
            add_step(archive, "s", conversation(1), position=position)
        shutil.copytree(tmp_path / "template", tmp_path / "trace")
    faulty.half_writes = half_writes
    calls = trace_of(tmp_path / "trace", faulty)
    places = [n for n, name in enumerate(calls) if name == "write" or not half_writes]
    fail_each(tmp_path, faulty, before, ((n, error) for n in places for error in ERRNOS))
    print(len(calls), "system calls", len(places) * len(ERRNOS), "failures")  # noqa: T201


def test_a_disk_that_fills_up_in_the_middle_of_a_write_leaves_nothing_half(
    tmp_path: Path, faulty: Faulty
) -> None:
    calls = trace_of(tmp_path / "trace", faulty)
    faulty.half_writes = True
    writes = [n for n, name in enumerate(calls) if name == "write"]
    assert fail_each(tmp_path, faulty, 0, ((n, errno.ENOSPC) for n in writes)) >= len(writes) - 3


def test_a_failed_fsync_is_never_repeated_on_the_same_file(tmp_path: Path, faulty: Faulty) -> None:
    """After it the kernel holds the pages for clean: a second fsync would report success for data that is gone."""
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        durable.create(folder, "one", b"data")
        first = faulty.calls.index("fsync")
        faulty.calls.clear()
        faulty.fail_at = first
        with pytest.raises(OSError, match="Input/output error"):
            durable.create(folder, "two", b"data")
        assert faulty.calls.count("fsync") == 1
    finally:
        os.close(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (errno.ENOSPC, "Free disk space"),
        (errno.EACCES, "Give this process the right"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, "check it before going on"),
        (errno.EBADF, "Check the archive's root"),
    ],
)
def test_an_error_names_the_key_the_number_and_what_to_do(
    tmp_path: Path, faulty: Faulty, error: int, hint: str
) -> None:
    faulty.fail_at, faulty.error = 0, error
    with pytest.raises(ArchiveError, match=errno.errorcode[error]) as caught:
        fs_archive(tmp_path).put_output("s", "text", tool_name="t", tool_call_id="c")
    assert caught.value.key == "s/session.json"
    assert caught.value.errno == error
    assert hint in caught.value.hint
