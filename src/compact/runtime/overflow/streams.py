"""Streamed replies: read up to the model's first output, so that a refusal in a stream shows while the request can be sent again.

For chat completions, Responses, Anthropic's messages, Gemini and Bedrock, with and without the packages' stream helpers. No SDK
is imported; events are known by their fields.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

__all__ = [
    "HostStream",
    "Proxy",
    "StreamRefused",
    "abegin",
    "begin",
    "is_preamble",
    "is_refusal",
]


class Proxy:
    """Stands for a host's object: attributes and context managers pass through, and entering returns the proxy."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def __enter__(self) -> Any:
        self._target.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._target.__exit__(*problem)

    async def __aenter__(self) -> Any:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self._target.__aexit__(*problem)


class HostStream(Proxy):
    """A host's stream that repeats events which were read ahead, reports every event, and fails where it failed."""

    def __init__(
        self,
        stream: Any,
        head: Iterable[Any] = (),
        on_event: Callable[[Any], None] | None = None,
        problem: Exception | None = None,
    ) -> None:
        super().__init__(stream)
        self._head = deque(head)
        self._on_event = on_event
        self._problem = problem

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._report(self._read_again() if self._is_behind else next(self._target))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return self._report(self._read_again() if self._is_behind else await anext(self._target))

    @property
    def text_stream(self) -> Any:
        """The texts of Anthropic's stream helper, with those that were read ahead."""
        target = self._target
        while isinstance(target, HostStream):
            target = target._target
        if not hasattr(target, "text_stream"):
            raise AttributeError("text_stream")
        return self._texts() if hasattr(target, "__next__") else self._atexts()

    def _texts(self) -> Iterator[str]:
        for event in self:
            yield from _text_of(event)

    async def _atexts(self) -> AsyncIterator[str]:
        async for event in self:
            for text in _text_of(event):
                yield text

    @property
    def _is_behind(self) -> bool:
        return bool(self._head) or self._problem is not None

    def _read_again(self) -> Any:
        if self._head:
            return self._head.popleft()
        problem, self._problem = self._problem, None
        assert problem is not None
        raise problem

    def _report(self, event: Any) -> Any:
        if self._on_event is not None:
            self._on_event(event)
        return event


_PREAMBLE = frozenset(
    {"response.created", "response.in_progress", "response.queued", "message_start", "ping"}
)
"""Events before the model says anything. A request that gets no further may be sent again."""
_DELTAS = frozenset({"content.delta", "refusal.delta"})
"""What the stream helper for chat completions makes of a chunk, even of one without text."""
_SILENT_EVENTS = frozenset({"messageStart", "ping"})
"""Events of Bedrock's stream before the model says anything."""
_SILENT_BLOCKS = frozenset({"text", "thinking"})
"""Anthropic's blocks that say nothing by their beginning."""
_SAID = ("content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "audio")
_REFUSALS = frozenset({"error", "response.error", "response.failed"})
"""Events by which a provider refuses a request inside a stream."""


class StreamRefused(Exception):
    """A stream that started well and then refused the request. `stream` repeats everything from the beginning."""

    def __init__(self, events: Sequence[Any], stream: Any) -> None:
        newest = events[-1] if events else None
        problem = _field(_field(newest, "response"), "error") or _field(newest, "error") or newest
        self.code = _field(problem, "code")
        self.message = _field(problem, "message") or ""
        self.stream = stream
        """What the host would have met without us."""
        super().__init__(f"{self.code}: {self.message}" if self.code else self.message)

    def close(self) -> None:
        """End the stream: the request is sent again."""
        with suppress(Exception):  # it may be over
            self.stream.close()

    async def aclose(self) -> None:
        """`close` for async streams."""
        with suppress(Exception):
            done = getattr(self.stream, "aclose", self.stream.close)()
            if inspect.isawaitable(done):
                await done


def _field(value: Any, name: str) -> Any:
    """A field of an event or of its parts. Some packages leave those parts as they came, as dicts."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _read_ahead(stream: Any) -> HostStream:
    """Read a stream up to the model's first output, so that a refusal shows while the request can be sent again.

    For chat completions, Responses and Anthropic's messages, with and without their stream helpers.

    Raises:
        StreamRefused: the provider refused the request, or reading failed. Its cause is the client's error, if any.
    """
    head: list[Any] = []
    try:
        for event in stream:
            head.append(event)
            if not is_preamble(event):
                break
    except Exception as problem:
        raise StreamRefused((), HostStream(stream, head, problem=problem)) from problem
    return _replay(head, stream)


async def _aread_ahead(stream: Any) -> HostStream:
    """`_read_ahead` for async streams."""
    head: list[Any] = []
    try:
        async for event in stream:
            head.append(event)
            if not is_preamble(event):
                break
    except Exception as problem:
        raise StreamRefused((), HostStream(stream, head, problem=problem)) from problem
    return _replay(head, stream)


def is_preamble(event: Any) -> bool:
    """Return whether a stream's event comes before the model says anything."""
    if isinstance(event, Mapping) and event.keys() <= _SILENT_EVENTS:
        return True
    kind = _field(event, "type")
    if kind == "content_block_start":
        return _field(_field(event, "content_block"), "type") in _SILENT_BLOCKS
    if kind in _PREAMBLE or (kind in _DELTAS and not _field(event, "delta")):
        return True
    chunk = (_field(event, "chunk") or event) if kind in ("chunk", None) else None
    choices = _field(chunk, "choices")
    return isinstance(choices, list) and all(map(_is_silent, choices))


def is_refusal(event: Any) -> bool:
    """Return whether an event refuses the request. A chunk of chat completions without a type may hold an error."""
    kind = _field(event, "type")
    return kind in _REFUSALS or (kind is None and bool(_field(event, "error")))


def _is_silent(choice: Any) -> bool:
    delta = _field(choice, "delta")
    return not any(_field(delta, name) for name in _SAID) and _field(choice, "finish_reason") is None


def _text_of(event: Any) -> Iterator[str]:
    if getattr(event, "type", None) == "content_block_delta" and event.delta.type == "text_delta":
        yield event.delta.text


def _replay(head: list[Any], stream: Any) -> HostStream:
    replayed = HostStream(stream, head)
    if head and is_refusal(head[-1]):
        raise StreamRefused(head, replayed)
    return replayed


def begin(reply: Any) -> Any:
    """Return a reply that was not refused: what is no stream as it is.

    Raises:
        StreamRefused: it is a stream, and the provider refused the request in it.
    """
    return _read_ahead(reply) if hasattr(reply, "__next__") else reply


async def abegin(reply: Any) -> Any:
    """`begin` for async functions. A stream that is not async is read in a thread."""
    if hasattr(reply, "__anext__"):
        return await _aread_ahead(reply)
    return await asyncio.to_thread(begin, reply) if hasattr(reply, "__next__") else reply
