"""The neutral form: what every dialect is read into, and what every rule is written against.

A `Message` is frozen and remembers the host's own object as `origin`. As long as nobody changes a message, writing it
back gives that very object; a changed one is written as a copy of it, so that keys which nobody knows survive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Role: TypeAlias = str
"""One of "system", "developer", "user", "assistant", "tool"; another role passes through as it is."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words that the model reads."""

    text: str
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` are as they stand on the wire: JSON text, or an object."""

    id: str
    name: str
    arguments: Any
    by_position: bool = False
    """The dialect has no id here: the next result answers it."""
    free_form: bool = False
    """The arguments are plain text by design, not JSON."""
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["tool_call"] = "tool_call"

    @property
    def arguments_text(self) -> str:
        """The arguments as text, the way they are sent."""
        return self.arguments if isinstance(self.arguments, str) else to_json(self.arguments)

    def parsed_arguments(self) -> dict[str, Any] | None:
        """The arguments as an object; None when they are not a JSON object."""
        value = self.arguments
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return None
        return dict(value) if isinstance(value, Mapping) else None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer to the call with the same id."""

    call_id: str
    content: tuple[Part, ...]
    name: str | None = None
    is_error: bool = False
    by_position: bool = False
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["tool_result"] = "tool_result"

    @property
    def text(self) -> str:
        """All text of the result, block after block."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: by address, or inline as base64 (with or without the `data:` prefix)."""

    source: str
    detail: str | None = None
    width: int | None = None
    height: int | None = None
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's own thinking. When `signed`, the provider refuses it changed, moved or separated."""

    text: str
    signed: bool = False
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declined, and said so."""

    text: str
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["refusal"] = "refusal"


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that compact does not interpret. It is carried along whole, and counted."""

    type: str
    origin: Any = field(compare=True, repr=False)
    kind: Literal["opaque"] = "opaque"


Part: TypeAlias = Text | ToolCall | ToolResult | Image | Reasoning | Refusal | Opaque


@dataclass(frozen=True, slots=True)
class Sealed:
    """Encrypted content: sent, paid for, and unreadable. Counted by its length in characters."""

    chars: int


Piece: TypeAlias = str | Image | Sealed
"""What a message costs: strings that are tokenized, pictures that have a formula, sealed blocks that have a rate."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a session, whatever dialect it came from."""

    role: Role
    parts: tuple[Part, ...]
    protected: bool = False
    injected: bool = False
    """A tool or the host wrote it in the user's role: it starts no turn and is no instruction."""
    aborted: bool = False
    """The turn that made it was aborted or ended in an error: its calls were never run."""
    origin: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in it, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def text(self) -> str:
        """Its own words, without tool results and reasoning."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def signed(self) -> bool:
        """Whether it carries reasoning that must not be touched."""
        return any(isinstance(part, Reasoning) and part.signed for part in self.parts)

    @property
    def starts_turn(self) -> bool:
        """Whether a person wrote it: a result in the user's role, or text that a tool injected, is not a turn."""
        return self.role == "user" and not self.injected and not self.results

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """A copy with other parts; the original is untouched."""
        return replace(self, parts=parts, edited=True)


def to_json(value: Any) -> str:
    """Compact JSON that never fails: keys in their order, unknown objects by their `str`, any depth.

    Nesting deeper than Python's own limit is flattened to the text of its leaves: such a value cannot be sent
    anyway, and counting it must not crash.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (RecursionError, ValueError, TypeError):
        return ",".join(_leaves(value))


def _leaves(value: Any) -> list[str]:
    found: list[str] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping | list | tuple):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Mapping):
                found.extend(str(key) for key in item)
                stack.extend(reversed(list(item.values())))
            else:
                stack.extend(reversed(item))
        else:
            found.append(str(item))
    return found
