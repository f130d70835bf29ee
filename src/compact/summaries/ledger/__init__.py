"""The ledger: what the user said and what stands of it, in their words, until they change it.

What reads and writes it is loaded on first use, because most calls have nothing to hear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compact.summaries.ledger.entry import Entry, Kind, Source, Status, entry_id, from_json, to_json

if TYPE_CHECKING:
    from compact.summaries.ledger.reading import Heard, extend, find_said
    from compact.summaries.ledger.writing import HEADING, Written, read, text_of, write

__all__ = [
    "HEADING",
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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("Heard", "extend", "find_said"):
            from compact.summaries.ledger import reading as home
        elif name in ("HEADING", "Written", "read", "text_of", "write"):
            from compact.summaries.ledger import writing as home
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(home, name)
