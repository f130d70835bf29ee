"""What recorded a session, and the timeline that is read from it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.engine import Clock, events, says, user

from compact import CompactConfig, CompactManager
from compact.errors import TranscriptError
from compact.tools.pricing import Timeline, read_timelines
from compact.tools.pricing.timelines import USUAL_HEAD

ENTRY = {
    "start": 1.5,
    "end": 3.0,
    "model": "claude-opus-4-5",
    "fresh": 10,
    "cache_read": 1_000,
    "cache_write": 500,
    "write_5m": 500,
    "write_1h": 0,
    "output": 40,
}


def written(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def read(path: Path, **more: Any) -> list[Timeline]:
    return list(read_timelines([path], "gpt-4o", **more))


def test_a_timelines_file_is_read_plain_and_gzipped(tmp_path: Path) -> None:
    lines = [{"id": "a", "requests": [ENTRY, {**ENTRY, "write_1h": 500}]}, {"id": "b", "requests": [ENTRY]}]
    plain = written(tmp_path / "t.jsonl", lines)
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = read(plain)
    assert found == read(packed)
    assert [(one.id, len(one.requests)) for one in found] == [("a", 2), ("b", 1)]
    first, second = found[0].requests
    assert (first.tokens, first.output, first.start_s) == (1_510, 40, 1.5)
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.life_s, second.usage.life_s) == (300, 3_600)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "a", "requests": [{**ENTRY, "fresh": -1}]},
        {"id": "a", "requests": [{**ENTRY, "cache_read": "many"}]},
        {"id": "a", "requests": [{"start": 1}]},
        {"id": "a", "requests": [7]},
        {"requests": [ENTRY]},
    ],
)
def test_a_line_that_is_no_timeline_is_named(tmp_path: Path, wrong: Any) -> None:
    path = written(tmp_path / "t.jsonl", [{"id": "good", "requests": [ENTRY]}, wrong])
    with pytest.raises(TranscriptError, match="line 2: it is not a timeline"):
        read(path)
    assert [one.id for one in read(path, lenient=True)] == ["good"]


def test_the_head_is_the_least_that_was_read_behind_a_change(tmp_path: Path) -> None:
    def timeline(*sizes: tuple[int, int]) -> Timeline:
        entries = [
            {**ENTRY, "start": 10.0 * n, "fresh": 0, "cache_read": served, "cache_write": size - served}
            for n, (size, served) in enumerate(sizes)
        ]
        (found,) = read(written(tmp_path / "t.jsonl", [{"id": "a", "requests": entries}]))
        return found

    assert timeline((50_000, 0), (51_000, 50_000)).head == USUAL_HEAD
    assert timeline((9_000, 0), (51_000, 9_000)).head == 9_000, "never more than the first request"
    assert timeline((50_000, 0), (51_000, 16_000), (52_000, 51_000)).head == 16_000
    assert timeline((50_000, 0), (90_000, 50_000), (40_000, 18_000)).head == 18_000


def test_a_session_of_claude_code_is_read_by_its_usage(tmp_path: Path) -> None:
    def reply(message: str, at: str, read: int, output: int) -> dict[str, Any]:
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_1h_input_tokens": 100, "ephemeral_5m_input_tokens": 0},
            "output_tokens": output,
        }
        said = {
            "role": "assistant",
            "id": message,
            "content": [{"type": "text", "text": "x"}],
            "usage": usage,
        }
        return {"type": "assistant", "sessionId": "s", "timestamp": at, "message": said}

    question = {"role": "user", "content": "Read it."}
    lines = [
        {"type": "user", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "message": question},
        reply("m1", "2026-01-01T00:00:04Z", 1_000, 1),
        reply("m1", "2026-01-01T00:00:05Z", 1_000, 80),
        {"type": "user", "sessionId": "s", "timestamp": "2026-01-01T00:10:00Z", "message": question},
        reply("m2", "2026-01-01T00:10:04Z", 1_100, 7),
        {**reply("side", "2026-01-01T00:11:00Z", 5, 5), "isSidechain": True},
    ]
    (found,) = read(written(tmp_path / "s.jsonl", lines))
    assert found.id == "s"
    assert [(one.tokens, one.output) for one in found.requests] == [(1_104, 80), (1_204, 7)]
    first, second = found.requests
    assert first.start_s is not None
    assert second.start_s is not None
    assert second.start_s - first.start_s == 600, "the line before a reply says when it was asked for"
    assert first.usage is not None
    assert first.usage.life_s == 3_600


def test_the_events_of_live_sessions_are_read(tmp_path: Path) -> None:
    clock = Clock()
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=8_000, archive={"adapter": "fs", "root": str(tmp_path)}
    )
    with CompactManager(config, clock=clock) as manager:
        sent = [user("Begin.")]
        for n in range(9):
            words = " ".join(f"word{n}x{k}" for k in range(400))
            sent = list(manager.preflight("s", [*sent, says(words), user("Go on.")]))
            clock.wait(60)
        sizes = [one["properties"]["t_est"] for one in events(manager, name="token_estimate")]
        after = [one["properties"]["tokens_after"] for one in events(manager, name="finished")]
    (log,) = tmp_path.rglob("events.jsonl")
    (found,) = read(log)
    assert found.id == "s"
    assert len(found.requests) == 9
    assert after
    assert {one.tokens for one in found.requests} <= {*sizes, *after}
    pauses = [
        two.start_s - one.start_s
        for one, two in zip(found.requests, found.requests[1:], strict=False)
        if one.start_s is not None and two.start_s is not None
    ]
    assert all(59 < pause < 62 for pause in pauses)


def test_any_other_transcript_is_counted(tmp_path: Path) -> None:
    talk = [user("Read it."), says("I did."), user("And?"), says("Nothing.")]
    (found,) = read(written(tmp_path / "t.jsonl", [{"messages": talk}]))
    assert len(found.requests) == 2
    assert found.requests[0].tokens < found.requests[1].tokens
    assert all(one.output and one.start_s is None and one.usage is None for one in found.requests)
