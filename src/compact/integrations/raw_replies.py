"""Raw replies that are streams: read up to the model's first output as bytes, which are put back for the host.

For `with_raw_response` and `with_streaming_response` with `stream=True`. Whichever way the host reads such a reply (`parse`,
`iter_lines`, `iter_bytes`), it reads everything from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from compact.runtime.overflow.streams import Proxy, StreamRefused, is_preamble, is_refusal

__all__ = ["EventReader", "abegin_raw", "begin_raw"]


def begin_raw(reply: Any) -> Any:
    """Return a raw reply that was not refused.

    Raises:
        StreamRefused: the provider refused the request inside the stream.
    """
    response = _unread_stream(reply)
    if response is None:
        return reply
    response.stream = replayed = _ReplayedBytes(response.stream)
    events = EventReader()
    with suppress(Exception):  # the host meets it where it reads
        for line in _shadow(response, _Tap(replayed)).iter_lines():
            if events.take(line):
                break
    if is_refusal(events.newest):
        replayed.is_over = True
        replayed.close()
        raise StreamRefused([events.newest], reply)
    return reply


async def abegin_raw(reply: Any) -> Any:
    """`begin_raw` for async clients."""
    response = _unread_stream(reply)
    if response is None:
        return reply
    response.stream = replayed = _ReplayedBytes(response.stream)
    events = EventReader()
    lines = _shadow(response, _Tap(replayed)).aiter_lines()
    with suppress(Exception):
        async for line in lines:
            if events.take(line):
                break
    await lines.aclose()
    if is_refusal(events.newest):
        replayed.is_over = True
        await replayed.aclose()
        raise StreamRefused([events.newest], reply)
    return reply


def _unread_stream(reply: Any) -> Any:
    """The HTTP response of a reply, if it is a stream of events that nobody has read from."""
    response = getattr(reply, "http_response", None)
    if response is None or response.is_closed or response.is_stream_consumed:
        return None
    kind = response.headers.get("content-type", "")
    return response if kind.startswith("text/event-stream") else None


def _shadow(response: Any, stream: Any) -> Any:
    """A response of the same kind that decodes the same bytes. Reading it leaves the host's response unread."""
    return type(response)(
        response.status_code, headers=response.headers, stream=stream, request=response.request
    )


class EventReader:
    """The events of a stream, line by line."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self.newest: Any = None

    def take(self, line: str) -> bool:
        """Whether the line ends the first event by which a request is accepted or refused."""
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        if line or not self._data:
            return False
        text = "\n".join(self._data)
        self._data.clear()
        try:
            self.newest = json.loads(text, object_hook=lambda found: SimpleNamespace(**found))
        except ValueError:  # the end mark of chat completions
            return True
        return not is_preamble(self.newest)


class _ReplayedBytes(Proxy):
    """The bytes of a response. What was read ahead comes again."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.head: list[bytes] = []
        self.is_over = False
        """Whether nothing comes behind the head."""
        self._rest: Any = None
        self._problem: Exception | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the bytes' source: a response tells sync from async by it."""
        return type(self._target)

    def read(self) -> bytes | None:
        """Read a piece of the source; None at its end. What failed once fails again."""
        if self._problem is not None:
            raise self._problem
        self._rest = iter(self._target) if self._rest is None else self._rest
        try:
            return None if self.is_over else next(self._rest, None)
        except Exception as problem:
            self._problem = problem
            raise

    async def aread(self) -> bytes | None:
        """`read` for async clients."""
        if self._problem is not None:
            raise self._problem
        self._rest = aiter(self._target) if self._rest is None else self._rest
        try:
            return None if self.is_over else await anext(self._rest, None)
        except Exception as problem:
            self._problem = problem
            raise

    def __iter__(self) -> Iterator[bytes]:
        yield from self.head
        while (piece := self.read()) is not None:
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for known in self.head:
            yield known
        while (piece := await self.aread()) is not None:
            yield piece


class _Tap:
    """Reads replayed bytes ahead. Closing it closes nothing."""

    def __init__(self, replayed: _ReplayedBytes) -> None:
        self._replayed = replayed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the bytes' source, as above."""
        return self._replayed.__class__

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._replayed.read()) is not None:
            self._replayed.head.append(piece)
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._replayed.aread()) is not None:
            self._replayed.head.append(piece)
            yield piece

    def close(self) -> None:
        """The host's response still needs its source."""

    async def aclose(self) -> None:
        """As `close`."""
