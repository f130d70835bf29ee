"""Artifacts: what is given in any form, as a list of `{"kind", "content", ...}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
from compact.tools.harness.entries import refused

AUTHORITY = ("system", "task")
"""The kinds that rule a session, in the order in which they stand in front of everything else."""

_KINDS = {
    "system": "system",
    "developer": "system",
    "user": "message",
    "assistant": "message",
    "tool": "tool_output",
}


class ArtifactStream:
    """Artifacts that are read again each time they are asked for, so that a large file is never in memory as a whole."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """The artifacts, from the first on."""
        raise NotImplementedError


def as_artifacts(given: Any, *, system: Any = None) -> Iterable[Mapping[str, Any]]:
    """Artifacts out of a list of them, `{"artifacts": [...]}`, or messages of any dialect.

    A message becomes an artifact for each thing that it is: words a `message` (or `system`), calls a `tool_call`, each
    result a `tool_output`. `system` is a system prompt that stands beside the messages.

    Raises:
        MessageError: it is none of these; names the index.
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
    words = _words_of(system)
    return [{"kind": "system", "content": words, "id": "system"}, *found] if words else found


def _are_artifacts(items: Iterable[Any]) -> bool:
    """Whether the first entry that says so says that it is one; an empty list is one of artifacts too."""
    for item in items:
        if isinstance(item, Mapping):
            return "kind" in item or bool(dialect.claim(item))
        return "kind" in _mapping(item, 0)
    return True


def _mapping(item: Any, index: int) -> Mapping[str, Any]:
    try:
        return plain(item)
    except ValueError as problem:
        raise refused(index, str(problem)) from problem


def _of_message(message: Message, index: int) -> Iterator[dict[str, Any]]:
    """The artifacts of one message, in its own order; ids say which message they are of."""
    kind = _KINDS.get(message.role, message.role)
    said: list[str] = []
    found: list[tuple[str, str]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            found.append(("tool_call", f"{part.name} {part.arguments_text}"))
        elif isinstance(part, ToolResult):
            found.append(("tool_output", part.text or _unspoken(part.content)))
        elif isinstance(part, Text | Refusal | Reasoning):
            said.append(part.text)
        else:
            said.append(_unspoken((part,)))
    words = "\n".join(filter(None, said))
    # Results in a user message stand before what the user adds; calls behind the words that announce them.
    if words or not found:
        found.insert(len(found) if message.results else 0, (kind, words))
    for place, (what, content) in enumerate(found):
        name = f"m{index}" if len(found) == 1 else f"m{index}.{place}"
        yield {"kind": what, "content": content, "id": name, "role": message.role}


def _words_of(system: Any) -> str:
    """A system prompt that is text, or a list of blocks."""
    if not system:
        return ""
    if isinstance(system, str):
        return system
    return dialects.get("anthropic").read({"role": "system", "content": system}).text


def _unspoken(parts: Iterable[Any]) -> str:
    """What stands for a part without words."""
    return "\n".join(
        to_json(part.origin) if isinstance(part, Opaque) else getattr(part, "text", "") or f"[{part.kind}]"
        for part in parts
    )
