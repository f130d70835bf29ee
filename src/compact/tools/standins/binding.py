"""Preserved thinking, as Anthropic documents it: a signature binds a thinking block to its maker and to everything before it.

Pages of platform.claude.com/docs/en: build-with-claude/preserved-thinking, .../preserved-thinking/prefix-checks,
.../preserved-thinking/fix-bound-to-a-different-conversation, models/fable-5-1/whats-new-fable-5-1 (what counts as a change).
Written without looking at `compact.messages.thinking`, so that one does not repeat the mistakes of the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from compact.tools.standins.native_anthropic import Swap, signed_block, swap_of
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.signing import sign

BINDING = "Claude docs: build-with-claude/preserved-thinking/prefix-checks"

CHECKING = ("fable-5-1", "fable-5-2", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5")
"""The models that run the prefix check. Mythos 5.1 only records what it would have said."""
_FABLES = ("fable", "mythos")
_THINKING = ("thinking", "redacted_thinking")


def checks_prefixes(model: str) -> bool:
    """Whether a model runs the prefix check, for an account of today."""
    name = model.replace(".", "-")
    return any(each in name for each in CHECKING)


def is_read(model: str, maker: str) -> bool:
    """Whether a model reads another one's blocks. Those that it does not read are dropped without an error."""
    model, maker = model.replace(".", "-"), maker.replace(".", "-")
    if model == maker:
        return True
    if "haiku-5-5" in model:
        return False
    if any(each in maker for each in ("fable-5-2", "mythos-5-2")):
        return any(each in model for each in ("fable-5-2", "mythos-5-2"))
    if any(each in maker for each in ("fable-5-1", "mythos-5-1")):
        return any(each in model for each in _FABLES) and "-5-" in model
    if "sonnet-5-5" in maker:
        return "opus-5-5" in model
    if "opus-5-5" in maker:
        return any(each in model for each in ("fable-5-1", "mythos-5-1", "fable-5-2", "mythos-5-2"))
    if "sonnet-5-5" in model:
        return not any(each in maker for each in ("opus-5", *_FABLES))
    return not ("opus-5-5" in model and any(each in maker for each in _FABLES))


def sign_block(thinking: str, body: Item, key: bytes) -> str:
    """The signature of a block with which the reply to this request begins."""
    *_, (prefix, previous) = _walk(body)
    model = str(body.get("model")).replace(".", "-")
    return ".".join((sign(thinking, key), model, prefix, previous))


def split(signature: str) -> tuple[str, str, str, str]:
    """A signature in its parts: of the text, the maker, the prefix, and the block before; the last three may be empty."""
    parts = [*signature.split("."), "", "", ""]
    return parts[0], parts[1], parts[2], parts[3]


def binding_problems(body: Item) -> Iterator[Problem]:
    """Every block of a request that does not stand where it was made."""
    model, is_broken = str(body.get("model")), False
    previous = ""
    for where, block, prefix in _blocks(body):
        _, maker, made_behind, made_after = split(_signature(block))
        if not is_read(model, maker):
            continue  # dropped before anybody looks at it
        # Blocks may be left out from the first one on; then the first that is left has none before it.
        is_broken = is_broken or made_behind != prefix or (bool(previous) and made_after != previous)
        previous = _name(block)
        if is_broken:
            yield Problem(
                f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
                'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting '
                "requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
            )


def _blocks(body: Item) -> Iterator[tuple[str, Item, str]]:
    for index, (message, (prefix, _)) in enumerate(
        zip(body.get("messages") or [], _walk(body), strict=False)
    ):
        content = message["content"]
        for place, block in enumerate(content if isinstance(content, list) else ()):
            if block["type"] == "thinking":
                before = _plain(content[:place])
                yield (
                    f"messages.{index}.content.{place}",
                    block,
                    _digest(prefix, before) if before else prefix,
                )


def swap_for(body: Item) -> Swap:
    """What a summary of this whole request stands for."""
    (beside, _), *_, (prefix, _) = _walk(body)
    model = str(body.get("model")).replace(".", "-")
    return Swap(model, beside, prefix, str(body["messages"][-1]["role"]))


def _behind_block(block: Item, message: Item, following: Sequence[Item], beside: str) -> str:
    """The prefix behind a block that the provider wrote: that of what it replaces, as long as nothing else changed."""
    swap, rest = swap_of(block), message["content"][1:]
    holds = swap.beside == beside and checks_prefixes(swap.maker)
    prefix = swap.prefix if holds else _digest(beside, _plain(block))
    role = message["role"] if rest else following[0]["role"] if following else ""
    if role in (swap.last_role, "system"):  # it is merged into the last message that was summarized
        prefix = _digest(prefix, "merged")
    return _digest(prefix, [message["role"], _plain(rest)]) if rest else prefix


def _walk(body: Item) -> Iterator[tuple[str, str]]:
    """What stands before each message, and before the reply: the digest of all of it, and the newest block that is read."""
    tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
    system = body.get("system") or []
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    prefix, previous = _digest("", [_plain(system), _plain(tools)]), ""
    yield prefix, previous
    messages = body.get("messages") or []
    for index, message in enumerate(messages):
        content = message["content"]
        if index == 0 and (block := signed_block(message)) is not None:
            prefix = _behind_block(block, message, messages[1:], prefix)
            yield prefix, previous
            continue
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            maker = split(_signature(block))[1] if block["type"] == "thinking" else None
            if maker is not None and is_read(str(body.get("model")), maker):
                previous = _name(block)
        prefix = _digest(prefix, [message["role"], _plain(blocks)])
        yield prefix, previous


def _plain(blocks: Any) -> Any:
    """Without thinking and without cache marks, which are no part of a prefix."""
    if isinstance(blocks, dict):
        return {key: _plain(value) for key, value in blocks.items() if key != "cache_control"}
    if isinstance(blocks, Sequence) and not isinstance(blocks, str):
        return [
            _plain(each) for each in blocks if not (isinstance(each, dict) and each.get("type") in _THINKING)
        ]
    return blocks


def _digest(before: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(before.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _signature(block: Item) -> str:
    found = block.get("signature")
    return found if isinstance(found, str) else ""


def _name(block: Item) -> str:
    return hashlib.sha256(_signature(block).encode()).hexdigest()[:16]
