"""LiteLLM: `completion = CompactHook(manager)(litellm.completion)`, and the same for `acompletion` and a router's methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from compact.errors import MissingExtra
from compact.integrations.shared import SessionId, conversations_of, observe, parted
from compact.runtime.manager import CompactManager

try:
    import litellm as _litellm  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("litellm", "The integration with LiteLLM") from problem

__all__ = ["CompactHook"]


class CompactHook:
    """Goes around `litellm.completion`, `litellm.acompletion`, or a router's: they send what fits, and survive overflow.

    The function that it gives back is called as before, streamed or not. `session_id` is a name, or a function that finds one
    in the call's keyword arguments. Without it, it is the call's own `session_id=` argument, then `metadata["session_id"]`, then
    conversations are told apart by what they say.

    Raises, on a call, as `CompactManager.call` does.
    """

    def __init__(self, manager: CompactManager, session_id: SessionId = None) -> None:
        self._manager = manager
        self._session_id = session_id

    def __call__(self, completion: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with everything it sends made to fit."""
        bound = inspect.signature(completion)

        @functools.wraps(completion)
        def sent(*args: Any, **given: Any) -> Any:
            call = _Call(self, completion, _named(bound, args, given))
            return call.watched(self._manager.call(*call.arguments(call.send), dialect="chat"))

        @functools.wraps(completion)
        async def asent(*args: Any, **given: Any) -> Any:
            call = _Call(self, completion, _named(bound, args, given))

            async def send(kept: Sequence[Any]) -> Any:
                return await call.send(kept)

            return call.watched(await self._manager.acall(*call.arguments(send), dialect="chat"))

        return asent if inspect.iscoroutinefunction(inspect.unwrap(completion)) else sent

    def name_of(self, given: Mapping[str, Any], messages: Sequence[Any]) -> str:
        """The session that a call belongs to."""
        if callable(self._session_id):
            return self._session_id(given)
        told = self._session_id or (given.get("metadata") or {}).get("session_id")
        return told or conversations_of(self._manager).named(messages, lambda: "litellm")


def _named(bound: inspect.Signature, args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name: `completion("gpt-4o", messages)` is as good."""
    places = [each.name for each in bound.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return {**dict(zip(places, args, strict=False)), **given}


class _Call:
    def __init__(self, hook: CompactHook, completion: Callable[..., Any], given: dict[str, Any]) -> None:
        self._manager = hook._manager
        self._completion = completion
        own = given.pop("session_id", None)
        self._given = given
        self._items = list(given.get("messages") or ())
        self._name = own or hook.name_of(given, self._items)

    def arguments(self, send: Callable[[Any], Any]) -> tuple[Any, ...]:
        return self._name, self._items, send, self._given.get("tools")

    def send(self, kept: Sequence[Any]) -> Any:
        conversations_of(self._manager).note(self._name, self._items, kept)
        messages = self._items if kept is self._items else parted(kept)
        return self._completion(**{**self._given, "messages": messages})

    def watched(self, reply: Any) -> Any:
        if hasattr(reply, "__next__") or hasattr(reply, "__anext__"):
            return _Stream(reply, self._observe)
        self._observe(reply)
        return reply

    def _observe(self, reply: Any) -> None:
        observe(self._manager, self._name, getattr(reply, "usage", None))


class _Stream:
    """A stream of LiteLLM's; its usage, if it comes, is taken note of."""

    def __init__(self, stream: Any, observe: Callable[[Any], None]) -> None:
        self._stream = stream
        self._observe = observe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        chunk = next(self._stream)
        self._observe(chunk)
        return chunk

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._stream)
        self._observe(chunk)
        return chunk
