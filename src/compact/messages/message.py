"""The neutral form: every dialect is read into it, and every rule works on it.

A `Message` is frozen and keeps the host's own object as `origin`. An unchanged message is written back as that very
object. A changed one is written as a copy of it, so that unknown keys survive.

Messages that compact itself wrote begin with markers. Models see them, so they never change. Any tool can write them too, so
compact knows its own texts by their recorded hashes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Role: TypeAlias = str
"""One of "system", "developer", "user", "assistant", "tool"; other roles pass through unchanged."""
SUMMARY_OPENS = "<COMPACT-SUMMARY v"
"""The start of a summary message, followed by the number of its step."""
LEDGER_OPENS = "<COMPACT-LEDGER v"
"""The start of the message that carries the user's words where there is no summary, followed by the number of its step."""
FRAME_OPENS = (SUMMARY_OPENS, LEDGER_OPENS)
"""The starts of the messages that stand for folded history."""
POINTER_OPENS = "[compact: "
"""The start of a pointer into the archive."""
RECALL_OPENS = "[compact recovery] "
"""The start of a recall tool's answer."""
GAP = "[earlier messages are not shown]"
"""The text between two messages of the same role, in dialects where roles must alternate."""
CACHE_POINT = "cachePoint"
"""The key of a block that marks how far to cache a request, in dialects where such a mark is a block."""
LONE_SURROGATE = "a lone surrogate (not valid UTF-8)"
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 200
"""A list or object nested deeper than this is not searched for numbers or broken texts."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text that the model reads."""

    text: str
    signed: bool = False
    """The provider signed the part. It is never changed, only taken out as a whole."""
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a tool. `arguments` are as on the wire: JSON text, or an object."""

    id: str
    name: str
    arguments: Any
    by_position: bool = False
    """The dialect has no id here; the next result answers the call."""
    free_form: bool = False
    """The arguments are plain text by design, not JSON."""
    signed: bool = False
    """The provider signed the part, so its arguments are never changed."""
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["tool_call"] = "tool_call"

    @property
    def arguments_text(self) -> str:
        """The arguments as text, as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else to_json(self.arguments)

    def parsed_arguments(self) -> dict[str, Any] | None:
        """The arguments as an object; None if they are not a JSON object."""
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
        """All text of the result, one block per line."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Image:
    """An image: a URL, or inline base64 with or without the `data:` prefix."""

    source: str
    detail: str | None = None
    width: int | None = None
    height: int | None = None
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's thinking. If `signed`, the provider refuses it when it is changed, moved or separated."""

    text: str
    signed: bool = False
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declined to answer."""

    text: str
    origin: Any = field(default=None, compare=False, repr=False)
    kind: Literal["refusal"] = "refusal"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that compact does not interpret. It is kept whole and counted."""

    type: str
    origin: Any = field(compare=True, repr=False)
    kind: Literal["opaque"] = "opaque"


Part: TypeAlias = Text | ToolCall | ToolResult | Image | Reasoning | Refusal | Opaque


@dataclass(frozen=True, slots=True)
class Sealed:
    """Encrypted content: it is sent and costs tokens, but cannot be read. Counted by its length in characters."""

    chars: int


@dataclass(frozen=True, slots=True)
class Pdf:
    """A PDF inside a message, as base64 with or without the `data:` prefix. It is counted by its pages."""

    source: str


class CallId(str):
    """The id of a tool call, in the call or in its result. Not every provider bills it by its length."""

    __slots__ = ()


Piece: TypeAlias = str | Image | Sealed | Pdf
"""What costs tokens: strings are tokenized, images have a formula, sealed blocks have a rate, a PDF costs by the page."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a session, in any dialect."""

    role: Role
    parts: tuple[Part, ...]
    protected: bool = False
    injected: bool = False
    """A tool or the host wrote it in the user's role. It starts no turn and is not an instruction."""
    aborted: bool = False
    """The reply was aborted or ended in an error, so its calls were never run."""
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
        """Its own text, without tool results and reasoning."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def signed(self) -> bool:
        """Whether it contains a part that must not be changed: reasoning, or with Gemini a text or a call."""
        return any(isinstance(part, Reasoning | Text | ToolCall) and part.signed for part in self.parts)

    @property
    def is_only_results(self) -> bool:
        """Whether it holds tool results and nothing else but cache points."""
        return bool(self.results) and all(
            isinstance(part, ToolResult) or is_cache_point(part) for part in self.parts
        )

    @property
    def starts_turn(self) -> bool:
        """Whether a person wrote it. A tool result in the user's role, or injected text, starts no turn."""
        return self.role == "user" and not self.injected and not self.results

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """Return a copy with other parts."""
        return replace(self, parts=parts, edited=True)


def is_cache_point(part: Part) -> bool:
    """Whether a part is a cache mark that stands as a block of its own (Bedrock Converse). It says nothing."""
    return isinstance(part, Opaque) and part.type == CACHE_POINT


def to_json(value: Any) -> str:
    """Return compact JSON and never fail. Keys keep their order; unknown objects are written as their `str`.

    A value nested deeper than Python's limit is flattened to the text of its leaves. It cannot be sent anyway, but
    counting it must not crash.
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


def number_text(value: float) -> str:
    """Return the text that stands for a number that JSON does not know: "NaN", "Infinity" or "-Infinity"."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def unknown_number(value: Any, depth: int = 0) -> str:
    """Return the text of the first number in a value that JSON does not know; empty if there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else number_text(value)
    if isinstance(value, str) or depth > _DEEPEST:
        return ""
    if isinstance(value, dict | Mapping):
        entries: Any = value.values()
    elif isinstance(value, list | tuple):
        entries = value
    else:
        return ""
    for entry in entries:
        if type(entry) is not str and (found := unknown_number(entry, depth + 1)):
            return found
    return ""


def with_known_numbers(value: Any, depth: int = 0) -> Any:
    """Return a value with `number_text` in the place of every number that JSON does not know."""
    if isinstance(value, float) and not math.isfinite(value):
        return number_text(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: with_known_numbers(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [with_known_numbers(entry, depth + 1) for entry in value]
    return value


def bad_text(text: str) -> str | None:
    """What is wrong with the characters of a string, or None."""
    if "\x00" in text:
        return "a NUL character"
    return LONE_SURROGATE if has_lone_surrogate(text) else None


def has_lone_surrogate(value: Any, depth: int = 0) -> bool:
    """Whether a text or a key anywhere in a value has a character that UTF-8 does not have."""
    if isinstance(value, str):
        return not value.isascii() and _SURROGATE.search(value) is not None
    if depth > _DEEPEST:
        return False
    if isinstance(value, Mapping):
        return any(has_lone_surrogate(each, depth + 1) for entry in value.items() for each in entry)
    return isinstance(value, list | tuple) and any(has_lone_surrogate(each, depth + 1) for each in value)


def text_hash(text: str) -> str:
    """The hash by which compact recognises what it wrote."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
