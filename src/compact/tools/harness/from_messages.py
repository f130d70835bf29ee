"""Messages of any dialect as artifacts: one artifact for each part of a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_lowercase
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

_KINDS = {
    "system": "system",
    "developer": "system",
    "user": "message",
    "assistant": "message",
    "tool": "tool_output",
}


class MessageArtifact(dict[str, Any]):
    """An artifact that was made from a message, and its name in reports: `m12`, or `m12.1` for its second part.

    The name is not a field: a rule that masks digits would take it for personal data.
    """

    name: str

    @classmethod
    def named(cls, name: str, fields: dict[str, Any]) -> MessageArtifact:
        """Make an artifact of these fields."""
        made = cls(fields)
        made.name = name
        return made


def artifacts_of(messages: Any, system: Any = None) -> list[MessageArtifact]:
    """Convert messages of any dialect. `system` is a system prompt beside them.

    Raises:
        MessageError: an entry is not a message; names the index.
    """
    _, neutral = dialects.read(messages)
    labels = _Labels()
    found = [artifact for index, each in enumerate(neutral) for artifact in _of_message(each, index, labels)]
    words = _system_text(system)
    if words:
        found.insert(0, MessageArtifact.named("system", {"kind": "system", "content": words}))
    return found


def letters(number: int) -> str:
    """Count in letters: a, b, ... z, aa, ab. No masking rule takes them for personal data."""
    found = ""
    while number >= 0:
        number, place = divmod(number, len(ascii_lowercase))
        found = ascii_lowercase[place] + found
        number -= 1
    return found


def _of_message(message: Message, index: int, labels: _Labels) -> Iterator[MessageArtifact]:
    """Split a message into artifacts, in its own order."""
    kind = _KINDS.get(message.role, "message")
    said: list[str] = []
    found: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            words = f"{part.name} {part.arguments_text}"
            found.append({"kind": "tool_call", "content": words, "meta": labels.of(part.id, part.name)})
        elif isinstance(part, ToolResult):
            words = part.text or _placeholder(part.content)
            found.append(
                {"kind": "tool_output", "content": words, "meta": labels.of(part.call_id, part.name)}
            )
        elif isinstance(part, Reasoning):
            if part.text.strip():
                found.append({"kind": "reasoning", "content": part.text})
        elif isinstance(part, Text | Refusal):
            said.append(part.text)
        else:
            said.append(_placeholder((part,)))
    words = "\n".join(filter(None, said))
    # In a user message, results come before the text that follows them; calls come after the text that announces them,
    # and reasoning before it. A system message without a word rules nothing.
    if words.strip() or (not found and kind != "system"):
        thought = sum(fields["kind"] == "reasoning" for fields in found)
        found.insert(len(found) if message.results else thought, {"kind": kind, "content": words})
    for place, fields in enumerate(found):
        name = f"m{index}" if len(found) == 1 else f"m{index}.{place}"
        yield MessageArtifact.named(name, {**fields, "role": message.role})


class _Labels:
    """What brings a call and its result together again. Ids of providers hold digits, so a label has letters."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def of(self, call_id: str, name: str | None) -> dict[str, str]:
        """The `meta` of a call, or of a result, whose tool is named by its call."""
        label = self._known.setdefault(call_id, letters(len(self._known)))
        if name:
            self._names[label] = name
        tool = self._names.get(label)
        return {"call": label, **({"tool": tool} if tool else {})}


def _system_text(system: Any) -> str:
    """Read a system prompt that is text, or a list of blocks."""
    if not system:
        return ""
    if isinstance(system, str):
        return system
    known, prompt = dialects.read_prompt(system)
    return known.read(prompt).text


def _placeholder(parts: Iterable[Any]) -> str:
    """Write what stands for parts without text."""
    return "\n".join(
        to_json(part.origin) if isinstance(part, Opaque) else getattr(part, "text", "") or f"[{part.kind}]"
        for part in parts
    )
