"""A request with more pictures or documents than its provider takes is made one that it takes."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from support.engine import Clock, events, says, user
from support.standins import provider_problems

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.messages.protecting import mark_protected
from compact.tools.standins import anthropic_problems

Item = dict[str, Any]
PER_RESULT = 10


def png(number: int) -> bytes:
    """A picture of one pixel, different for each number, with a comment that makes it as long as small pictures are."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(
        b"tEXt", b"Comment\0" + b"x" * 900
    )
    pixel = b"\0" + number.to_bytes(3, "big")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(pixel)) + chunk(b"IEND", b"")


def encoded(number: int) -> str:
    return base64.b64encode(png(number)).decode()


def chat(numbers: range, turn: int) -> list[Item]:
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded(n)}"}} for n in numbers
    ]
    said = [{"type": "text", "text": f"set {turn}"}, *pictures]
    return [{"role": "user", "content": said}, {"role": "assistant", "content": "seen"}]


def ai_sdk(numbers: range, turn: int) -> list[Item]:
    pictures = [{"type": "image", "image": encoded(n), "mediaType": "image/png"} for n in numbers]
    said = [{"type": "text", "text": f"set {turn}"}, *pictures]
    return [
        {"role": "user", "content": said},
        {"role": "assistant", "content": [{"type": "text", "text": "seen"}]},
    ]


def responses(numbers: range, turn: int) -> list[Item]:
    output = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{encoded(n)}", "detail": "low"}
        for n in numbers
    ]
    return [
        {"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{turn}", "output": output},
    ]


def anthropic(numbers: range, turn: int) -> list[Item]:
    content: list[Item] = [{"type": "text", "text": f"set {turn}"}]
    for n in numbers:
        source = {"type": "base64", "media_type": "image/png", "data": encoded(n)}
        content.append({"type": "image", "source": source})
    return [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"toolu_{turn}", "name": "read", "input": {"n": turn}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": content}],
        },
    ]


def gemini(numbers: range, turn: int) -> list[Item]:
    pictures = [{"inlineData": {"mimeType": "image/png", "data": encoded(n)}} for n in numbers]
    return [
        {"role": "user", "parts": [{"text": f"set {turn}"}, *pictures]},
        {"role": "model", "parts": [{"text": "seen"}]},
    ]


def converse(numbers: range, turn: int) -> list[Item]:
    pictures = [{"image": {"format": "png", "source": {"bytes": png(n)}}} for n in numbers]
    return [
        {"role": "user", "content": [{"text": f"set {turn}"}, *pictures]},
        {"role": "assistant", "content": [{"text": "seen"}]},
    ]


def words(text: str, dialect: str) -> Item:
    """What a person says."""
    if dialect == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": [{"text": text}] if dialect == "converse" else text}


SETS: dict[str, tuple[str, int, Callable[[range, int], list[Item]]]] = {
    "anthropic": ("claude-sonnet-4-5", 100, anthropic),
    "chat": ("gpt-4.1", 1500, chat),
    "responses": ("gpt-4.1", 1500, responses),
    "ai_sdk": ("gpt-4.1", 1500, ai_sdk),
    "gemini": ("gemini-2.5-pro", 3600, gemini),
    "converse": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 20, converse),
}


def talk(dialect: str, pictures: int) -> list[Item]:
    """A session that a person begins and in which so many pictures come up."""
    of_one = SETS[dialect][2]
    first = [words("Read all pages", dialect)] if dialect in ("anthropic", "responses") else []
    sets = [of_one(range(n, n + PER_RESULT), n) for n in range(0, pictures, PER_RESULT)]
    last = [words("And now?", dialect)] if not first else []
    return [*first, *(item for each in sets for item in each), *last]


def manager(model: str, **settings: Any) -> CompactManager:
    config = CompactConfig(
        model=model, max_context_tokens=4_000_000, archive={"adapter": "memory"}, **settings
    )
    return CompactManager(config, clock=Clock())


def asked(items: list[Item], dialect: str, model: str) -> list[str]:
    """Why the stand-in refuses these messages."""
    if dialect == "anthropic":
        tools = [{"name": "read", "input_schema": {"type": "object"}}]
        return anthropic_problems({"model": model, "max_tokens": 9, "messages": items, "tools": tools})
    if dialect == "ai_sdk":
        return provider_problems(list(map(_as_chat, items)), "chat")
    return provider_problems(items, dialect)


def _as_chat(item: Item) -> Item:
    """What the AI-SDK makes of a message for OpenAI."""
    content = item["content"]
    if isinstance(content, str):
        return item
    blocks = [
        {"type": "image_url", "image_url": {"url": f"data:{part['mediaType']};base64,{part['image']}"}}
        if part["type"] == "image"
        else part
        for part in content
    ]
    return {**item, "content": blocks}


