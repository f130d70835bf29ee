"""Keep only the newest turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact import dialects
from compact.errors import ConfigError
from compact.hygiene.work import Cleaned, Removed
from compact.pairs import batches

_ALWAYS_KEPT = frozenset({"system", "developer"})


def limit_turns(messages: Sequence[Any], max_turns: int | None, dialect: str | None = None) -> Any:
    """The newest `max_turns` turns, and before them what is never pruned: system, developer, protected messages.

    None or 0 means no limit. A batch of calls is protected as a whole when any message of it is.

    Raises:
        ConfigError: `max_turns` is negative.
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    return limit_turns_report(messages, max_turns, dialect).messages


def limit_turns_report(messages: Sequence[Any], max_turns: int | None, dialect: str | None = None) -> Cleaned:
    """`limit_turns`, with what was left out."""
    if max_turns is not None and max_turns < 0:
        raise ConfigError(f"max_turns must be 0 or more, got {max_turns}", path="policy.max_turns")
    known, neutral = dialects.read(messages, dialect)
    starts = [index for index, message in enumerate(neutral) if message.starts_turn]
    if not max_turns or len(starts) <= max_turns:
        return Cleaned(messages, ())
    cut = starts[-max_turns]
    kept = {index for index in range(cut) if neutral[index].protected or neutral[index].role in _ALWAYS_KEPT}
    for batch in batches(neutral[:cut], known):
        members = {place.message for place in (*batch.calls, *batch.answers) if place is not None}
        if members & kept:
            kept |= members
    gone = [index for index in range(cut) if index not in kept]
    if not gone:
        return Cleaned(messages, ())
    rest = [messages[index] for index in range(len(messages)) if index >= cut or index in kept]
    return Cleaned(rest, tuple(Removed(messages[index], "older than the turn limit") for index in gone))
