"""What a transcript file is read into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Marker:
    """A place where the host that wrote the file had compacted its own context."""

    index: int
    """The first message behind the boundary, or the summary message itself."""
    kind: Literal["boundary", "summary"]
    text: str = ""
    """What the host noted, if anything."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that is not in the session, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation out of a file, as the model was sent it."""

    id: str
    messages: list[Any]
    format: str
    """The kind of file, see `compact.tools.transcripts.FORMATS`."""
    dialect: str | None = None
    """The messages' dialect where the format decides it; None: recognise it."""
    system: Any = None
    """The system prompt, where it stands beside the messages."""
    tools: list[Any] | None = None
    model: str | None = None
    markers: Sequence[Marker] = ()
    skipped: Sequence[Skipped] = ()
