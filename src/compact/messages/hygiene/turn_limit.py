"""Keep only the newest turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.errors import ConfigError
from compact.messages import dialects
from compact.messages.compaction_blocks import has_block
from compact.messages.dialects import Dialect
from compact.messages.hygiene.work import Removed, write_back
from compact.messages.message import Message
from compact.messages.pairs import batches

_ALWAYS_KEPT = frozenset({"system", "developer"})


def limit_turns(messages: Sequence[Any], max_turns: int | None, dialect: str | None = None) -> Any:
    """Keep the newest `max_turns` turns, and before them only system, developer and protected messages, and a provider's compaction.

    None or 0 means no limit. A batch of calls is protected as a whole if any of its messages is.

    Raises:
        ConfigError: `max_turns` is negative.
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    return write_back(messages, neutral, limit_neutral(neutral, known, max_turns)[0], known)


def limit_neutral(
    messages: list[Message], dialect: Dialect, max_turns: int | None
) -> tuple[list[Message], list[Removed]]:
    """`limit_turns` on neutral messages, with what was removed."""
    given: object = max_turns
    if given is not None and (type(given) is not int or given < 0):
        raise ConfigError(f"max_turns must be 0 or more, got {max_turns!r}", path="policy.max_turns")
    starts = [index for index, message in enumerate(messages) if message.starts_turn]
    if not max_turns or len(starts) <= max_turns:
        return messages, []
    cut = starts[-max_turns]
    kept = {
        index
        for index, message in enumerate(messages[:cut])
        if message.protected or message.role in _ALWAYS_KEPT or has_block(message)
    }
    for batch in batches(messages[:cut], dialect):
        members = {place.message for place in (*batch.calls, *batch.answers) if place is not None}
        if members & kept:
            kept |= members
    rest = [message for index, message in enumerate(messages) if index >= cut or index in kept]
    gone = [message for index, message in enumerate(messages[:cut]) if index not in kept]
    return rest, [Removed(message.origin, "older than the turn limit") for message in gone]
