"""`manager.wrap(client)`: an OpenAI or Anthropic client whose requests fit.

The wrapped client is used like the one it wraps. Only the methods that send a conversation are looked at; everything else
passes through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compact.integrations.shared import StreamRefused, is_preamble, is_refusal, observe
from compact.runtime.manager import CompactManager
from compact.runtime.wrapping import register


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request keeps its conversation."""

    dialect: str
    messages: str
    system: str | None
    server_managed: tuple[str, ...] = ()
    """Fields by which the provider holds what came before."""


_CHAT = Endpoint("chat", "messages", None)
_RESPONSES = Endpoint("responses", "input", "instructions", ("previous_response_id", "conversation"))
_ANTHROPIC = Endpoint("anthropic", "messages", "system")
_ENDPOINTS = {
    "chat.completions": _CHAT,
    "beta.chat.completions": _CHAT,
    "responses": _RESPONSES,
    "messages": _ANTHROPIC,
    "beta.messages": _ANTHROPIC,
}
_METHODS = {
    f"{path}.{method}": endpoint
    for path, endpoint in _ENDPOINTS.items()
    for method in ("create", "parse", "stream", "with_raw_response.create", "with_raw_response.parse")
}
_COPIES = ("copy", "with_options")


def wrap(manager: CompactManager, client: Any, session_id: str) -> Any:
    """See `CompactManager.wrap`."""
    return _Part(client, "", _Sender(manager, session_id))


for _package in ("openai", "anthropic"):
    register(_package, wrap)


class _Part:
    """A part of a client: attributes on the way to a wrapped method are parts, that method is ours, the rest is its own."""

    def __init__(self, target: Any, path: str, sender: _Sender) -> None:
        self._target = target
        self._path = path
        self._sender = sender

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Still an instance of what it wraps, for those who ask."""
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        path = f"{self._path}.{name}" if self._path else name
        endpoint = _METHODS.get(path)
        if endpoint is not None:
            return self._sender.method(found, endpoint, is_stream=name == "stream")
        if any(method.startswith(f"{path}.") for method in _METHODS):
            return _Part(found, path, self._sender)
        if not self._path and name in _COPIES:
            return lambda *args, **settings: _Part(found(*args, **settings), "", self._sender)
        return found

    def __enter__(self) -> _Part:
        self._target.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._target.__exit__(*problem)

    async def __aenter__(self) -> _Part:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self._target.__aexit__(*problem)


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends conversations of one wrapped client."""

    manager: CompactManager
    session_id: str

    def method(
        self, original: Callable[..., Any], endpoint: Endpoint, *, is_stream: bool
    ) -> Callable[..., Any]:
        """A client's method, with `session_id=` beside its own arguments."""

        def opened(**request: Any) -> Any:
            call = _Call(self, original, endpoint, request)
            return call.passed() if call.items is None else _StreamManager(call, endpoint)

        def sent(**request: Any) -> Any:
            call = _Call(self, original, endpoint, request)
            return (
                call.passed()
                if call.items is None
                else call.run(lambda kept: _begun(call.send(kept), endpoint))
            )

        async def asent(**request: Any) -> Any:
            call = _Call(self, original, endpoint, request)
            if call.items is None:
                return await call.passed()

            async def send(kept: Any) -> Any:
                return await _abegun(await call.send(kept), endpoint)

            return await call.arun(send)

        if is_stream:
            return opened
        return asent if inspect.iscoroutinefunction(inspect.unwrap(original)) else sent


class _Call:
    """One request."""

    def __init__(
        self, sender: _Sender, original: Callable[..., Any], endpoint: Endpoint, request: dict[str, Any]
    ) -> None:
        self._manager = sender.manager
        self._session_id = request.pop("session_id", None) or sender.session_id
        self._original = original
        self._endpoint = endpoint
        self._request = request
        self.items = self._conversation()

    def _conversation(self) -> Sequence[Any] | None:
        """What would be sent, as a list; None when there is nothing for compact to do."""
        if any(_given(self._request.get(field)) is not None for field in self._endpoint.server_managed):
            self._manager.warn(
                self._session_id,
                "server_managed",
                f"the provider keeps this conversation ({' or '.join(self._endpoint.server_managed)}): only what is new "
                "is sent, so there is nothing to compact",
            )
            return None
        found = _given(self._request.get(self._endpoint.messages))
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        return None if found is None else list(found)

    def passed(self) -> Any:
        """The request as it is."""
        return self._original(**self._request)

    def send(self, kept: Any) -> Any:
        """The request with these messages; a text that was left alone is sent as text."""
        if kept is self.items:
            return self.passed()
        return self._original(**{**self._request, self._endpoint.messages: kept})

    def run(self, send: Callable[[Any], Any]) -> Any:
        try:
            return self.watched(self._manager.call(*self._arguments(send), **self._named()))
        except StreamRefused as refused:
            return self.watched(refused.stream)

    async def arun(self, send: Callable[[Any], Any]) -> Any:
        try:
            return self.watched(await self._manager.acall(*self._arguments(send), **self._named()))
        except StreamRefused as refused:
            return self.watched(refused.stream)

    def _arguments(self, send: Callable[[Any], Any]) -> tuple[Any, ...]:
        return self._session_id, self.items, send, _given(self._request.get("tools"))

    def _named(self) -> dict[str, Any]:
        system = None if self._endpoint.system is None else _given(self._request.get(self._endpoint.system))
        return {"system": system, "dialect": self._endpoint.dialect}

    def watched(self, reply: Any) -> Any:
        """The reply, its usage taken note of now or, if it is a stream, when it comes by."""
        if hasattr(reply, "__next__"):
            return _Stream(reply, self)
        if hasattr(reply, "__anext__"):
            return _AsyncStream(reply, self)
        self.note(reply)
        return reply

    def note(self, event: Any) -> None:
        """Takes note of the usage in a reply or in an event of a stream."""
        for holder in (event, getattr(event, "response", None), getattr(event, "message", None)):
            usage = getattr(holder, "usage", None)
            if usage is not None:
                observe(self._manager, self._session_id, usage)
                return

    def note_snapshot(self, stream: Any) -> None:
        """Takes note of the usage of a stream that was read by its helpers, not event by event."""
        for name in ("current_message_snapshot", "current_completion_snapshot"):
            with suppress(AttributeError, AssertionError):  # of the other package, or nothing came yet
                self.note(getattr(stream, name))


