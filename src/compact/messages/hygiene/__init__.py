"""Making a list legal again, in the only safe order: sanitize, limit turns, repair pairs.

Limiting turns can cut between a call and its result, so pairs are repaired last. Every function takes the host's list
in any dialect and returns a list of the same dialect; a list with nothing to mend comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.messages import dialects
from compact.messages.dialects.wire import is_plain
from compact.messages.hygiene.repair import Repair, repair_tool_pairs, repaired
from compact.messages.hygiene.sanitizing import sanitize, sanitized
from compact.messages.hygiene.turns import limit_turns, limited
from compact.messages.hygiene.work import Cleaned, Removed, settled
from compact.messages.pairs import batches, in_flight

__all__ = [
    "Cleaned",
    "Removed",
    "Repair",
    "clean",
    "clean_report",
    "limit_turns",
    "repair_tool_pairs",
    "sanitize",
    "sendable",
]


def clean(messages: Sequence[Any], max_turns: int | None = None, dialect: str | None = None) -> Any:
    """The three steps in order. See `clean_report` for what was removed.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    return clean_report(messages, max_turns, dialect).messages


def clean_report(
    messages: Sequence[Any], max_turns: int | None = None, dialect: str | None = None
) -> Cleaned:
    """The three steps in order, with every message that was removed or changed, so that it can be archived first.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    kept, unsendable = sanitized(neutral, known)
    kept, too_old = limited(kept, known, max_turns)
    repair = repaired(kept, known)
    removed = (*unsendable, *too_old, *repair.removed)
    return Cleaned(settled(messages, neutral, repair.messages, known), removed)


def sendable(messages: Sequence[Any], dialect: str | None = None) -> Any:
    """The list as a provider takes it now: calls at its end that still wait for results get one that says so.

    The same object when no call is open. Between two steps of an agent an open batch is in flight and stays as it is;
    once the list is sent, its results cannot come any more.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    if not messages or is_plain(messages[-1]):
        return messages
    known, neutral = dialects.read(messages, dialect)
    found = batches(neutral, known)
    if not found or not in_flight(neutral, found[-1]):
        return messages
    return settled(messages, neutral, repaired(neutral, known, waits=False).messages, known)
