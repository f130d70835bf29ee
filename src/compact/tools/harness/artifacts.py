"""Artifacts: the parts of a session as `{"kind", "content", ...}`, and what is remembered of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compact.errors import MessageError
from compact.messages import (
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    dialects,
    to_json,
)
from compact.messages.dialects import harness as dialect
from compact.messages.dialects.wire import plain

AUTHORITY = ("system", "task")
"""The kinds that rule a session, in the order in which they come before everything else."""

_KINDS = {
    "system": "system",
    "developer": "system",
    "user": "message",
    "assistant": "message",
    "tool": "tool_output",
}


class ArtifactStream:
    """Artifacts that are read anew on each iteration, so that a large file is never in memory as a whole."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Iterate from the first artifact."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact without its content, so that a file of any size can be decided on."""

    index: int
    """Its index in the session."""
    id: str
    kind: str
    tokens: int
    """Its size in the context, masked."""
    digest: str
    """A hash of its kind, title and content, as they were given."""
    role: str | None = None
    priority: float = 0
    authority: Any = None
    masked: int = 0
    """How many spans were masked."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An artifact that a heuristic wants: whether it must stay, and why."""

    entry: Entry
    must: bool
    reason: str


def as_artifacts(given: Any, *, system: Any = None) -> Iterable[Mapping[str, Any]]:
    """Convert a list of artifacts, `{"artifacts": [...]}`, or messages of any dialect to artifacts.

    A message becomes one artifact for each of its parts: its text a `message` (or `system`), each call a `tool_call`, each
    result a `tool_output`. `system` is a system prompt beside the messages.

    Raises:
        MessageError: an entry is none of these; names the index.
    """
    if isinstance(given, ArtifactStream):
        return given
    if isinstance(given, Mapping):
        given = given.get("artifacts", given)
    if isinstance(given, Iterator):
        given = list(given)
    dialects.require_list(given)
    if _are_artifacts(given):
        return [_mapping(item, index) for index, item in enumerate(given)]
    _, messages = dialects.read(given)
    found = [artifact for index, message in enumerate(messages) for artifact in _of_message(message, index)]
    words = _system_text(system)
    return [{"kind": "system", "content": words, "id": "system"}, *found] if words else found


def check_artifact(item: Mapping[str, Any], index: int) -> str:
    """Check an artifact and return its kind.

    Raises:
        MessageError: the artifact has no kind, its content or title is not text, or its priority is not a number.
    """
    try:
        kind = dialect.kind_of(item)
    except ValueError as problem:
        raise _refuse(index, str(problem)) from problem
    content, title, priority = item.get("content"), item.get("title"), item.get("priority")
    if not isinstance(content, str):
        raise _refuse(index, f"its 'content' is {type(content).__name__}, not text")
    if title is not None and not isinstance(title, str):
        raise _refuse(index, f"its 'title' is {type(title).__name__}, not text")
    if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int | float)):
        raise _refuse(index, f"its 'priority' is {type(priority).__name__}, not a number")
    return kind


def _refuse(index: int, why: str) -> MessageError:
    return MessageError(
        f"artifacts[{index}] is not an artifact: {why}",
        hint="Expected {'kind': 'system' | 'task' | 'message' | 'tool_output' | ..., 'content': text}",
        index=index,
        dialect="harness",
        reason=why,
    )


def id_of(item: Mapping[str, Any], index: int, kind: str) -> str:
    """The artifact's own id, or one made of its kind and index."""
    given = item.get("id")
    return f"{kind}-{index}" if given is None else str(given)


def digest_of(item: Mapping[str, Any], kind: str) -> str:
    """Hash what the model reads of an artifact. Two with the same hash look the same to it."""
    words = "\x00".join((kind, item.get("title") or "", item["content"]))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def _are_artifacts(items: Iterable[Any]) -> bool:
    """Decide by the first entry. An empty list counts as artifacts."""
    for item in items:
        if isinstance(item, Mapping):
            return "kind" in item or bool(dialect.claim(item))
        return "kind" in _mapping(item, 0)
    return True


def _mapping(item: Any, index: int) -> Mapping[str, Any]:
    try:
        return plain(item)
    except ValueError as problem:
        raise _refuse(index, str(problem)) from problem


def _of_message(message: Message, index: int) -> Iterator[dict[str, Any]]:
    """Split a message into artifacts, in its own order. Their ids name the message."""
    kind = _KINDS.get(message.role, message.role)
    said: list[str] = []
    found: list[tuple[str, str]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            found.append(("tool_call", f"{part.name} {part.arguments_text}"))
        elif isinstance(part, ToolResult):
            found.append(("tool_output", part.text or _placeholder(part.content)))
        elif isinstance(part, Text | Refusal | Reasoning):
            said.append(part.text)
        else:
            said.append(_placeholder((part,)))
    words = "\n".join(filter(None, said))
    # In a user message, results come before the text that follows them; calls come after the text that announces them.
    if words or not found:
        found.insert(len(found) if message.results else 0, (kind, words))
    for place, (what, content) in enumerate(found):
        name = f"m{index}" if len(found) == 1 else f"m{index}.{place}"
        yield {"kind": what, "content": content, "id": name, "role": message.role}


def _system_text(system: Any) -> str:
    """Read a system prompt that is text, or a list of blocks."""
    if not system:
        return ""
    if isinstance(system, str):
        return system
    return dialects.get("anthropic").read({"role": "system", "content": system}).text


def _placeholder(parts: Iterable[Any]) -> str:
    """Write what stands for parts without text."""
    return "\n".join(
        to_json(part.origin) if isinstance(part, Opaque) else getattr(part, "text", "") or f"[{part.kind}]"
        for part in parts
    )
