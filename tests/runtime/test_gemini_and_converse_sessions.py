"""Whole sessions of Gemini contents and of Converse messages: bytes, signatures, marks, the archive and a restart."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, checks
from compact.messages import dialects

Item = dict[str, Any]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
POINT: Item = {"cachePoint": {"type": "default"}}


def manager(folder: Path) -> CompactManager:
    archive: Any = {"adapter": "fs", "root": str(folder)}
    return CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000, archive=archive))


def output(number: int) -> str:
    return "\n".join(f"file {number}, line {line}: the value is {line * number}" for line in range(60))


def gemini_turn(number: int) -> list[Item]:
    call = {
        "functionCall": {"name": "read", "args": {"path": f"{number}.txt"}},
        "thoughtSignature": f"c2ln{number:04}",
    }
    answer = {"functionResponse": {"name": "read", "response": {"result": output(number)}}}
    picture = {"inline_data": {"mime_type": "image/png", "data": PNG}}
    return [
        {"role": "user", "parts": [{"text": f"Read {number}.txt. Never touch file {number}."}, picture]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, call]},
        {"role": "user", "parts": [answer]},
        {"role": "model", "parts": [{"text": f"Read {number}."}]},
    ]


def converse_turn(number: int) -> list[Item]:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": f"sig{number}"}}}
    use = {"toolUse": {"toolUseId": f"t{number}", "name": "read", "input": {"path": f"{number}.txt"}}}
    result = {"toolUseId": f"t{number}", "content": [{"text": output(number)}], "status": "success"}
    picture = {"image": {"format": "png", "source": {"bytes": PNG}}}
    return [
        {"role": "user", "content": [{"text": f"Read {number}.txt. Never touch file {number}."}, picture]},
        {"role": "assistant", "content": [thought, use]},
        {"role": "user", "content": [{"toolResult": result}, *([POINT] if number < 2 else [])]},
        {"role": "assistant", "content": [{"text": f"Read {number}."}]},
    ]


TURNS = {"gemini": gemini_turn, "converse": converse_turn}


def signed_parts(items: list[Any]) -> list[Any]:
    blocks = [block for item in items for block in item.get("parts", item.get("content"))]
    return [block for block in blocks if "thoughtSignature" in block or "reasoningContent" in block]


@pytest.mark.parametrize("dialect", TURNS)
def test_a_session_is_compacted_archived_and_continued_after_a_restart(dialect: str, tmp_path: Path) -> None:
    history = [item for number in range(20) for item in TURNS[dialect](number)]
    with manager(tmp_path) as first:
        kept = first.preflight("s", history)
        assert checks.violations(kept, dialect) == []
        assert len(kept) < len(history)
        restored = list(first.archive.restore("s", step=1).messages)
    assert len(restored) == len(history)
    assert dialect == dialects.detect(restored).NAME
    assert dialects.read(restored)[1] == dialects.read(history)[1], "bytes are kept as base64"
    with manager(tmp_path) as second:
        assert second.preflight("s", history) == kept, "a host that passes its full history gets the same"
        going_on = [*kept, *TURNS[dialect](20)[:1]]
        assert second.preflight("s", going_on) == going_on, "a host that keeps the list goes on with it"


@pytest.mark.parametrize("dialect", TURNS)
def test_what_is_signed_stays_byte_for_byte_or_goes(dialect: str, tmp_path: Path) -> None:
    history = [item for number in range(20) for item in TURNS[dialect](number)]
    own = {id(block) for block in signed_parts(history)}
    with manager(tmp_path) as made:
        kept = made.manual_compact("s", history)
    assert all(id(block) in own for block in signed_parts(kept))


def test_a_summary_takes_over_the_cache_point_of_what_it_replaces(tmp_path: Path) -> None:
    history = [item for number in range(20) for item in converse_turn(number)]
    with manager(tmp_path) as made:
        kept = made.preflight("s", history)
    (summary,) = [item for item in kept if "COMPACT-SUMMARY" in str(item)]
    assert summary["content"][-1] == POINT
    assert sum(POINT in item["content"] for item in kept) <= 4


def test_a_pointer_stands_where_the_text_stood(tmp_path: Path) -> None:
    long = {"functionResponse": {"id": "a", "name": "read", "response": {"result": "row of text\n" * 8_000}}}
    call = {"functionCall": {"id": "a", "name": "read", "args": {}}}
    history: list[Item] = [
        {"role": "user", "parts": [{"text": "Read it."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [long]},
    ]
    with manager(tmp_path) as made:
        kept = made.preflight("s", history)
    answer = kept[2]["parts"][0]["functionResponse"]
    assert (answer["id"], answer["name"]) == ("a", "read")
    assert answer["response"]["result"].startswith("[compact: the output of read is in /tool_outputs/")
    assert kept[:2] == history[:2]


def test_a_system_prompt_may_have_the_providers_form(tmp_path: Path) -> None:
    text = "Never touch the database. " * 40
    with manager(tmp_path) as made:
        contents: list[Item] = [{"role": "user", "parts": [{"text": "Hi"}]}]
        prompts: list[Any] = [text, {"parts": [{"text": text}]}, [{"text": text}], [{"text": text}, POINT]]
        sizes = {made.estimate(contents, system=prompt).system for prompt in prompts}
    assert len(sizes) == 1
    assert sizes.pop() > 200


def test_a_message_that_stays_keeps_its_cache_point_for_itself() -> None:
    """A summary is written for more than goes in the end: what there is room for stays, with its mark."""
    said = {"role": "assistant", "content": [{"text": "0"}]}
    history: list[Item] = [
        {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": PNG}}}, {"text": "0"}]},
        said,
        {"role": "user", "content": [{"text": "0"}, POINT]},
        said,
        {"role": "user", "content": [{"text": "0"}]},
    ]
    policy: Any = {"hard_cap_buffer": 20, "keep_recent_turns": 1, "keep_tool_io_pairs": 0}
    guard: Any = {"min_context_tokens": 50, "warn_context_tokens": 50}
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=250, policy=policy, guard=guard, archive={"adapter": "memory"}
    )
    with CompactManager(config) as made:
        kept = made.preflight("s", history)
        assert kept[-3:] == history[-3:]
        assert sum(POINT in item["content"] for item in kept[-3:]) == 1  # the frame before them has its own
        assert made.preflight("s", history) == kept, "a host that passes its full history gets the same"
