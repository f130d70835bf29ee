"""What the harness remembers of an artifact while it decides: everything but its words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compact.errors import MessageError
from compact.messages.dialects.harness import kind_of


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact, without its content: a file of any size is decided on by these."""

    index: int
    """Its place in the session."""
    id: str
    kind: str
    tokens: int
    """What it costs in the context, masked."""
    digest: str
    """A hash of its kind, title and content, as they were given."""
    role: str | None = None
    priority: float = 0
    authority: Any = None
    masked: int = 0
    """How many spans of it were masked."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a heuristic says about an artifact it wants: whether it must stay, and why."""

    entry: Entry
    must: bool
    reason: str


def checked(item: Mapping[str, Any], index: int) -> str:
    """The kind of an artifact that can be used.

    Raises:
        MessageError: it has no kind, its content or title is not text, or its priority is not a number.
    """
    try:
        kind = kind_of(item)
    except ValueError as problem:
        raise refused(index, str(problem)) from problem
    content, title, priority = item.get("content"), item.get("title"), item.get("priority")
    if not isinstance(content, str):
        raise refused(index, f"its 'content' is {type(content).__name__}, not text")
    if title is not None and not isinstance(title, str):
        raise refused(index, f"its 'title' is {type(title).__name__}, not text")
    if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int | float)):
        raise refused(index, f"its 'priority' is {type(priority).__name__}, not a number")
    return kind


def refused(index: int, why: str) -> MessageError:
    """The error about one artifact."""
    return MessageError(
        f"artifacts[{index}] is not an artifact: {why}",
        hint="Expected {'kind': 'system' | 'task' | 'message' | 'tool_output' | ..., 'content': text}",
        index=index,
        dialect="harness",
        reason=why,
    )


def id_of(item: Mapping[str, Any], index: int, kind: str) -> str:
    """The artifact's own id, else one made of its kind and place."""
    given = item.get("id")
    return f"{kind}-{index}" if given is None else str(given)


def digest_of(item: Mapping[str, Any], kind: str) -> str:
    """A hash over what the model reads of an artifact; two with the same hash are the same to it."""
    words = "\x00".join((kind, item.get("title") or "", item["content"]))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
