"""Facts that a summary must not lose and that code can find: files, ids, errors, the next step. Pure.

If a summary left them out, they are appended to it as far as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compact.messages import Message
from compact.messages.cues import INTENT, TROUBLE
from compact.summaries.checking.claims import ids_in
from compact.summaries.extracting.session_reading import flat, is_written, read
from compact.summaries.voices import attribute, defuse, quote, speaker_of

HEADING = "## Facts"
_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n+")
_MOST = 12
_ERRORS = 3
_RECENT = 3
_CHARS = 200
_ID_CHARS = 40


@dataclass(frozen=True, slots=True)
class Facts:
    """What code found in a session, newest first."""

    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    next_step: str = ""


def facts_of(
    messages: Sequence[Message], write_tools: Collection[str], pointers: frozenset[str] = frozenset()
) -> Facts:
    """Find the facts of these messages. A call of a `write_tools` changes the file that it names.

    `pointers` are the hashes of the texts that compact put in place of others.
    """
    reading = read(messages, range(len(messages)), pointers)
    changed, looked_at = reading.writes(write_tools), reading.reads(write_tools)
    newest = list(dict.fromkeys(done.path for done in reversed(reading.done)))
    return Facts(
        changed=tuple(defuse(path) for path in newest if path in changed),
        read=tuple(defuse(path) for path in newest if path in looked_at),
        ids=tuple(dict.fromkeys(_ids(messages))),
        errors=tuple(dict.fromkeys(_errors(messages, pointers))),
        next_step=_next_step(messages),
    )


def appendix(facts: Facts, body: str, room: int, count: Callable[[str], int]) -> str:
    """What `body` does not mention, under a separate heading; empty if there is nothing, or no room for it."""
    said = " ".join(body.lower().split())
    room -= count(HEADING) + 2
    lines: list[str] = []
    for label, found, separator in (
        ("next", _unsaid([facts.next_step], said, by_name=False), ""),
        ("changed", _unsaid(facts.changed, said, by_name=True), ", "),
        ("errors", _unsaid(facts.errors[:_ERRORS], said, by_name=False), " | "),
        ("ids", _unsaid(facts.ids, said, by_name=False), ", "),
        ("read", _unsaid(facts.read, said, by_name=True), ", "),
    ):
        line = _fitting_line(label, found[:_MOST], separator, room, count)
        if line:
            lines.append(line)
            room -= count(line) + 1
    return "\n".join([HEADING, *lines]) if lines else ""


def _fitting_line(
    label: str, found: Sequence[str], separator: str, room: int, count: Callable[[str], int]
) -> str:
    for size in range(len(found), 0, -1):
        line = f"- {label}: {separator.join(found[:size])}"
        if count(line) + 1 <= room:
            return line
    return ""


def _unsaid(found: Iterable[str], said: str, *, by_name: bool) -> list[str]:
    """What was not said. A file is recognised by its name, an error by its beginning."""

    def key(text: str) -> str:
        short = text.rstrip("/").rpartition("/")[2] if by_name else text.partition(' said: "')[2] or text
        return " ".join((short if by_name else short[:60]).lower().split()).rstrip('"')

    return [text for text in found if text and key(text) not in said]


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    """Ids in what people and the model wrote. Tool outputs are full of others that nobody needs."""
    for message in reversed(messages):
        if message.role in ("user", "assistant") and not message.results:
            yield from (name for name in reversed(ids_in(message.text)) if len(name) <= _ID_CHARS)


def _errors(messages: Sequence[Message], pointers: frozenset[str]) -> Iterator[str]:
    """The errors that tools reported, each quoted with its tool."""
    names = {call.id: call.name for message in messages for call in message.calls}
    for message in reversed(messages):
        for result in reversed(message.results):
            if is_written(result.text, pointers):
                continue
            line = next((line for line in result.text.splitlines() if TROUBLE.search(line)), "")
            if line:
                speaker = speaker_of(result.name or names.get(result.call_id))
                yield attribute(speaker, [quote(flat(defuse(line), _CHARS))], "")


def _next_step(messages: Sequence[Message]) -> str:
    """What the model recently said it would do, or else the last thing that it said."""
    said = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    newest = [
        text
        for words in reversed(said[-_RECENT:])
        for text in reversed(_SENTENCES.split(words))
        if text.strip()
    ]
    return flat(defuse(next(filter(INTENT.search, newest), newest[0] if newest else "")), _CHARS)
