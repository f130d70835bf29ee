"""Making a list legal again, in the only safe order: sanitize, limit turns, repair pairs.

Limiting turns can cut between a call and its result, so pairs are repaired last. Every function takes the host's list
in any dialect and returns a list in the same dialect. A list that needs no repair is returned as the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compact.messages import dialects
from compact.messages.cache_marks import MAX_MARKS, limit_marks
from compact.messages.dialects.wire import is_plain
from compact.messages.hygiene.repair import Repair, repair_neutral, repair_tool_pairs
from compact.messages.hygiene.sanitizing import sanitize, sanitize_neutral
from compact.messages.hygiene.turn_limit import limit_neutral, limit_turns
from compact.messages.hygiene.work import Cleaned, Removed, write_back
from compact.messages.legality import MARKED, ends_blank
from compact.messages.message import Text
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
    """Sanitize, limit turns and repair pairs, in this order. `clean_report` also says what was removed.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    return clean_report(messages, max_turns, dialect).messages


def clean_report(
    messages: Sequence[Any], max_turns: int | None = None, dialect: str | None = None
) -> Cleaned:
    """As `clean`, with every message that was removed or changed, so that it can be archived first.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    kept, unsendable = sanitize_neutral(neutral, known)
    kept, too_old = limit_neutral(kept, known, max_turns)
    repair = repair_neutral(kept, known)
    removed = (*unsendable, *too_old, *repair.removed)
    cleaned = write_back(messages, neutral, repair.messages, known)
    return Cleaned(limit_marks(cleaned, MAX_MARKS) if known.NAME in MARKED else cleaned, removed)


def sendable(messages: Sequence[Any], dialect: str | None = None) -> Any:
    """Make the end of a list acceptable now: answer the calls that still wait, and strip blanks behind a begun reply.

    Between two steps of an agent an open batch is in flight and may stay open; in a list that is sent it may not.
    Anthropic refuses a list whose last message is the assistant's and ends with blanks. If nothing is to be done, the
    same object is returned.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    if not messages or (
        is_plain(messages[-1]) and messages[-1]["content"] == messages[-1]["content"].rstrip()
    ):
        return messages
    known, neutral = dialects.read(messages, dialect)
    found, done = batches(neutral, known), neutral
    if found and in_flight(neutral, found[-1]):
        done = repair_neutral(neutral, known, waits=False).messages
    if ends_blank(done, known):
        *before, last = done[-1].parts
        assert isinstance(last, Text)
        stripped = replace(last, text=last.text.rstrip())
        done = [*done[:-1], done[-1].with_parts((*before, stripped))]
    return write_back(messages, neutral, done, known)
