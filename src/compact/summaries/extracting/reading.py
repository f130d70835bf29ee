"""A session read once: what the agent said sentence by sentence, what it called, and what came back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.messages import Message, Text, ToolCall, ToolResult, to_json
from compact.messages.markers import is_pointer

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[。！？])|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LIST_MARK = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+)(?!\[)")
_ENVELOPE = re.compile(r"^(?:```.*|[-=*_#\s|]+)$")
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filePath")
_NEW_KEYS = (
    "new_string",
    "new_str",
    "content",
    "file_text",
    "contents",
    "newText",
    "new_text",
    "code",
    "patch",
    "insert_text",
)
_OLD_KEYS = ("old_string", "old_str", "oldText", "old_text")
_COMMAND_KEYS = ("command", "cmd", "script", "bash_command")
_PASTED_CHARS = 600
"""A user's message from this length on is material, not only an instruction: its lines may serve as details."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the agent."""

    place: int
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call and its result."""

    place: int
    name: str
    arguments: dict[str, Any]
    raw: str
    """The arguments as text."""
    result: str | None
    """None: no result in sight."""
    is_error: bool
    words: str
    """What the agent said just before."""

    @property
    def path(self) -> str:
        """The file that it is about, or nothing."""
        return self._text(_PATH_KEYS)

    @property
    def command(self) -> str:
        """The command that it ran, or nothing. Editors call their verb a command too: those name a file."""
        return "" if self.path else self._text(_COMMAND_KEYS)

    @property
    def new_text(self) -> str:
        """What it wrote into the file."""
        return self._text(_NEW_KEYS)

    @property
    def old_text(self) -> str:
        """What that replaced."""
        return self._text(_OLD_KEYS)

    @property
    def writes(self) -> bool:
        """Whether it changed a file."""
        return bool(self.path and self.new_text)

    def _text(self, keys: Sequence[str]) -> str:
        for key in keys:
            value = self.arguments.get(key)
            if isinstance(value, str) and value and not is_pointer(value):
                return value
        return ""


@dataclass(slots=True)
class Reading:
    """A session as the extractors see it."""

    numbers: Sequence[int]
    """The number of each message in the archived transcript."""
    messages: Sequence[Message]
    said: list[Said] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    texts: list[tuple[int, str, float]] = field(default_factory=list)
    """Every text that may give details: where it stands, the text, what it is worth."""

    def cite(self, place: int) -> str:
        """Where a message lies in the archived transcript."""
        return f"[m{self.numbers[place]}]"


def read(messages: Sequence[Message], numbers: Sequence[int]) -> Reading:
    """Reads a session; `numbers` says where each message lies."""
    found = Reading(numbers, messages)
    results = {result.call_id: result for message in messages for result in message.results}
    words = ""
    for place, message in enumerate(messages):
        if message.starts_turn:
            # The user's words are carried whole, apart from this.
            if len(message.text) > _PASTED_CHARS:
                found.texts.append((place, message.text, 1.5))
            words = ""
            continue
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip() and message.role == "assistant":
                sentences = sentences_of(part.text)
                found.said += [Said(place, sentence) for sentence in sentences]
                found.texts.append((place, part.text, 2.0))
                words = sentences[-1] if sentences else words
            elif isinstance(part, Text) and part.text.strip():
                found.texts.append((place, part.text, 1.0))
            elif isinstance(part, ToolCall):
                found.done.append(_done(place, part, results.get(part.id), words))
                found.texts += [(place, text, 2.0) for text in _leaves(part)]
            elif isinstance(part, ToolResult) and part.text.strip():
                found.texts.append((place, _without_pointer(part.text), 1.0))
    return found


def _done(place: int, call: ToolCall, result: ToolResult | None, words: str) -> Done:
    text = result.text if result is not None else None
    error = result is not None and result.is_error
    return Done(place, call.name, call.parsed_arguments() or {}, call.arguments_text, text, error, words)


def _leaves(call: ToolCall) -> list[str]:
    arguments = call.parsed_arguments()
    if arguments is None:
        return [call.arguments_text]
    whole = {key: value for key, value in arguments.items() if not (isinstance(value, str) and "\n" in value)}
    long = [value for value in arguments.values() if isinstance(value, str) and "\n" in value]
    return [f"{call.name} {to_json(whole)}" if whole else call.name, *map(_without_pointer, long)]


def _without_pointer(text: str) -> str:
    return text.partition("\n")[2] if is_pointer(text) else text


def sentences_of(text: str) -> list[str]:
    """The sentences and list entries of a text, without ornament and without blocks of code."""
    pieces = (_LIST_MARK.sub("", flat(piece)) for piece in _SENTENCE.split(_FENCED.sub("\n", text)))
    return [piece for piece in pieces if len(piece) > 2 and not _ENVELOPE.match(piece)]


def flat(text: str, limit: int = 320) -> str:
    """A text on one line, cut to a number of characters between words."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line.rfind(" ", limit // 2, limit - 3)
    return f"{line[: cut if cut > 0 else limit - 3]}..."
