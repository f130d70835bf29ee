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
    monkeypatch.setattr(input_limits, "MOST_VALUES", LIMIT // 10)


def bomb(start: bytes, repeated: bytes, times: int, end: bytes) -> bytes:
    """Gzip data of many times its size, made without holding what it unpacks to."""
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(start)]
    pieces += [packer.compress(repeated * 1000) for _ in range(times // 1000)]
    return b"".join([*pieces, packer.compress(end), packer.flush()])


SMALL_VALUES = {
    "lists": (MESSAGE[:-1] + b', "x": [', b"[],", b"[]]}"),
    "objects": (MESSAGE[:-1] + b', "x": [', b'{"a":1},', b"{}]}"),
    "numbers": (MESSAGE[:-1] + b', "x": [', b"1,", b"1]}"),
    "keys": (MESSAGE[:-1] + b', "x": {', b'"k":0,', b'"k":0}}'),
    "strings": (b"[" + MESSAGE, b',""', b"]"),
    "one per line": (b"[\n", b"{},\n", b"{}\n]"),
}
"""Values that are short in a file and large in memory: how the file begins, goes on and ends."""

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


@pytest.mark.parametrize("name", SMALL_VALUES)
@pytest.mark.parametrize("is_packed", [True, False])
def test_many_small_values_are_refused_before_they_are_in_memory(
    tmp_path: Path, name: str, is_packed: bool
) -> None:
    start, repeated, end = SMALL_VALUES[name]
    data = start + repeated * 24_000 + end
    assert len(data) < 2 * LIMIT
    file = tmp_path / "values.json"
    file.write_bytes(gzip.compress(data) if is_packed else data)
    tracemalloc.start()
    try:
        with pytest.raises(TranscriptError, match=r"more than [0-9,]+ JSON values") as caught:
            list(read_sessions(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "compact --max-input" in caught.value.hint
    assert peak < 3_500_000, "the text is there, what it would be parsed to is not"


def test_long_files_may_have_as_many_values_as_real_ones_have(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    line = json.dumps({"role": "user", "content": "Well, what a long story, told in full. " * 4}).encode()
    file.write_bytes((line + b"\n") * 12_000)
    (session,) = read_sessions(file)
    assert len(session.messages) == 12_000


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


def test_who_trusts_a_file_may_allow_more_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.json").write_bytes(MESSAGE[:-1] + b', "x": [' + b"[]," * 12_000 + b"[]]}")
    assert run(["count", "values.json"]) == 2
    assert "it has more than 20,000 JSON values" in capsys.readouterr().err
    assert run(["--max-input", "500k", "count", "values.json"]) == 0


def test_too_little_memory_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    file = tmp_path / "session.jsonl"
    file.write_bytes(MESSAGE)
    monkeypatch.setattr(input_limits.BoundedStream, "readline", fail)
    assert run(["count", str(file)]) == 2
    shown = capsys.readouterr().err
    assert "the input is too large for the memory of this machine" in shown
    assert "bug" not in shown


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
