"""Files of our own shapes, good ones and bad ones."""

from __future__ import annotations

import gzip
import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compact.tools.transcripts import RecordedSession, Skipped, TranscriptError, read_sessions

HELLO = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "Ωμέγα \u2028 fine"}


def written(tmp_path: Path, content: bytes | str | list[Any], name: str = "talk.jsonl") -> Path:
    """A file of bytes, of text, or of one JSON value per line."""
    file = tmp_path / name
    if isinstance(content, list):
        content = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in content)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def only(path: Path, **options: Any) -> RecordedSession:
    (session,) = read_sessions(path, **options)
    return session


def refused(path: Path, **options: Any) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        list(read_sessions(path, **options))
    assert str(path) in str(caught.value)
    assert caught.value.path == str(path)
    return caught.value


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([HELLO, REPLY], {"format": "messages"}),
        ({"messages": [HELLO, REPLY]}, {"format": "session"}),
        (
            {
                "model": "claude-x",
                "system": [{"type": "text", "text": "be kind"}],
                "tools": [{"name": "t"}],
                "messages": [HELLO, REPLY],
            },
            {"system": [{"type": "text", "text": "be kind"}], "tools": [{"name": "t"}], "model": "claude-x"},
        ),
        (
            {"model": "o3", "instructions": "be kind", "input": [HELLO, REPLY]},
            {"system": "be kind", "dialect": "responses", "model": "o3"},
        ),
        ({"id": "s1", "meta": {}, "messages": [HELLO, REPLY]}, {"id": "s1"}),
        ({"session_id": 7, "messages": [HELLO, REPLY]}, {"id": "7"}),
    ],
)
def test_a_file_with_one_json_value(
    tmp_path: Path, value: Any, expected: dict[str, Any], packed: bool, indent: int | None
) -> None:
    """On one line or indented, plain or gzip, whatever the file is called."""
    content = json.dumps(value, ensure_ascii=False, indent=indent).encode()
    file = written(tmp_path, gzip.compress(content) if packed else content, "talk.json")
    session = only(file)
    assert session.messages == [HELLO, REPLY]
    for name, wanted in ({"id": "talk"} | expected).items():
        assert getattr(session, name) == wanted
    assert session.skipped == []


def test_a_responses_request_with_plain_text(tmp_path: Path) -> None:
    session = only(written(tmp_path, [{"model": "o3", "input": "hello"}]))
    assert (session.messages, session.dialect) == ([HELLO], "responses")


def test_harness_artifacts(tmp_path: Path) -> None:
    artifacts = [{"kind": "system", "content": "s"}, {"type": "message", "content": "m"}]
    session = only(written(tmp_path, [{"artifacts": artifacts}]))
    assert (session.messages, session.format, session.dialect) == (artifacts, "artifacts", "harness")
    assert only(written(tmp_path, artifacts, "lines.jsonl")).messages == artifacts


