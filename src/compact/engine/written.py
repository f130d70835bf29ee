"""The texts that compact wrote into a session's tool results and arguments, known by their hashes.

Any tool can begin a text like one of ours, so first words prove nothing. A text is ours if its hash was recorded when it was
written, in this process or in the state of the session's newest step; or if it is exactly the pointer that compact writes for a
text in this session's archive. Everything else is a tool's text like any other, however it looks.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from compact.engine.effects import Asking, Find
from compact.errors import ArchiveError
from compact.messages import Message
from compact.messages.message import POINTER_OPENS, RECALL_OPENS, text_hash

_KINDS = ("pointers", "recalled", "cut")
_REMEMBERED = 8_192
"""More do not stand in any context."""
_MOST_FOUND = 32
"""Pointers of unknown origin that are looked up in one pass. A session has at most a few of them, after a restart."""
_LONGEST_POINTER = 20_000
"""Characters. Whatever is longer was not written as a preview."""
_POINTER = re.compile(
    re.escape(POINTER_OPENS)
    + r"the output of (?P<tool>[^\n]{1,200}) is in (?P<path>/tool_outputs/[^\s:]{1,300}): (?P<tokens>\d[\d,]{0,14}) tokens, "
)


class Written:
    """Hashes of the texts that compact wrote into one session, the newest `_REMEMBERED` of each kind. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS}
        self._lock = threading.Lock()

    @property
    def pointers(self) -> frozenset[str]:
        """Hashes of the pointers, with or without an excerpt."""
        with self._lock:
            return frozenset(self._known["pointers"])

    def is_pointer(self, text: str) -> bool:
        """Whether compact put this text in place of another one that is in the archive."""
        return text.startswith(POINTER_OPENS) and text_hash(text) in self._known["pointers"]

    def is_recalled(self, text: str) -> bool:
        """Whether a recall tool of this session answered with this text. It is never moved to the archive again."""
        return text.startswith(RECALL_OPENS) and text_hash(text) in self._known["recalled"]

    def is_reduced(self, text: str) -> bool:
        """Whether compact took something out of this text."""
        if POINTER_OPENS not in text:
            return False
        known = text_hash(text)
        return known in self._known["pointers"] or known in self._known["cut"]

    def note_pointer(self, text: str) -> None:
        """Remember a pointer that compact wrote."""
        self._note("pointers", text_hash(text))

    def note_recalled(self, text: str) -> None:
        """Remember the answer of a recall tool."""
        self._note("recalled", text_hash(text))

    def note_cut(self, text: str) -> None:
        """Remember a text that compact cut."""
        self._note("cut", text_hash(text))

    def describe(self, messages: Iterable[Message]) -> dict[str, list[str]]:
        """The hashes of those texts that stand in these messages, for the record of a step."""
        texts = (text for message in messages for text in texts_in(message))
        standing = {
            text_hash(text) for text in texts if POINTER_OPENS in text or text.startswith(RECALL_OPENS)
        }
        with self._lock:
            return {kind: sorted(standing & known.keys()) for kind, known in self._known.items()}

    def adopt(self, record: Mapping[str, Sequence[str]]) -> None:
        """Take over what `describe` returned when a step was recorded. Records of earlier versions have nothing."""
        for kind in _KINDS:
            for known in record.get(kind, ()):
                self._note(kind, known)

    def _note(self, kind: str, known: str) -> None:
        with self._lock:
            hashes = self._known[kind]
            hashes.pop(known, None)
            hashes[known] = None
            if len(hashes) > _REMEMBERED:
                del hashes[next(iter(hashes))]


def texts_in(message: Message) -> Iterator[str]:
    """The tool results of a message, and the texts among the arguments of its calls."""
    for result in message.results:
        yield result.text
    for call in message.calls:
        values: dict[str, Any] = call.parsed_arguments() or {}
        yield from (value for value in values.values() if isinstance(value, str))


def recognise_pointers(
    messages: Sequence[Message],
    names: Mapping[str, str],
    written: Written,
    write: Callable[[str, str, str, str], str],
) -> Asking[None]:
    """Recognise the pointers of another process: those that are exactly what `write` makes of a text in the archive.

    `names` gives the tool of a call id. `write` takes the path, the tool, the archived text and the number of tokens that
    the pointer states, because the archive keeps a text masked.
    """
    left = _MOST_FOUND
    for message in messages:
        for result in message.results:
            text = result.text
            if len(text) > _LONGEST_POINTER or not text.startswith(POINTER_OPENS) or written.is_pointer(text):
                continue
            head = _POINTER.match(text)
            if head is None or head["path"].count("/") != 2 or not left:
                continue
            left -= 1
            try:
                stored = yield Find(head["path"])
            except ArchiveError:
                continue
            tool = result.name or names.get(result.call_id, "tool")
            if stored is not None and write(head["path"], tool, stored, head["tokens"]) == text:
                written.note_pointer(text)
