"""`manager.wrap(client)`: an OpenAI or Anthropic client whose requests fit.

The wrapped client is used like the original. Only the methods that send a conversation are intercepted; everything else
passes through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from compact.integrations.calls import HostCall, Proxy, aread_ahead, read_ahead, warn_server_managed
from compact.runtime.manager import CompactManager
from compact.runtime.wrapping import register


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Where a request keeps its conversation."""

    dialect: str
    messages: str
    system: str | None
    server_managed: tuple[str, ...] = ()
    """Fields that refer to a conversation which the provider keeps."""
    refuses_late: bool = False
    """Whether a stream may refuse the request after it started."""

    def begin(self, reply: Any) -> Any:
        """Return a reply that was not refused. Raises StreamRefused."""
        return read_ahead(reply) if self.refuses_late and hasattr(reply, "__next__") else reply

    async def abegin(self, reply: Any) -> Any:
        """`begin` for async clients."""
        return await aread_ahead(reply) if self.refuses_late and hasattr(reply, "__anext__") else reply


_CHAT = RequestShape("chat", "messages", None)
_RESPONSES = RequestShape(
    "responses", "input", "instructions", ("previous_response_id", "conversation"), refuses_late=True
)
_ANTHROPIC = RequestShape("anthropic", "messages", "system")
_RESOURCES = {
    "chat.completions": _CHAT,
    "beta.chat.completions": _CHAT,
    "responses": _RESPONSES,
    "messages": _ANTHROPIC,
    "beta.messages": _ANTHROPIC,
}
_METHODS = {
    f"{path}.{method}": shape
    for path, shape in _RESOURCES.items()
    for method in ("create", "parse", "stream", "with_raw_response.create", "with_raw_response.parse")
}
_COPIES = ("copy", "with_options")


def wrap(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    """See `CompactManager.wrap`."""
    return _Part(client, "", _Sender(manager, session_id))


for _package in ("openai", "anthropic"):
    register(_package, wrap)


class _Part(Proxy):
    """A part of a client. Attributes that lead to an intercepted method are parts too; the others are the client's own."""

    def __init__(self, target: Any, path: str, sender: _Sender) -> None:
        super().__init__(target)
        self._path = path
        self._sender = sender

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the wrapped object, so that `isinstance` still holds."""
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        path = f"{self._path}.{name}" if self._path else name
        shape = _METHODS.get(path)
        if shape is not None:
            return self._sender.intercept(found, shape, is_stream=name == "stream")
        if any(method.startswith(f"{path}.") for method in _METHODS):
            return _Part(found, path, self._sender)
        if not self._path and name in _COPIES:
            return lambda *args, **settings: _Part(found(*args, **settings), "", self._sender)
        return found


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends the conversations of one wrapped client."""

    manager: CompactManager
    session_id: str | None

    def intercept(
        self, original: Callable[..., Any], shape: RequestShape, *, is_stream: bool
    ) -> Callable[..., Any]:
        """Return a client's method that also takes `session_id=`."""

        def post(request: dict[str, Any], messages: Any) -> Any:
            return original(**{**request, shape.messages: messages})

        def open_stream(**request: Any) -> Any:
            call = self._prepare(shape, request)
            return (
                original(**request) if call is None else _StreamManager(call, partial(post, request), shape)
            )

        def send(**request: Any) -> Any:
            call = self._prepare(shape, request)
            if call is None:
                return original(**request)
            return call.run(lambda messages: shape.begin(post(request, messages)))

        async def asend(**request: Any) -> Any:
            call = self._prepare(shape, request)
            if call is None:
                return await original(**request)

            async def post_and_begin(messages: Any) -> Any:
                return await shape.abegin(await post(request, messages))

            return await call.arun(post_and_begin)

        if is_stream:
            return open_stream
        return asend if inspect.iscoroutinefunction(inspect.unwrap(original)) else send

    def _prepare(self, shape: RequestShape, request: dict[str, Any]) -> HostCall | None:
        """Take `session_id` out of a request and return its call. None: there is nothing to compact."""
        own = request.pop("session_id", None)
        explicit = self.session_id if own is None else own
        given = {name: value for name, value in request.items() if not _is_omitted(value)}
        if any(given.get(field) is not None for field in shape.server_managed):
            nobody = self.manager.resolver.nobody
            warn_server_managed(self.manager, explicit or nobody, shape.server_managed)
            self._mask(request, given, explicit if isinstance(explicit, str) else nobody, shape, whole=True)
            return None
        messages = given.get(shape.messages)
        if messages is None:
            return None
        is_text = isinstance(messages, str)
        items = [{"role": "user", "content": messages}] if is_text else list(messages)
        system = None if shape.system is None else given.get(shape.system)
        session_id = self.manager.resolver.resolve(
            items, session_id=explicit, call=request, system=system, kind=shape.dialect
        )
        self._mask(request, given, session_id, shape)
        return HostCall(
            manager=self.manager,
            session_id=session_id,
            items=items,
            original=messages if is_text else items,
            restore=lambda kept: kept,
            dialect=shape.dialect,
            tools=given.get("tools"),
            system=None if shape.system is None else given.get(shape.system),
            model=given.get("model"),
        )

    def _mask(
        self,
        request: dict[str, Any],
        given: dict[str, Any],
        session_id: str,
        shape: RequestShape,
        *,
        whole: bool = False,
    ) -> None:
        """Mask what a request sends beside its conversation; with `whole`, the conversation too."""
        if self.manager.live is None:
            return
        for name in (shape.system, "tools", "functions", shape.messages if whole else None):
            if name is not None and given.get(name) is not None:
                schemas = name in ("tools", "functions")
                given[name] = request[name] = self.manager.mask(session_id, given[name], schemas=schemas)


def _is_omitted(value: Any) -> bool:
    """Return whether a value is a package's marker for an argument that was not given."""
    return type(value).__name__ in ("NotGiven", "Omit")


class _StreamManager:
    """What a client's `stream()` returns. The request is sent on entering, so that is where it is made to fit."""

    def __init__(self, call: HostCall, open_stream: Callable[[Any], Any], shape: RequestShape) -> None:
        self._call = call
        self._open = open_stream
        self._shape = shape
        self._inner: Any = None
        self._stream: Any = None

    def __enter__(self) -> Any:
        def send(messages: Any) -> Any:
            if self._inner is not None:
                self._inner.__exit__(None, None, None)  # it was refused after it started
            inner = self._open(messages)
            stream = inner.__enter__()
            self._inner = inner
            return self._shape.begin(stream)

        self._stream = self._call.run(send)
        return self._stream

    def __exit__(self, *problem: Any) -> Any:
        self._observe_snapshot()
        return self._inner.__exit__(*problem)

    async def __aenter__(self) -> Any:
        async def send(messages: Any) -> Any:
            if self._inner is not None:
                await self._inner.__aexit__(None, None, None)
            inner = self._open(messages)
            stream = await inner.__aenter__()
            self._inner = inner
            return await self._shape.abegin(stream)

        self._stream = await self._call.arun(send)
        return self._stream

    async def __aexit__(self, *problem: Any) -> Any:
        self._observe_snapshot()
        return await self._inner.__aexit__(*problem)

    def _observe_snapshot(self) -> None:
        """Report the usage of a stream that was read by its helpers instead of event by event."""
        for name in ("current_message_snapshot", "current_completion_snapshot"):
            with suppress(AttributeError, AssertionError):  # the other package's, or nothing has arrived yet
                self._call.observe(getattr(self._stream, name))