def test_one_message_per_line(tmp_path: Path) -> None:
    items: list[Any] = [HELLO, {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]
    session = only(written(tmp_path, items))
    assert (session.messages, session.format, session.id) == (items, "message_lines", "talk")


def test_one_session_per_line(tmp_path: Path) -> None:
    lines: list[Any] = [
        {"id": "a", "messages": [HELLO]},
        {"messages": [REPLY]},
        [HELLO, REPLY],
        {"messages": []},
    ]
    sessions = list(read_sessions(written(tmp_path, lines)))
    assert [session.id for session in sessions] == ["a", "talk-2", "talk-3", "talk-4"]
    assert [len(session.messages) for session in sessions] == [1, 1, 2, 0]


def test_blank_lines_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeff\r\n" + json.dumps(HELLO) + "\r\n\r\n" + json.dumps(REPLY) + "\r\n\r\n"
    assert only(written(tmp_path, text)).messages == [HELLO, REPLY]


@pytest.mark.parametrize("content", ["[]", '{"messages": []}', '{"messages": []}\n[]\n', '{"artifacts": []}'])
def test_a_file_without_any_message_is_an_error(tmp_path: Path, content: str) -> None:
    for lenient in (False, True):
        assert "it has no messages: it is " in str(refused(written(tmp_path, content), lenient=lenient))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is empty"),
        (b" \n\n\t", "it is empty"),
        (b"\x00\x01\x02" * 50, "it is binary, not text"),
        (gzip.compress(bytes(range(20)), mtime=0), "it is binary, not text"),
        ("[]".encode("utf-16"), "it is UTF-16 text. Save it as UTF-8"),
        (b"\x1f\x8bnot really gzip", "its gzip data is broken: "),
        (
            b'{"role": "user", "content": "\xff"}',
            ", line 1: it is not UTF-8 text: byte 30 of the line is 0xff",
        ),
        (b"42", ", line 1: it is a single int, neither a message nor a session"),
        (b'"text"', ", line 1: it is a single str, neither a message nor a session"),
        (b"null", ", line 1: it is a single NoneType, neither a message nor a session"),
        (b'{"a": 1, "b": 2}', ", line 1: it is neither a message nor a session: it has the keys a, b"),
        (b'{"messages": 5}', ", line 1: it is neither a message nor a session: it has the keys messages"),
        (b"# Notes\n\nhello", ", line 1: it is not JSON: Expecting value at column 1"),
        (b'{\n  "messages": [\n    {"role": "us', ", line 3: its JSON is cut off: Unterminated string"),
        (
            b'[{"role": "user", "content"',
            ", line 1: its JSON is cut off: Expecting ':' delimiter at column 28",
        ),
        (b"[" * 100_000, "its JSON"),
        (b"9" * 5000, "its JSON cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_it_is(tmp_path: Path, content: bytes, what: str) -> None:
    file = written(tmp_path, content)
    for lenient in (False, True):
        assert what.removeprefix(", line 1: ") in str(refused(file, lenient=lenient))
    assert what in str(refused(file))


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    assert "there is no such file" in str(refused(tmp_path / "none.jsonl"))
    assert "it is a directory" in str(refused(tmp_path))


def test_a_file_of_an_unknown_format_is_told_which_are_known(tmp_path: Path) -> None:
    hint = refused(written(tmp_path, "interactions:\n- request: {}\n", "cassette.yaml")).hint
    assert "Claude Code" in hint
    assert "a JSON list of messages" in hint


@pytest.mark.parametrize("bad", [b'{"role": "assistant", "conte', b"\xff\xff\xfa", b'"stray"', b"{}"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_line_is_named_and_can_be_skipped(tmp_path: Path, bad: bytes, place: int) -> None:
    lines = [json.dumps(HELLO).encode(), json.dumps(REPLY).encode()]
    lines.insert(place, bad)
    file = written(tmp_path, b"\n".join(lines))
    error = refused(file)
    assert error.line == place + 1
    assert f"line {place + 1}: " in str(error)
    session = only(file, lenient=True)
    assert session.messages == [HELLO, REPLY]
    assert [skipped.line for skipped in session.skipped] == [place + 1]


def test_bad_lines_between_sessions_are_reported_with_the_next_and_at_the_end_with_the_last(
    tmp_path: Path,
) -> None:
    good = json.dumps({"messages": [HELLO]})
    file = written(tmp_path, "\n".join(["{bad", good, "{bad", good, good, "{bad"]))
    sessions = list(read_sessions(file, lenient=True))
    assert [[skipped.line for skipped in session.skipped] for session in sessions] == [[1], [3], [6]]


def test_nothing_but_bad_lines_is_an_error_even_when_lenient(tmp_path: Path) -> None:
    file = written(tmp_path, b'\xff\xff\n{"a": 1}\n')
    assert "all of its 2 lines are bad; line 1: it is not UTF-8 text" in str(refused(file, lenient=True))


def test_gzip_data_that_ends_early(tmp_path: Path) -> None:
    chance = random.Random(1)
    lines = b"".join(
        json.dumps({"messages": [HELLO], "salt": chance.randbytes(50).hex()}).encode() + b"\n"
        for _ in range(2000)
    )
    file = written(tmp_path, gzip.compress(lines)[:-5000], "cut.jsonl.gz")
    error = refused(file)
    assert "its gzip data is broken from here on" in str(error)
    sessions = list(read_sessions(file, lenient=True))
    assert len(sessions) == error.line - 1
    assert sessions[-1].skipped == [Skipped(error.line, sessions[-1].skipped[0].reason)]


def test_a_file_of_many_sessions_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "word " * 100_000}]})
    file = written(tmp_path, gzip.compress("\n".join([line] * 60).encode(), 1), "many.jsonl.gz")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_sessions(file)) == 60
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(line) * 60 > 30_000_000
    assert peak < 8_000_000


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, [{"messages": [{"role": "user", "content": "x" * 200_000}]}] * 10)
    seen: list[tuple[int, int]] = []
    list(read_sessions(file, on_progress=lambda read, total: seen.append((read, total))))
    size = file.stat().st_size
    assert seen == sorted(seen)
    assert seen[-1] == (size, size)
    assert len(seen) > 3


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps([HELLO]).encode())
    os.close(writing)
    assert only(Path(f"/dev/fd/{reading}"), on_progress=lambda read, total: None).messages == [HELLO]
    os.close(reading)


