"""What a copy of an answer tells: whether the provider refused inside it, and how many tokens it counted.

The answer itself goes to the client as it came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from compact.integrations.proxy.codings import Decoder, Undecodable, decoder_of
from compact.integrations.raw_replies import EventReader
from compact.runtime.overflow.evidence import input_tokens
from compact.runtime.overflow.streams import is_refusal

_MOST_BYTES = 32_000_000
"""A longer answer that is no stream is not read for its usage."""
_PLACES = ((), ("message",), ("response",))
"""Where a body or an event has its usage."""


class ReplyReader:
    """Reads an answer piece by piece. What cannot be read is passed over: it is only a copy."""

    def __init__(self, content_type: str, coding: str) -> None:
        self.is_stream = content_type.startswith("text/event-stream")
        self.tokens: int | None = None
        """The input tokens that the provider counted, cached ones included; None if it has not said."""
        self.has_begun = not self.is_stream
        """Whether the model has said something, so that the request cannot be sent again."""
        self.refusal: Any = None
        """The event by which the provider refused the request before that."""
        self._events = EventReader()
        self._rest = b""
        self._size = 0
        self._decoder: Decoder | None = None
        is_read = self.is_stream or "json" in content_type
        with suppress(Undecodable):
            self._decoder = decoder_of(coding) if is_read and "," not in coding else None
        if self._decoder is None:
            self.has_begun = True

    def feed(self, data: bytes) -> None:
        """Take the next piece of the body."""
        if self._decoder is None:
            return
        try:
            for piece in self._decoder.feed(data):
                self._take(piece)
        except Undecodable:
            self._decoder, self.has_begun = None, True

    def finish(self) -> None:
        """The answer has ended."""
        if not self.is_stream and self._decoder is not None and self._rest:
            self._note(self._rest)
        self._rest = b""

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if not self.is_stream:
            self._rest = self._rest + data if self._size <= _MOST_BYTES else b""
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self.has_begun and self._events.take(line.rstrip(b"\r").decode("utf-8", "replace")):
                self.has_begun = True
                if is_refusal(self._events.newest):
                    self.refusal = self._events.newest
            if b"sage" in line and line.startswith(b"data:"):
                self._note(line[5:])

    def _note(self, text: bytes) -> None:
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return
        for place in _PLACES:
            found = _within(said, place)
            counted = None if found is None else input_tokens(found)
            if counted is not None:
                self.tokens = counted


def _within(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
