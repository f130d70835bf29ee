"""Reads a session once: what the agent said, sentence by sentence, what it called, and what came back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.messages import Message, Text, ToolCall, ToolResult
from compact.messages.message import text_hash
from compact.summaries.voices import defuse

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[。！？])|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LIST_MARK = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+)(?!\[)")
_ENTRY = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s")
_HEADING = re.compile(r"#{1,6}\s+\S.*|\*\*[^*]+\*\*:?|__[^_]+__:?")
_ENVELOPE = re.compile(r"^(?:```.*|[-=*_#\s|]+)$")
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath", "filePath")
_NEW_KEYS = ("new_string", "new_str", "content", "file_text", "contents", "newText", "new_text", "code", "patch", "insert_text")  # fmt: skip
_OLD_KEYS = ("old_string", "old_str", "oldText", "old_text")
_COMMAND_KEYS = ("command", "cmd", "script", "bash_command")
_STORED = re.compile(r" is in (?P<path>/\S+?)[,:] ")
_LINE_NUMBER = re.compile(r"^@\d+ ")
"""A longer message of the user is material, not only an instruction: its lines may serve as details."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the agent."""

    place: int
    text: str
    under: str = ""
    """The heading over it, or the line that leads to its list; empty if there is none."""
    is_entry: bool = False
    """Whether it stands in a list."""


@dataclass(frozen=True, slots=True)
class Done:
    """A tool call and its result."""

    place: int
    name: str
    arguments: dict[str, Any]
    raw: str
    """The arguments as text."""
    result: str | None
    """None if no result was found."""
    is_error: bool
    words: str
    """What the agent said just before."""
    pointers: frozenset[str] = frozenset()
    """Hashes of the texts that compact put in place of others."""

    @property
    def path(self) -> str:
        """The file that the call is about; empty if there is none."""
        path = self._text(_PATH_KEYS)
        return "" if "\n" in path else path.strip()

    @property
    def command(self) -> str:
        """The command that the call ran; empty if there is none. Editors have a `command` too, but also name a file."""
        return "" if self.path else self._text(_COMMAND_KEYS)

    @property
    def new_text(self) -> str:
        """The text that the call wrote into the file."""
        return self._text(_NEW_KEYS)

    @property
    def old_text(self) -> str:
        """The text that it replaced."""
        return self._text(_OLD_KEYS)

    @property
    def stored_in(self) -> str:
        """Where the archive keeps the result, if a pointer stands in its place; empty otherwise."""
        if self.result is None or not is_written(self.result, self.pointers):
            return ""
        found = _STORED.search(self.result.partition("\n")[0])
        return found["path"] if found else ""

    @property
    def shown(self) -> str:
        """What the context still shows of the result: all of it, or the lines that stand beside its pointer."""
        text = self.result or ""
        if not is_written(text, self.pointers):
            return text
        return "\n".join(_LINE_NUMBER.sub("", line) for line in text.split("\n")[1:])

    @property
    def writes(self) -> bool:
        """Whether the call changed a file."""
        return bool(self.path and self.new_text)

    def _text(self, keys: Sequence[str]) -> str:
        for key in keys:
            value = self.arguments.get(key)
            if isinstance(value, str) and value and not is_written(value, self.pointers):
                return value
        return ""


@dataclass(slots=True)
class Reading:
    """What the extractors work on."""

    numbers: Sequence[int]
    """The number of each message in the archived transcript."""
    messages: Sequence[Message]
    said: list[Said] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    goes_on: bool = False
    """Whether a summary tells what was before."""

    def cite(self, place: int) -> str:
        """The citation of a message, by its number in the archived transcript."""
        return f"[m{self.numbers[place]}]"

    def writes(self, write_tools: Collection[str] = ()) -> dict[str, list[Done]]:
        """The files that were changed, each with the calls that changed it. A call of a `write_tools` always counts."""
        found: dict[str, list[Done]] = {}
        for done in self.done:
            if done.writes or (done.path and done.name in write_tools):
                found.setdefault(done.path, []).append(done)
        return found

    def reads(self, write_tools: Collection[str] = ()) -> dict[str, Done]:
        """The files that were looked at and not changed, each with the newest call."""
        changed = self.writes(write_tools)
        return {done.path: done for done in self.done if done.path and done.path not in changed}


def read(
    messages: Sequence[Message], numbers: Sequence[int], pointers: frozenset[str] = frozenset()
) -> Reading:
    """Read a session. `numbers` are the numbers of the messages in the archived transcript.

    `pointers` are the hashes of the texts that compact put in place of others. A text that only looks like one is read like
    any other.
    """
    found = Reading(numbers, messages)
    results = {result.call_id: result for message in messages for result in message.results}
    words = ""
    for place, message in enumerate(messages):
        if message.starts_turn:
            # The user's words are carried over whole, elsewhere.
            words = ""
            continue
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip() and message.role == "assistant":
                said = list(_sentences_of(place, part.text))
                found.said += said
                words = said[-1].text if said else words
            elif isinstance(part, ToolCall):
                found.done.append(_done(place, part, results.get(part.id), words, pointers))
    return found


def _done(
    place: int, call: ToolCall, result: ToolResult | None, words: str, pointers: frozenset[str]
) -> Done:
    return Done(
        place=place,
        name=call.name,
        arguments=call.parsed_arguments() or {},
        raw=call.arguments_text,
        result=None if result is None else result.text,
        is_error=result is not None and result.is_error,
        words=words,
        pointers=pointers,
    )


def is_written(text: str, pointers: frozenset[str]) -> bool:
    """Whether compact put a text in place of another."""
    return bool(pointers) and text_hash(text) in pointers


def _sentences_of(place: int, text: str) -> Iterator[Said]:
    """The sentences and list entries of a text, without markup and code blocks, each with what it stands under."""
    plain = _FENCED.sub("\n", text)
    marked, lines = plain.split("\n"), defuse(plain).split("\n")
    if len(marked) != len(lines):
        marked = lines
    under, leads = "", False
    for mark, line in zip(marked, lines, strict=True):
        bare = flat(line)
        is_entry = _ENTRY.match(mark) is not None
        is_heading = _HEADING.fullmatch(mark.strip()) is not None
        is_lead = is_heading or (bare.endswith((":", "：")) and not is_entry)
        if leads and bare and not is_entry and not mark.startswith((" ", "\t")):
            under, leads = "", False
        for piece in _SENTENCE.split(line):
            sentence = _LIST_MARK.sub("", flat(piece))
            if len(sentence) > 2 and not _ENVELOPE.match(sentence):
                yield Said(place, sentence, "" if is_lead else under, is_entry)
        if is_lead:
            under, leads = bare, not is_heading


def flat(text: str, limit: int = 320) -> str:
    """Put a text on one line and cut it between words to at most `limit` characters."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line.rfind(" ", limit // 2, limit - 3)
    return f"{line[: cut if cut > 0 else limit - 3]}..."