def test_the_file_is_closed_when_reading_stops_early(tmp_path: Path) -> None:
    sessions = read_sessions(written(tmp_path, [{"messages": [HELLO]}] * 3))
    next(sessions)
    sessions.close()  # type: ignore[attr-defined]  # an unclosed file would be a warning, and warnings are errors


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "message",
                    "messages",
                    "history",
                    "trajectory",
                    "action",
                    "observation",
                    "args",
                    "input",
                    "id",
                    "uuid",
                    "sessionId",
                    "isSidechain",
                    "tool_call_metadata",
                    "model_response",
                    "choices",
                    "tool_calls",
                    "tool_call_ids",
                    "parentId",
                    "timestamp",
                    "payload",
                    "instructions",
                    "session",
                    "items",
                    "record_type",
                    "replacement_history",
                    "num_turns",
                    "parts",
                    "contents",
                    "functionCall",
                    "functionResponse",
                    "inlineData",
                    "projectHash",
                    "messageId",
                    "$set",
                    "$rewindTo",
                    "toolCalls",
                    "thoughts",
                    "result",
                    "clientHistory",
                    "info",
                    "state",
                    "attachments",
                    "lc",
                    "kwargs",
                    "data",
                    "additional_kwargs",
                    "mapping",
                    "current_node",
                    "children",
                    "parent",
                    "author",
                    "content_type",
                    "ts",
                    "modelInfo",
                ]
            )
            | st.text(max_size=4),
            inner
            | st.sampled_from(
                [
                    "user",
                    "assistant",
                    "system",
                    "session",
                    "message",
                    "tool",
                    "toolResult",
                    "response_item",
                    "event_msg",
                    "compacted",
                    "thread_rolled_back",
                    "model",
                    "gemini",
                    "human",
                    "ai",
                    "remove",
                    "constructor",
                    "text",
                    "thoughts",
                    "say",
                    "ses_1",
                    "msg_1",
                    "reasoning",
                ]
            ),
            max_size=6,
        )
    ),
    max_leaves=12,
)


def outcome(file: Path, lenient: bool) -> str:
    """The names of the sessions that were read, or the words of the error."""
    try:
        return f"{file}: {[session.id for session in read_sessions(file, lenient)]}"
    except TranscriptError as error:
        return str(error)


@given(values=st.lists(JSON_VALUES, max_size=4), lenient=st.booleans(), cut=st.integers(0, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_json_is_read_or_refused(tmp_path: Path, values: list[Any], lenient: bool, cut: int) -> None:
    """Whatever stands in a file, nothing but TranscriptError is raised."""
    content = "\n".join(json.dumps(value) for value in values).encode()
    file = written(tmp_path, content[: len(content) - cut])
    assert str(file) in outcome(file, lenient)


@given(content=st.binary(max_size=200), packed=st.booleans(), lenient=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes, packed: bool, lenient: bool) -> None:
    file = written(tmp_path, gzip.compress(content)[:-1] if packed else content)
    assert str(file) in outcome(file, lenient)
