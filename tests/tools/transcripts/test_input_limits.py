"""Bombs, endless pipes and devices end with an error that names the limit; memory stays flat."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from compact.errors import TranscriptError
from compact.tools.cli.app import run
from compact.tools.transcripts import input_limits, read_sessions
from compact.tools.transcripts.transcript_file import read_whole

MESSAGE = json.dumps({"role": "user", "content": "hello"}).encode()
LIMIT = 200_000
"""In place of 32 MB, so that the tests are quick."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_limits, "SMALL_BYTES", LIMIT)
    monkeypatch.setattr(input_limits, "MOST_BYTES", 20 * LIMIT)


def bomb(start: bytes, repeated: bytes, times: int, end: bytes) -> bytes:
    """Gzip data of many times its size, made without holding what it unpacks to."""
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(start)]
    pieces += [packer.compress(repeated * 1000) for _ in range(times // 1000)]
    return b"".join([*pieces, packer.compress(end), packer.flush()])


BOMBS = {
    "one line": bomb(b'{"messages": [{"role": "user", "content": "', b"a", 6_000_000, b'"}]}'),
    "many lines": bomb(b"", MESSAGE + b"\n", 100_000, b""),
    "one value on many lines": bomb(b"[\n", MESSAGE + b",\n", 100_000, MESSAGE + b"\n]"),
    "blank lines": bomb(MESSAGE, b"\n", 2_000_000, b""),
    "blanks": bomb(MESSAGE, b" ", 6_000_000, b""),
    "two members": bomb(MESSAGE, b" ", 3_000_000, b"") * 2,
    "artifacts": bomb(
        b'[{"kind": "task", "content": "x"}', b',{"kind": "message", "content": "y"}', 100_000, b"]"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_gzip_bomb_is_refused_before_it_is_in_memory(tmp_path: Path, name: str, lenient: bool) -> None:
    file = tmp_path / "bomb.jsonl.gz"
    file.write_bytes(BOMBS[name])
    tracemalloc.start()
    try:
        with pytest.raises(TranscriptError, match="unpacks to more than 50 times its size") as caught:
            list(read_sessions(file, lenient))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "compact --max-input" in caught.value.hint
    assert peak < 60 * LIMIT, "a parsed message takes more room than its text"


@pytest.mark.parametrize("command", ["count", "check", "apply", "replay", "harness"])
def test_every_command_refuses_it(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bomb.json.gz").write_bytes(BOMBS["one line"])
    assert run([command, "bomb.json.gz"]) == 2
    assert "unpacks to more than 50 times its size" in capsys.readouterr().err


def test_who_trusts_a_file_may_allow_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("large.jsonl.gz").write_bytes(gzip.compress((MESSAGE + b"\n") * 6_000))
    assert run(["check", "large.jsonl.gz"]) == 2
    assert run(["--max-input", "300k", "check", "large.jsonl.gz"]) == 0
    assert run(["--max-input", "100k", "check", "large.jsonl.gz"]) == 2
    assert "it has more than 100,000 bytes" in capsys.readouterr().err
    assert run(["check", "large.jsonl.gz"]) == 2, "the choice is not left behind"
    assert run(["--max-input", "all", "check", "large.jsonl.gz"]) == 2
    assert "--max-input must be a number of bytes like 500m or 8g" in capsys.readouterr().err


def test_an_endless_pipe_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed() -> None:
        with pipe.open("wb", buffering=0) as writer:
            try:
                while True:
                    writer.write(b" " * 1_000_000)
            except BrokenPipeError:
                pass

    thread = threading.Thread(target=feed)
    thread.start()
    with pytest.raises(TranscriptError, match="it has more than 4,000,000 bytes"):
        list(read_sessions(pipe))
    thread.join()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_a_device_is_no_transcript(device: str) -> None:
    with pytest.raises(TranscriptError):
        list(read_sessions(device))
    if device != "/dev/null":
        with pytest.raises(TranscriptError, match="it has more than 4,000,000 bytes"):
            read_whole(Path(device))


def chunks_of(data: bytes, sizes: Iterator[int]) -> bytes:
    def refuse(what: str, hint: str) -> None:
        raise AssertionError(what, hint)

    stream = input_limits.BoundedStream(io.BufferedReader(io.BytesIO(data)), False, refuse)  # type: ignore[arg-type]
    found = []
    for size in sizes:
        piece = stream.readline(size) if size % 2 else stream.read(size)
        if not piece:
            break
        found.append(piece)
    return b"".join(found)


def test_nothing_is_lost_between_pieces() -> None:
    data = b"".join(b"x" * (n * 7_919 % 30_000) + b"\n" for n in range(60)) + b"y" * 2_500_000 + b"\n"
    sizes = (size for size in [1, 2, 999_999, 1_048_576, 3_000_001, *([5, 70_000] * 10_000)])
    assert chunks_of(data, sizes) == data
    lines = input_limits.BoundedStream(io.BufferedReader(io.BytesIO(data)), False, pytest.fail)  # type: ignore[arg-type]
    assert list(iter(lines.readline, b"")) == data.splitlines(keepends=True)
