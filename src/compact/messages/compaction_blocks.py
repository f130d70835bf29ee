"""Blocks in which a provider compacted what came before them. Only that provider can read them, so they are never changed.

Anthropic's signed block comes first in the list and replaces messages. Its unsigned one (compaction at a threshold) and OpenAI's item
stand where the provider put them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.messages.message import Message, Opaque, Part

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


def count_signed(message: Message) -> int:
    """How many signed blocks a message carries."""
    return sum(map(_is_signed, message.parts))


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