@pytest.mark.parametrize("dialect", SETS)
def test_a_request_that_is_refused_for_its_pictures_is_accepted_after_a_preflight(dialect: str) -> None:
    model, most, _ = SETS[dialect]
    items = talk(dialect, most + 2 * PER_RESULT)
    assert [why for why in asked(items, dialect, model) if "images" in why]
    made = manager(model)
    out = made.preflight("s", items, dialect=dialect)
    assert asked(out, dialect, model) == []
    assert violations(out, dialect) == []
    assert str(out).count("stood here") == most // 2 + 2 * PER_RESULT
    assert "image/png" in str(out)
    assert len(out) == len(items)
    assert made.preflight("s", out, dialect=dialect) == out, "the host that keeps what it got"
    assert made.preflight("s", items, dialect=dialect) == out, "the host that sends its full history"
    assert len(made.archive.steps("s")) == 1


@pytest.mark.parametrize("dialect", ["anthropic", "chat", "gemini"])
def test_restore_gives_the_pictures_back_byte_for_byte(dialect: str) -> None:
    model, most, _ = SETS[dialect]
    items = talk(dialect, most + PER_RESULT)
    made = manager(model)
    made.preflight("s", items, dialect=dialect)
    assert json.dumps(made.archive.restore("s").messages) == json.dumps(items)


def test_the_oldest_pictures_leave_and_every_other_message_stays_the_same_object() -> None:
    items = talk("anthropic", 120)
    out = manager("claude-sonnet-4-5").preflight("s", items)
    changed = [n for n, (one, other) in enumerate(zip(items, out, strict=True)) if one is not other]
    assert changed == [2 * n + 2 for n in range(7)]


def test_pictures_that_the_provider_takes_stay() -> None:
    items = talk("anthropic", 100)
    made = manager("claude-sonnet-4-5")
    assert made.preflight("s", items) is items
    assert events(made, name="offload") == []


def test_the_prefix_stands_until_the_limit_is_reached_again() -> None:
    items = talk("anthropic", 110)
    made = manager("claude-sonnet-4-5")
    before = made.preflight("s", items)
    for n in range(110, 160, PER_RESULT):
        items += anthropic(range(n, n + PER_RESULT), n)
        out = made.preflight("s", items)
        assert out[: len(before)] == before
        before = out
    assert len(made.archive.steps("s")) == 1
    items += anthropic(range(160, 170), 160)
    assert asked(made.preflight("s", items), "anthropic", "claude-sonnet-4-5") == []
    assert len(made.archive.steps("s")) == 2


def test_another_process_sends_the_same_bytes() -> None:
    items = talk("anthropic", 120)
    made = manager("claude-sonnet-4-5")
    out = made.preflight("s", items)
    other = CompactManager(made.config, archive=made.archive, clock=Clock())
    assert json.dumps(other.preflight("s", json.loads(json.dumps(items)))) == json.dumps(out)
    assert len(made.archive.steps("s")) == 1


def test_the_newest_message_of_the_user_and_protected_ones_are_never_touched() -> None:
    items = talk("anthropic", 110)
    items[2] = mark_protected(items[2])
    sources = [{"type": "base64", "media_type": "image/png", "data": encoded(n)} for n in range(40)]
    items += [
        {"role": "assistant", "content": "Ready."},
        {"role": "user", "content": [{"type": "image", "source": each} for each in sources]},
    ]
    out = manager("claude-sonnet-4-5").preflight("s", items)
    assert out[2] is items[2]
    assert out[-1] is items[-1]
    assert json.dumps(out).count('"media_type"') == 50


def test_a_request_of_which_nothing_may_leave_is_returned_and_tried_no_further() -> None:
    blocks = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(n)}}
        for n in range(120)
    ]
    items = [{"role": "user", "content": blocks}]
    made = manager("claude-sonnet-4-5")
    assert made.preflight("s", items) is items
    assert made.preflight("s", items) is items
    assert events(made, name="started") == []


def test_documents_leave_by_their_own_limit() -> None:
    items: list[Item] = []
    for n in range(8):
        document = {"format": "pdf", "name": f"page {n}", "source": {"bytes": b"%PDF-1.4 " + bytes([65 + n])}}
        items += [
            {"role": "user", "content": [{"text": f"document {n}"}, {"document": document}]},
            {"role": "assistant", "content": [{"text": "read"}]},
        ]
    items.append(words("Compare them", "converse"))
    assert [why for why in provider_problems(items, "converse") if "documents" in why]
    out = manager("amazon.nova-pro-v1:0").preflight("s", items)
    assert provider_problems(out, "converse") == []
    assert str(out).count("a document (pdf") == 6


