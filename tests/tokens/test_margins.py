"""The margins on models whose tokenizer is not public, or not shipped: measured again, on real sessions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import splintr
from support.tokens import transcripts

from compact.engine.corrections import Observed, correction_of
from compact.messages.dialects import get
from compact.tokens import Meter, profile_of
from compact.tokens.counter import counter_for

CLAUDE_SESSION = Path(__file__).resolve().parents[3] / "shared" / "data" / "raw" / "pi_large_session.jsonl.gz"
SESSION_CHARS = 60_000

FAMILIES = [
    ("llama-3.3-70b", "llama3"),
    ("llama-2-70b", "llama2"),
    ("mistral-large-latest", "mistral_v3"),
    ("mistral-7b-instruct", "mistral_v1"),
    ("qwen3-coder", "qwen3"),
    ("deepseek-v3.1", "deepseek_v3"),
    ("kimi-k2", "kimi_k2"),
    ("glm-4.6", "glm4"),
    ("gemini-2.5-pro", "gemma3"),
    ("phi-4", "phi4"),
]


def excerpts() -> Iterator[list[str]]:
    """The first strings of every session."""
    pieces = get("chat").pieces
    for messages in transcripts():
        found: list[str] = []
        chars = 0
        for text in (piece for message in messages for piece in pieces(message)):
            if chars > SESSION_CHARS:
                break
            if isinstance(text, str):
                found.append(text.encode("utf-8", "replace").decode())
                chars += len(text)
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("model", "vocabulary"), FAMILIES)
def test_no_session_has_more_tokens_than_the_margin_allows(model: str, vocabulary: str) -> None:
    """The family's own vocabulary (splintr carries it) on every shared session."""
    own = splintr.Tokenizer.from_pretrained(vocabulary)
    profile = profile_of(model)
    count = counter_for(profile.encoding).count
    ratios = []
    for texts in excerpts():
        nearest = sum(map(count, texts))
        ratios.append(sum(len(own.encode_ordinary(text)) for text in texts) / nearest)
    assert len(ratios) > 100
    assert max(ratios) <= profile.percent / 100


def claude_requests() -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Recorded requests to claude-sonnet-4-5: what was added since the last one, and by how much the input grew."""
    if not CLAUDE_SESSION.is_file():
        pytest.skip(f"no recorded session in {CLAUDE_SESSION}")
    added: list[dict[str, Any]] = []
    before = None
    with gzip.open(CLAUDE_SESSION, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            message = entry.get("message") or {}
            if entry.get("type") != "message" or message.get("stopReason") in ("aborted", "error"):
                continue
            if message["role"] == "assistant":
                usage = message["usage"]
                sent = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
                if before is not None and sent > before:
                    yield added, sent - before
                before, added = sent, []
            added.append(as_anthropic(message))


def as_anthropic(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if message["role"] == "toolResult":
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": message["toolCallId"], "content": content}],
        }
    blocks = [
        {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}
        if block["type"] == "toolCall"
        else block
        for block in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]
    return {"role": message["role"], "content": blocks}


@pytest.mark.slow
def test_recorded_usage_of_claude_stays_below_our_count() -> None:
    """Over the whole session, and in 98 of 100 single steps with what growth is rounded up by."""
    meter = Meter("claude-sonnet-4-5")
    steps = [
        (meter.scale(sum(meter.count_item(message, "anthropic") for message in added)), grown)
        for added, grown in islice(claude_requests(), 1000)
    ]
    assert len(steps) > 400
    ours, theirs = sum(our for our, _ in steps), sum(their for _, their in steps)
    assert theirs < ours < 1.3 * theirs
    seen = Observed(0, 50_000, 50_000)
    large = [(our, their) for our, their in steps if our > 300]
    rounded = [
        (our + correction_of(50_000 + our, 0, seen, is_exact=False).unseen, their) for our, their in large
    ]
    assert sum(our >= their for our, their in rounded) >= 0.98 * len(large)
