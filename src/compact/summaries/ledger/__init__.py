"""The ledger: what the user said and what stands of it, in their words, until they change it."""

from __future__ import annotations

from compact.summaries.ledger.entry import Entry, Kind, Source, Status, entry_id, from_json, to_json
from compact.summaries.ledger.reading import Heard, extend, find_said
from compact.summaries.ledger.writing import Written, read, text_of, write

__all__ = [
    "Entry",
    "Heard",
    "Kind",
    "Source",
    "Status",
    "Written",
    "entry_id",
    "extend",
    "find_said",
    "from_json",
    "read",
    "text_of",
    "to_json",
    "write",
]