def test_a_body_over_the_limit_in_bytes_shrinks_below_it() -> None:
    """Pictures decide the size of a body, and the configuration may say what a gateway takes."""
    items = talk("anthropic", 60)
    size = len(json.dumps(items))
    made = manager(
        "claude-sonnet-4-5",
        models={"claude-sonnet-4-5": {"request": {"images": 100, "bytes": size // 2}}},
    )
    out = made.preflight("s", items)
    assert len(json.dumps(out)) < size // 2
    assert "stood here" in str(out)
    assert made.preflight("s", items) == out
    assert len(made.archive.steps("s")) == 1


def test_the_events_name_the_budget_and_what_left() -> None:
    made = manager("claude-sonnet-4-5")
    made.preflight("s", talk("anthropic", 120))
    (decision,) = events(made, name="trigger_decision")
    assert decision["properties"]["reason"] == "budget"
    (finished,) = events(made, name="finished")
    assert finished["properties"]["outcome"] == "compacted"
    left = events(made, name="offload")
    assert len(left) == 7
    assert {each["properties"]["tool_name"] for each in left} == {"read"}


def test_a_cache_mark_on_a_picture_stays_on_what_replaces_it() -> None:
    items = talk("anthropic", 120)
    items[2]["content"][0]["content"][1]["cache_control"] = {"type": "ephemeral"}
    out = manager("claude-sonnet-4-5").preflight("s", items)
    pointer = out[2]["content"][0]["content"][1]
    assert pointer["type"] == "text"
    assert pointer["cache_control"] == {"type": "ephemeral"}


def test_pictures_in_what_a_function_of_gemini_said_leave_too() -> None:
    items = [words("Read all pages", "gemini")]
    for n in range(30):
        parts = [{"inlineData": {"mimeType": "image/png", "data": encoded(n)}}]
        response = {"name": "read", "response": {"output": f"page {n}"}, "parts": parts}
        items += [
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"n": n}}}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    made = manager("gemini-2.5-pro", models={"gemini-2.5-pro": {"request": {"images": 20}}})
    out = made.preflight("s", items)
    assert json.dumps(out).count("inlineData") == 10
    assert "page 0" in json.dumps(out[2])
    assert "stood here" in json.dumps(out[2])
    assert provider_problems(out, "gemini") == []


def test_a_screenshot_that_the_computer_tool_must_answer_with_stays() -> None:
    items = [words("Open the page", "responses")]
    for n in range(30):
        url = f"data:image/png;base64,{encoded(n)}"
        output = {"type": "computer_screenshot", "image_url": url}
        call = {"type": "computer_call", "id": f"cu_{n}", "call_id": f"c{n}", "status": "completed"}
        items += [
            {**call, "action": {"type": "screenshot"}, "pending_safety_checks": []},
            {"type": "computer_call_output", "call_id": f"c{n}", "output": output},
        ]
    made = manager("gpt-4.1", models={"gpt-4.1": {"request": {"images": 20}}})
    assert made.preflight("s", items, dialect="responses") is items


def test_a_session_at_its_trigger_gets_one_pass_for_both() -> None:
    items = talk("anthropic", 120)
    for n in range(12):
        items += [says(f"note {n} " * 400), user(f"go on with {n}")]
    config = CompactConfig(
        model="claude-sonnet-4-5", max_context_tokens=16_000, archive={"adapter": "memory"}
    )
    made = CompactManager(config, clock=Clock())
    out = made.preflight("s", items)
    assert asked(out, "anthropic", "claude-sonnet-4-5") == []
    assert made.archive.steps("s") == [1]
    (finished,) = events(made, name="finished")
    assert finished["properties"]["tokens_after"] < 16_000
    assert json.dumps(made.archive.restore("s").messages) == json.dumps(items)
    assert made.preflight("s", items) == out


def test_the_thinking_of_models_that_bind_it_stays_legal_behind_what_left() -> None:
    model = "claude-haiku-5-5"
    made = manager(model, models={model: {"request": {"images": 20}}})
    items, sent = [words("Read all pages", "anthropic")], []
    for n in range(40):
        call, result = anthropic(range(n, n + 1), n)
        call["content"].insert(0, {"type": "thinking", "thinking": f"page {n}", "signature": "c2ln" * 30})
        items += [call, result]
        sent.append(made.preflight("s", items))
        assert violations(sent[-1], model=model) == []
        assert json.dumps(sent[-1]).count("media_type") <= 20
    assert len(made.archive.steps("s")) == 2
    assert "signature" in json.dumps(sent[-1])
    assert json.dumps(sent[-1]).count("signature") < 40
