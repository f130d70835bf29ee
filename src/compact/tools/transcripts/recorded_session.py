"""What a transcript file contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias

from compact.redaction import Redactor

Format: TypeAlias = Literal[
    "artifacts",
    "chatgpt",
    "claude_code",
    "cline",
    "codex",
    "gemini",
    "langchain",
    "message_lines",
    "messages",
    "opencode",
    "openhands",
    "pi",
    "responses_request",
    "session",
    "swe_agent",
]


@cache
def _redactor() -> Redactor:
    return Redactor()


def masked(session_id: str) -> str:
    """A session's id without secrets and personal data."""
    return _redactor().redact_id(session_id)


@dataclass(frozen=True, slots=True)
class Marker:
    """A place where the host that wrote the file compacted its own context."""

    index: int
    """The first message after the boundary, or the summary message itself."""
    kind: Literal["boundary", "summary"]
    text: str = ""
    """What the host noted, if anything."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that was left out of the session because it was not understood, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSession:
    """One session of a transcript file, as it was sent to the model."""

    id: str
    messages: list[Any]
    format: Format
    """The format of the file, see `compact.tools.transcripts.FORMATS`."""
    dialect: str | None = None
    """The dialect of the messages, if the format decides it; otherwise it is auto-detected."""
    system: Any = None
    """The system prompt, if it is separate from the messages."""
    tools: list[Any] | None = None
    model: str | None = None
    times: Sequence[float | None] = ()
    """When each message was recorded, in seconds; empty if the format does not say."""
    markers: Sequence[Marker] = ()
    skipped: Sequence[Skipped] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Known entries that are not part of the conversation, such as bookkeeping and other branches: how many by kind."""

    @property
    def label(self) -> str:
        """The id as reports show it: without secrets and personal data."""
        return masked(self.id)

    @property
    def request(self) -> dict[str, Any]:
        """What goes with the messages, as keywords of `CompactManager.preflight`."""
        return {"tools": self.tools, "system": self.system, "dialect": self.dialect}
