"""What a session must not forget and code can find: files, ids, errors, the next step. Pure.

They are added to a summary that left them out, as far as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compact.messages import Message
from compact.messages.markers import is_pointer
from compact.summaries.checking.claims import ids_in
from compact.summaries.checking.verification import gives_orders

HEADING = "## Facts"
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath", "filePath")
_ERROR = re.compile(
    r"(?:error|exception|\bfailed|failure|fatal|traceback|panic|denied|not found|cannot)\b", re.IGNORECASE
)
_NEXT = re.compile(
    r"\b(?:next|now i|now let|let me|i[’']ll|i will|i need to|i should|then i|remaining|todo|to do)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n+")
_MOST = 12
_ERRORS = 3
_RECENT = 3
_CHARS = 200
_ID_CHARS = 40


@dataclass(frozen=True, slots=True)
class Facts:
    """What code found, newest first."""

    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    next_step: str = ""


def facts_of(messages: Sequence[Message], write_tools: Collection[str]) -> Facts:
    """The facts of these messages."""
    changed: list[str] = []
    read: list[str] = []
    for message in reversed(messages):
        for call in reversed(message.calls):
            arguments = call.parsed_arguments() or {}
            for path in (arguments.get(key) for key in _PATH_KEYS):
                if isinstance(path, str) and path.strip() and "\n" not in path and not is_pointer(path):
                    (changed if call.name in write_tools else read).append(path.strip())
    written = tuple(dict.fromkeys(changed))
    return Facts(
        changed=written,
        read=tuple(path for path in dict.fromkeys(read) if path not in written),
        ids=tuple(dict.fromkeys(_ids(messages))),
        errors=tuple(dict.fromkeys(_errors(messages))),
        next_step=_next_step(messages),
    )


def appendix(facts: Facts, body: str, room: int, count: Callable[[str], int]) -> str:
    """What `body` does not mention, under a heading of its own; empty when there is nothing, or no room for it."""
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
    """What was not said; a file is known by its name, an error by its beginning."""

    def key(text: str) -> str:
        short = text.rstrip("/").rpartition("/")[2] if by_name else text[:60]
        return " ".join(short.lower().split())

    return [text for text in found if text and key(text) not in said]


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    """Ids out of what people and the model wrote: a tool's output is full of others that nobody needs."""
    for message in reversed(messages):
        if message.role in ("user", "assistant") and not message.results:
            yield from (name for name in reversed(ids_in(message.text)) if len(name) <= _ID_CHARS)


def _errors(messages: Sequence[Message]) -> Iterator[str]:
    for message in reversed(messages):
        for result in reversed(message.results):
            if is_pointer(result.text):
                continue
            line = next((line for line in result.text.splitlines() if _ERROR.search(line)), "")
            if line and not gives_orders(line):
                yield _shortened(line)


def _next_step(messages: Sequence[Message]) -> str:
    """What the model last said that it would do, if it said so not long ago; else the last that it said."""
    said = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    newest = [
        text
        for words in reversed(said[-_RECENT:])
        for text in reversed(_SENTENCES.split(words))
        if text.strip()
    ]
    return _shortened(next(filter(_NEXT.search, newest), newest[0] if newest else ""))


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _CHARS else f"{flat[: _CHARS - 3]}..."
