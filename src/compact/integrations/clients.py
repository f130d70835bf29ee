"""`manager.wrap(client)`: an OpenAI or Anthropic client whose requests fit. Google's and AWS's are in modules of their own.

The wrapped client is used like the original. Methods that send a conversation are intercepted, however they are reached:
`with_raw_response` and `with_streaming_response` may stand anywhere on the way to them. What cannot be intercepted raises
(`_REFUSED`), and everything else passes through. Attributes may be set on the wrapped client and on its parts. A method
that somebody puts in the place of ours, such as an instrumented one around it, is used from then on.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from compact.errors import ConfigError
from compact.integrations.calls import HostCall
from compact.integrations.native_requests import compacting, with_beta
from compact.integrations.raw_replies import abegin_raw, begin_raw
from compact.integrations.requests import ANTHROPIC, CHAT, RESPONSES, RequestShape
from compact.runtime.manager import CompactManager
from compact.runtime.overflow.streams import Proxy

__all__ = ["PASSED", "REFUSED", "SENT", "canonical", "wrap"]


_RESOURCES = {
    "chat.completions": CHAT,
    "beta.chat.completions": CHAT,
    "responses": RESPONSES,
    "beta.responses": RESPONSES,
    "messages": ANTHROPIC,
    "beta.messages": ANTHROPIC,
}
SENT = {
    f"{path}.{method}": shape
    for path, shape in _RESOURCES.items()
    for method in ("create", "parse", "stream")
}
"""Methods that send a conversation, without raw and streaming variants."""
_MASKED = {
    "messages.count_tokens": ANTHROPIC,
    "beta.messages.count_tokens": ANTHROPIC,
    **{
        f"{path}.{method}": RESPONSES
        for path in ("responses", "beta.responses")
        for method in ("input_tokens.count", "compact")
    },
}
"""Methods that send a conversation as it is. Live masking holds for them too."""
_RUNNERS = frozenset({"beta.messages.tool_runner", "beta.messages.thread"})
"""Methods that send nothing, but return an object which sends through its client. It gets the wrapped one."""
_INSTEAD = "Make the requests fit with manager.preflight, and send them through the client that you wrapped"
REFUSED = {
    **dict.fromkeys(
        ("messages.batches.create", "beta.messages.batches.create"), "a batch is not answered at once"
    ),
    **dict.fromkeys(
        ("responses.connect", "beta.responses.connect"), "a websocket's messages are not seen one by one"
    ),
}
"""Methods that send conversations and cannot be intercepted, each with the reason."""
_POSTS = ("post", "request")
_POSTED = ("/chat/completions", "/responses", "/messages", "/messages/batches")
PASSED = {
    "audio": "no conversation",
    "completions.create": "the old completions take one text",
    "count_tokens": "nothing is answered: it counts the list as it is",
    "decisions.create": "no conversation",
    "embeddings.create": "no conversation",
    "images": "no conversation",
    "input_tokens.count": "nothing is answered: it counts the list as it is",
    "moderations.create": "no conversation",
    "realtime": "the provider keeps the conversation",
    "responses.compact": "the provider's own compaction of the list as it is",
    "videos": "no conversation",
}
"""Methods with a `model` and an input that pass through, each with the reason: the last names of a path, or its first."""
_VARIANTS = {"with_raw_response": "raw", "with_streaming_response": "streaming"}
_COPIES = ("copy", "with_options")


def canonical(path: str) -> str:
    """Return a path without its raw and streaming variants: `chat.with_raw_response.completions` is `chat.completions`."""
    return ".".join(name for name in path.split(".") if name not in _VARIANTS)


_LEADING = frozenset(
    ".".join(names[:length])
    for names in (path.split(".") for path in (*SENT, *_MASKED, *REFUSED, *_RUNNERS))
    for length in range(len(names))
)
"""Paths on the way to a method that is intercepted."""


def wrap(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    """See `CompactManager.wrap`."""
    if not hasattr(client, "with_options"):
        raise ConfigError(
            f"wrap takes a client itself, got a part of one ({type(client).__name__})",
            hint="Wrap the client, and use its parts as before: manager.wrap(client).chat.completions.create",
            path="client",
        )
    is_async = hasattr(type(client), "__aenter__")
    return _Part(client, "", _Sender(client, manager, session_id, is_async=is_async))


class _Part(Proxy):
    """A part of a client. Attributes that lead to an intercepted method are parts too; the others are the client's own."""

    def __init__(self, target: Any, path: str, sender: _Sender) -> None:
        for name, value in (("_target", target), ("_path", path), ("_sender", sender)):
            object.__setattr__(self, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the wrapped object, so that `isinstance` still holds."""
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        path = self._join(name)
        if path in self._sender.replaced:
            return self._sender.replaced[path]
        found = getattr(self._target, name)
        plain = canonical(path)
        if plain in SENT:
            return self._sender.intercept(
                found, SENT[plain], way=_way(path), takes_betas=plain.startswith("beta.")
            )
        if plain in _MASKED:
            return self._sender.mask_only(found, _MASKED[plain])
        if plain in _RUNNERS:
            return self._run_by_us(name)
        if plain in REFUSED:
            return partial(_refuse, plain)
        if name in _VARIANTS or plain in _LEADING:
            return _Part(found, path, self._sender)
        if not self._path and name in _COPIES:
            return lambda *args, **settings: self._copied(found(*args, **settings))
        if not self._path and name in _POSTS:
            return _guard_post(found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        path = self._join(name)
        plain = canonical(path)
        if plain in SENT or plain in _MASKED or plain in _RUNNERS or plain in _LEADING:
            self._sender.replaced[path] = value
        else:
            setattr(self._target, name, value)

    def __delattr__(self, name: str) -> None:
        if self._sender.replaced.pop(self._join(name), None) is None:
            delattr(self._target, name)

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<compact: {self._target!r}>"

    def _copied(self, client: Any) -> _Part:
        return _Part(client, "", replace(self._sender, client=client, replaced={}))

    def _join(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _run_by_us(self, name: str) -> Callable[..., Any]:
        """Return a method whose result sends through the wrapped client."""

        def run(*args: Any, session_id: str | None = None, **request: Any) -> Any:
            sender = self._sender if session_id is None else replace(self._sender, session_id=session_id)
            resource = copy.copy(self._target)
            resource._client = _Part(resource._client, "", sender)
            method = getattr(resource, name)
            if name == "tool_runner" and "thread" in inspect.signature(method).parameters:
                request.setdefault("thread", False)  # otherwise the provider keeps the conversation
            return method(*args, **request)

        return run


def _way(path: str) -> str:
    """How a reply is handed out: `whole`, `raw`, `streaming`, or `helper` for the packages' own stream helpers."""
    names = path.split(".")
    return next(
        (_VARIANTS[name] for name in names if name in _VARIANTS),
        "helper" if names[-1] == "stream" else "whole",
    )


def _refuse(path: str, *_args: Any, **_request: Any) -> Any:
    raise ConfigError(f"a wrapped client has no {path}: {REFUSED[path]}", hint=_INSTEAD, path=path)


def _guard_post(post: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse conversations that are posted by their address. Everything else may be."""

    def guarded(*args: Any, **request: Any) -> Any:
        place = str(getattr(args[0], "url", args[0]) if args else request.get("path", ""))
        if f"/{place.partition('?')[0].strip('/')}".endswith(_POSTED):
            raise ConfigError(
                f"a wrapped client does not post to {place} directly: the request would not be made to fit",
                hint="Call the method for it, such as client.chat.completions.create",
                path="post",
            )
        return post(*args, **request)

    return guarded


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends the conversations of one wrapped client."""

    client: Any
    manager: CompactManager
    session_id: str | None
    is_async: bool
    replaced: dict[str, Any] = field(default_factory=dict)
    """Attributes that were set in the place of ours, by path."""

    def intercept(
        self, original: Callable[..., Any], shape: RequestShape, *, way: str, takes_betas: bool
    ) -> Callable[..., Any]:
        """Return a client's method that also takes `session_id=`."""

        def post(request: dict[str, Any], messages: Any) -> Any:
            if shape is ANTHROPIC:
                request = with_beta(request, messages, takes_betas=takes_betas)
            return original(**{**request, shape.messages: messages})

        def open_later(**request: Any) -> Any:
            call = self._prepare(shape, request)
            if call is None:
                return original(**request)
            return _OpenedLater(call, partial(post, request))

        def send(**request: Any) -> Any:
            call = self._prepare(shape, request)
            return (
                original(**request) if call is None else call.run(lambda sent: begin_raw(post(request, sent)))
            )

        async def asend(**request: Any) -> Any:
            call = self._prepare(shape, request)
            if call is None:
                return await original(**request)

            async def post_and_begin(messages: Any) -> Any:
                return await abegin_raw(await post(request, messages))

            return await call.arun(post_and_begin)

        if way in ("helper", "streaming"):
            return open_later
        return asend if self.is_async or inspect.iscoroutinefunction(original) else send

    def mask_only(self, original: Callable[..., Any], shape: RequestShape) -> Callable[..., Any]:
        """Return a client's method that sends what it is given, masked if live masking is on."""

        def send(**request: Any) -> Any:
            shape.mask_only(self.manager, request, self.session_id)
            return original(**request)

        return send

    def _prepare(self, shape: RequestShape, request: dict[str, Any]) -> HostCall | None:
        call = shape.prepare(self.manager, request, self.session_id, kind=shape.dialect)
        return None if call is None else replace(call, compact=compacting(self.client, shape, request))


class _OpenedLater:
    """What `stream()` and streaming responses return. The request is sent on entering, so that is where it is made to fit."""

    def __init__(self, call: HostCall, open_reply: Callable[[Any], Any]) -> None:
        self._call = call
        self._open = open_reply
        self._inner: Any = None
        self._reply: Any = None

    def __enter__(self) -> Any:
        def send(messages: Any) -> Any:
            if self._inner is not None:
                self._inner.__exit__(None, None, None)  # it was refused after it started
            inner = self._open(messages)
            reply = inner.__enter__()
            self._inner = inner
            return begin_raw(reply)

        self._reply = self._call.run(send)
        return self._reply

    def __exit__(self, *problem: Any) -> Any:
        self._observe_snapshot()
        return self._inner.__exit__(*problem)

    async def __aenter__(self) -> Any:
        async def send(messages: Any) -> Any:
            if self._inner is not None:
                await self._inner.__aexit__(None, None, None)
            inner = self._open(messages)
            reply = await inner.__aenter__()
            self._inner = inner
            return await abegin_raw(reply)

        self._reply = await self._call.arun(send)
        return self._reply

    async def __aexit__(self, *problem: Any) -> Any:
        self._observe_snapshot()
        return await self._inner.__aexit__(*problem)

    def _observe_snapshot(self) -> None:
        """Report the usage of a stream that was read by its helpers instead of event by event."""
        for name in ("current_message_snapshot", "current_completion_snapshot"):
            with suppress(AttributeError, AssertionError):  # the other package's, or nothing has arrived yet
                self._call.observe(getattr(self._reply, name))
