"""Anthropic's compaction on demand: what the API refuses, what it answers, and what a block stands for.

Pages of platform.claude.com/docs/en/build-with-claude: compaction-on-demand, compaction-keep-recent-turns,
compaction-thinking-blocks. Written without looking at `compact.summaries.native`, so that one does not repeat the mistakes of
the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.tools.standins.problems import Item, Problem, Rules
from compact.tools.standins.script import Reply, Told
from compact.tools.standins.signing import is_signed, sign

BETA = "compact-2026-09-04"
_THRESHOLD_BETA = "compact-2026-01-12"
_PAGE = "Claude docs: build-with-claude/compaction-on-demand"
_MOST_INSTRUCTIONS = 16_384
_FIELDS = frozenset({"type", "content", "signature", "encrypted_content", "tool_changes", "cache_control"})
_IDLE = ("stop_sequences", "context_management")


@dataclass(frozen=True, slots=True)
class Summary(Reply):
    """What the provider's own summarizer says. With another `stop_reason` than `compaction` there is no summary."""

    stop_reason: str = "compaction"


@dataclass(frozen=True, slots=True)
class Swap:
    """What a block stands for, as thinking behind it is bound to it."""

    maker: str
    """The model that wrote it."""
    beside: str
    """The digest of the system prompt and the tools of its request."""
    prefix: str
    """The digest of everything that it replaces."""
    last_role: str
    """The role of the last message that it replaces."""


def is_compacting(body: Item) -> bool:
    """Whether a request asks for a summary instead of a reply."""
    return body.get("compaction") is not None


def signed_block(message: Any) -> Item | None:
    """The signed block with which a message begins; None if it begins with anything else."""
    content = message.get("content") if isinstance(message, Mapping) else None
    first = content[0] if isinstance(content, list) and content else None
    if first is None or not _is_block(first):
        return None
    return first if first.get("signature") is not None else None


def swap_of(block: Item) -> Swap:
    """What a block says about what it replaces. A foreign one says nothing."""
    _, _, *parts = [*str(block.get("signature")).split("."), "", "", "", "", "", ""]
    return Swap(*parts[:4])


# --- what is refused


def native_problems(body: Item, rules: Rules) -> Iterator[Problem]:
    """What is wrong with a request for a summary, and with the blocks of any request."""
    if is_compacting(body):
        yield from _request_problems(body)
    blocks = list(_blocks(body.get("messages")))
    signed = [each for each in blocks if each[2].get("signature") is not None]
    for place, inside, block in blocks:
        where = f"messages.{place}.content.{inside}"
        for key in block.keys() - _FIELDS:
            yield _problem(f"{where}.compaction.{key}: Extra inputs are not permitted")
        if block.get("content") == "":
            yield _problem(f"{where}.compaction.content: String should have at least 1 character")
    if len(signed) > 1:
        yield _problem(
            f"messages: at most one signed `compaction` block may be provided, found {len(signed)}"
        )
    for place, inside, block in signed:
        if place or inside:
            text = f"messages.{place}.content.{inside}: a signed `compaction` block must come first in `messages`"
            yield _problem(text, "compaction_block_misplaced")
        if rules.signing_key is not None:
            yield from _signature_problems(place, block, rules.signing_key)
    if signed and any(edit.get("type") == "compact_20260112" for edit in _edits(body)):
        yield _problem("context_management: `compact_20260112` cannot run on a request with a signed block")


def _request_problems(body: Item) -> Iterator[Problem]:
    asked = body["compaction"]
    if not isinstance(asked, dict) or asked.get("type") != "summarize":
        yield _problem("compaction.type: Input should be 'summarize'")
        return
    for key in asked.keys() - {"type", "instructions"}:
        yield _problem(f"compaction.{key}: Extra inputs are not permitted")
    instructions = asked.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        yield _problem("compaction.instructions: Input should be a valid string")
    elif len(instructions or "") > _MOST_INSTRUCTIONS:
        yield _problem(f"compaction.instructions: String should have at most {_MOST_INSTRUCTIONS} characters")
    for key in _IDLE:
        if body.get(key):
            yield _problem(f"{key}: cannot be combined with `compaction`")
    choice, output = body.get("tool_choice"), body.get("output_config")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield _problem(f"tool_choice.type: '{choice['type']}' cannot be combined with `compaction`")
    if isinstance(output, dict) and output.get("format") is not None:
        yield _problem("output_config.format: cannot be combined with `compaction`")
    messages = body.get("messages")
    if messages == []:
        yield _problem("messages: there is nothing to summarize", "compaction_nothing_to_summarize")


def _signature_problems(place: int, block: Item, key: bytes) -> Iterator[Problem]:
    of_text, of_swap, *rest = [*str(block["signature"]).split("."), "", ""]
    swap = ".".join(rest[:-2])
    if not is_signed(swap, of_swap, key):
        text = f"messages.{place}.content.0: Invalid `signature` in `compaction` block"
        yield _problem(text, "compaction_signature_invalid")
    elif not is_signed(f"{swap}\n{block.get('content')}", of_text, key):
        text = f"messages.{place}.content.0: the `content` of the `compaction` block is not what was signed"
        yield _problem(text, "compaction_content_mismatch")


def header_problems(body: Item, headers: Mapping[str, str]) -> Iterator[Problem]:
    """What a request lacks in its `anthropic-beta` header."""
    betas = {name.strip() for name in headers.get("anthropic-beta", "").split(",")}
    if is_compacting(body) and BETA not in betas:
        yield _problem(f"compaction: the `compaction` parameter requires anthropic-beta: {BETA}")
    for place, inside, block in _blocks(body.get("messages")):
        needed = {BETA} if block.get("signature") is not None else {BETA, _THRESHOLD_BETA}
        if not needed & betas:
            yield _problem(
                f"messages.{place}.content.{inside}: Input tag 'compaction' found using 'type' does not match any of the "
                "expected tags: 'image', 'text', 'thinking', 'tool_result', 'tool_use'"
            )


def _problem(text: str, code: str | None = None) -> Problem:
    return Problem(text, code=code, page=_PAGE)


def _blocks(messages: Any) -> Iterator[tuple[int, int, Item]]:
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for inside, block in enumerate(content if isinstance(content, list) else ()):
            if _is_block(block):
                yield place, inside, block


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "compaction"


def _edits(body: Item) -> Sequence[Item]:
    settings = body.get("context_management")
    edits = settings.get("edits") if isinstance(settings, dict) else None
    return [edit for edit in edits or () if isinstance(edit, dict)]


# --- what is answered


def make_block(content: str, swap: Swap, key: bytes) -> Item:
    """A signed block for a summary of what `swap` says."""
    told = ".".join((swap.maker, swap.beside, swap.prefix, swap.last_role))
    signature = ".".join((sign(f"{told}\n{content}", key), sign(told, key), told))
    return {"type": "compaction", "content": content, "signature": signature}


def compaction_answer(told: Told, swap: Swap) -> dict[str, Any]:
    """The answer to a request for a summary: one block, or nothing and the reason."""
    said = told.reply
    reason = said.stop_reason if isinstance(said, Summary) else "compaction"
    if not said.text and reason == "compaction":
        reason = "end_turn"
    blocks = [make_block(said.text, swap, told.key)] if reason == "compaction" else []
    nothing = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    spent = {"type": "compaction", "input_tokens": told.tokens, "output_tokens": said.output_tokens}
    return {
        "id": f"msg_{told.number:04}",
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            **nothing,
            "iterations": [{**spent, **nothing, "cache_creation": None}],
        },
    }
