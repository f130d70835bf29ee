"""What is not understood is an error that says what was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.talks import Step, Turn, responses
from support.transcript_files import only, texts, written

from compact.tools.transcripts import TranscriptError, read_sessions


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": kind, "payload": payload}


def item(entry: dict[str, Any]) -> dict[str, Any]:
    return line("response_item", **entry)


LOGS: dict[str, list[Any]] = {
    "a log with types": [{"type": "info", "msg": "started"}, {"type": "api_call", "ms": 12}],
    "a log with types and contents": [
        {"type": "info", "content": "started"},
        {"type": "debug", "content": "x"},
    ],
    "a log with levels": [{"level": "info", "message": "started", "ts": 1}],
    "a log with sessions": [{"type": "info", "sessionId": "s", "message": "started"}],
    "events of an agent": [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}],
    "a rollout of events only": [
        line("session_meta", id="c", timestamp="t"),
        line("event_msg", type="token_count"),
    ],
    "a rollout of unknown items": [line("session_meta", id="c", timestamp="t"), item({"type": "hologram"})],
    "traces": [{"name": "compact.started", "session_id": "s", "properties": {}}],
    "roles without contents": [{"role": "user", "time": 1}, {"role": "assistant", "time": 2}],
    "AI SDK UI messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
    "ShareGPT rows": [{"conversations": [{"from": "human", "value": "hi"}]}],
    "prompts": [{"prompt": "a", "completion": "b"}],
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("shape", ["lines", "list", "messages"])
def test_what_is_not_understood_is_an_error_that_says_what_was_seen(
    tmp_path: Path, name: str, lenient: bool, shape: str
) -> None:
    entries = LOGS[name]
    if shape == "lines":
        file = written(tmp_path, entries, "log.jsonl")
    else:
        file = written(tmp_path, entries if shape == "list" else {"messages": entries})
    with pytest.raises(TranscriptError) as caught:
        list(read_sessions(file, lenient))
    words = str(caught.value)
    assert any(key in words for key in sorted(entries[0])), words
    assert caught.value.hint or lenient


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"SQLite format 3\x00", "it is an SQLite database. Export the session as JSON first; for opencode"),
        (b"PK\x03\x04", "it is a ZIP archive. Unpack it; of a ChatGPT export"),
        (b"\x28\xb5\x2f\xfd", "it is compressed with zstd. Unpack it first"),
    ],
)
def test_a_container_says_how_to_get_at_the_transcript(tmp_path: Path, start: bytes, words: str) -> None:
    file = tmp_path / "opencode.db"
    file.write_bytes(start + b"\x00" * 50)
    with pytest.raises(TranscriptError, match=words):
        list(read_sessions(file))


def test_a_new_type_of_item_is_carried_along_among_known_ones(tmp_path: Path) -> None:
    new = {"type": "hologram", "id": "h1", "rays": []}
    entries = [*responses([Turn("hi", [Step("yes")])]), {"type": "reasoning", "id": "r", "summary": []}, new]
    assert only(written(tmp_path, entries)).messages == entries
    with pytest.raises(TranscriptError, match="hologram"):
        list(read_sessions(written(tmp_path, [new])))


def test_a_list_with_one_stranger_names_it(tmp_path: Path) -> None:
    file = written(tmp_path, [{"role": "user", "content": "hi"}, {"type": "note", "words": "x"}])
    with pytest.raises(
        TranscriptError, match=r"messages\[1\] is not a message: it has the keys type, words \(type 'note'\)"
    ):
        list(read_sessions(file))
    session = only(file, lenient=True)
    assert (texts(session), len(session.skipped)) == (["hi"], 1)
