"""An entry of the ledger: one thing that the user said and that stands until the user changes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["rule", "correction", "preference", "decision", "answer", "fact"]
Status: TypeAlias = Literal["stands", "replaced", "withdrawn"]
Source: TypeAlias = Literal["user", "host", "model"]
"""Who added the entry: read from the user's words, pinned by the host, or proposed by a model from the user's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that the user said, in their words."""

    id: str
    """The same for the same words at the same place, in any process."""
    kind: Kind
    text: str
    """The user's words, whole sentences, with secret values masked."""
    status: Status = "stands"
    source: Source = "user"
    said_in: str = ""
    """The message that says it, "m12" of the transcript of step 1 or "v3 m12" of step 3's. Empty: the host pinned it."""
    answers: str | None = None
    """The agent's question or proposal, verbatim, if the words alone say nothing."""
    was: str | None = None
    """What the user said on the same matter before, verbatim, where it is not sure that these words end it."""
    replaced_by: str | None = None
    """The id of the entry that changed this one."""
    masked: int = 0
    """How many secret values are masked in it."""


def entry_id(kind: Kind, text: str, said_in: str) -> str:
    """The id of an entry with these words at this place."""
    digest = hashlib.sha256("\0".join((kind, said_in, text)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"e{digest[:8]}"


def to_json(entry: Entry) -> dict[str, Any]:
    """The entry as plain data, for records and reports."""
    return asdict(entry)


def from_json(data: Mapping[str, Any]) -> Entry:
    """Read back what `to_json` returned. Unknown keys of later versions are ignored."""
    known = Entry.__dataclass_fields__.keys()
    return Entry(**{key: value for key, value in data.items() if key in known})