def _given(value: Any) -> Any:
    """An argument, or None for the marks by which the packages say that there is none."""
    return None if type(value).__name__ in ("NotGiven", "Omit") else value


# --- streams


def _begun(reply: Any, endpoint: Endpoint) -> Any:
    """A reply that was not refused. OpenAI Responses refuses some streams only after they began."""
    if endpoint is not _RESPONSES or not hasattr(reply, "__next__"):
        return reply
    head = []
    for event in reply:
        head.append(event)
        if not is_preamble(event):
            break
    stream = _Replayed(head, reply)
    if head and is_refusal(head[-1]):
        raise StreamRefused(head, stream)
    return stream


async def _abegun(reply: Any, endpoint: Endpoint) -> Any:
    if endpoint is not _RESPONSES or not hasattr(reply, "__anext__"):
        return reply
    head = []
    async for event in reply:
        head.append(event)
        if not is_preamble(event):
            break
    stream = _AsyncReplayed(head, reply)
    if head and is_refusal(head[-1]):
        raise StreamRefused(head, stream)
    return stream


class _Around:
    """A stream of the client's with something added; everything else is its own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return self

    def __aiter__(self) -> Any:
        return self

    def __enter__(self) -> Any:
        self._stream.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stream.__exit__(*problem)

    async def __aenter__(self) -> Any:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self._stream.__aexit__(*problem)


class _Replayed(_Around):
    def __init__(self, head: list[Any], stream: Any) -> None:
        super().__init__(stream)
        self._head = head

    def __next__(self) -> Any:
        return self._head.pop(0) if self._head else next(self._stream)


class _AsyncReplayed(_Around):
    def __init__(self, head: list[Any], stream: Any) -> None:
        super().__init__(stream)
        self._head = head

    async def __anext__(self) -> Any:
        return self._head.pop(0) if self._head else await anext(self._stream)


class _Stream(_Around):
    def __init__(self, stream: Any, call: _Call) -> None:
        super().__init__(stream)
        self._call = call

    def __next__(self) -> Any:
        event = next(self._stream)
        self._call.note(event)
        return event


class _AsyncStream(_Around):
    def __init__(self, stream: Any, call: _Call) -> None:
        super().__init__(stream)
        self._call = call

    async def __anext__(self) -> Any:
        event = await anext(self._stream)
        self._call.note(event)
        return event


class _StreamManager:
    """What `stream()` of a client returns: the request is sent when it is entered, so that is where it is made to fit."""

    def __init__(self, call: _Call, endpoint: Endpoint) -> None:
        self._call = call
        self._endpoint = endpoint
        self._inner: Any = None
        self._stream: Any = None

    def __enter__(self) -> Any:
        def send(kept: Any) -> Any:
            if self._inner is not None:
                self._inner.__exit__(None, None, None)  # it was refused after it began
            inner = self._call.send(kept)
            stream = inner.__enter__()
            self._inner = inner
            return _begun(stream, self._endpoint)

        self._stream = self._call.run(send)
        return self._stream

    def __exit__(self, *problem: Any) -> Any:
        self._call.note_snapshot(self._stream)
        return self._inner.__exit__(*problem)

    async def __aenter__(self) -> Any:
        async def send(kept: Any) -> Any:
            if self._inner is not None:
                await self._inner.__aexit__(None, None, None)
            inner = self._call.send(kept)
            stream = await inner.__aenter__()
            self._inner = inner
            return await _abegun(stream, self._endpoint)

        self._stream = await self._call.arun(send)
        return self._stream

    async def __aexit__(self, *problem: Any) -> Any:
        self._call.note_snapshot(self._stream)
        return await self._inner.__aexit__(*problem)
