"""Blocks in which a provider compacted what came before them. Only that provider can read them, so they are never changed.

Anthropic's signed block comes first in the list and replaces messages. Its unsigned one (compaction at a threshold) and OpenAI's item
stand where the provider put them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.messages.message import LEDGER_OPENS, Message, Opaque, Part

COMPACTION = "compaction"
"""The type of such a block, or of such an item."""
TRIGGER = "compaction_trigger"
"""The type of the item that asks OpenAI for one."""


def has_block(message: Message) -> bool:
    """Whether a message carries such a block."""
    return any(isinstance(part, Opaque) and part.type == COMPACTION for part in message.parts)


def opens_with_block(message: Message) -> bool:
    """Whether a message begins with a signed block, so that it may open a list whatever its role."""
    return bool(message.parts) and _is_signed(message.parts[0])


def may_open(message: Message) -> bool:
    """Whether a message may open a conversation: a user's, and one that begins with a signed block."""
    return message.role == "user" or opens_with_block(message)


def is_block_alone(message: Message) -> bool:
    """Whether a message is nothing but a signed block, so that anybody may speak behind it."""
    return opens_with_block(message) and len(message.parts) == 1


def may_repeat_role(message: Message) -> bool:
    """Whether a message may follow one of the same role: one that opens with a block, and a ledger behind thinking that is kept."""
    return opens_with_block(message) or (message.role == "user" and message.text.startswith(LEDGER_OPENS))


def misplaced_blocks(messages: Sequence[Message]) -> Iterator[tuple[int, str, str]]:
    """Find every signed block that is not the first thing in the conversation, or not the only one: its index, a rule, and why."""
    spoken = [index for index, message in enumerate(messages) if message.role != "system"]
    signed = [index for index in spoken for part in messages[index].parts if _is_signed(part)]
    for place, index in enumerate(signed):
        if place:
            yield index, "second_compaction", "there is more than one signed compaction block"
        elif index != spoken[0] or not opens_with_block(messages[index]):
            yield index, "misplaced_compaction", "a signed compaction block stands behind other content"


def begins_with_block(items: Any) -> bool:
    """Whether a host's list begins with a signed block, so that its request needs the provider's beta header."""
    first = items[0] if isinstance(items, list | tuple) and items else None
    content = first.get("content") if isinstance(first, Mapping) else None
    block = content[0] if isinstance(content, list | tuple) and content else None
    return isinstance(block, Mapping) and block.get("type") == COMPACTION and bool(block.get("signature"))


def _is_signed(part: Part) -> bool:
    return (
        isinstance(part, Opaque)
        and part.type == COMPACTION
        and isinstance(part.origin, Mapping)
        and bool(part.origin.get("signature"))
    )
