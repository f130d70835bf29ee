"""The real command in a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from importlib.resources import files
from pathlib import Path

import pytest
from support.data import FIXTURES

SESSIONS = FIXTURES / "transcripts" / "sessions.jsonl.gz"
COMPACT = [sys.executable, "-m", "compact"]
DEMO = str(files("compact.tools.cli") / "demo_session.jsonl.gz")


def ran(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*COMPACT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_version() -> None:
    done = ran("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("compact 0.")


def test_the_installed_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("compact")
    if not script.exists():
        pytest.skip("the package is not installed as a script here")
    assert subprocess.run([script, "--version"], capture_output=True, check=False).stdout.startswith(
        b"compact 0."
    )


def test_demo_prints_plain_text_to_a_pipe() -> None:
    done = ran("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "133,619" in done.stdout


def test_exit_codes(tmp_path: Path) -> None:
    orphan = tmp_path / "orphan.json"
    orphan.write_text('[{"role": "tool", "tool_call_id": "x", "content": "y"}]')
    assert [ran("check", file).returncode for file in (SESSIONS, orphan, tmp_path / "none")] == [0, 1, 2]


def test_standard_input_can_be_read() -> None:
    with SESSIONS.open("rb") as stream:
        done = subprocess.run(
            [*COMPACT, "count", "-", "--json"], stdin=stream, capture_output=True, check=False
        )
    assert len(json.loads(done.stdout)["sessions"]) == 11


@pytest.mark.parametrize(("given", "why"), [(b"", ": it is empty"), (b'{"a', ", line 1: ")])
def test_errors_call_standard_input_by_its_name(given: bytes, why: str) -> None:
    done = subprocess.run([*COMPACT, "count", "-"], input=given, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"compact: cannot read standard input{why}")


def test_output_survives_an_ascii_terminal() -> None:
    done = ran(
        "count",
        FIXTURES / "raw" / "claude_code_small.jsonl.gz",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert done.stderr.endswith(": not part of the conversation: 3 summary, 3 file-history-snapshot\n")


def test_without_typer_it_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['typer'] = None; from compact.tools.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "compact: the command line needs the extra 'cli'. Install it with: pip install 'compact-context[cli]'\n"
    )


def test_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run([*COMPACT, "demo"], stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_full_disk_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMPACT, "demo"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"compact: No space left on device\n")


def test_ctrl_c_is_quiet() -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*COMPACT, "count", "-"], stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.write(writing, b"[")
    while fcntl.ioctl(reading, termios.FIONREAD, bytes(4)) != bytes(4):
        time.sleep(0.02)  # until the command has taken what there is, and waits for more
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    os.close(reading)
    os.close(writing)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_large_file_shows_progress_on_a_terminal_only(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    line = json.dumps({"messages": [{"role": "user", "content": "word " * 100_000}]}) + "\n"
    file.write_text(line * 12)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMPACT, "count", file], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert b"large.jsonl" in shown
    assert b"\x1b" not in out
    assert ran("count", file).stderr == ""


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_numbers_are_whole_at_any_width(columns: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMPACT, "count", DEMO],
        stdout=theirs,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TERM": "dumb", "COLUMNS": columns},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    for number in ("133,619", "103,241", "66,608"):
        assert number in text
    if columns != "40":
        assert "50.7%" in text
        assert max(len(line.rstrip()) for line in text.splitlines()) <= int(columns)
