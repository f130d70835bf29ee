"""LiteLLM: `completion = CompactHook(manager)(litellm.completion)`; likewise `acompletion` and a router's methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from compact.config import CompactConfig
from compact.errors import MissingExtra
from compact.integrations.calls import HostCall
from compact.integrations.managers import take_manager
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

try:
    import litellm as _litellm  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("litellm", "The integration with LiteLLM") from problem

__all__ = ["CompactHook"]


class CompactHook:
    """Wraps `litellm.completion`, `litellm.acompletion` or a router's methods: requests fit and survive overflow.

    The wrapped function is called as before, streamed or not. `session_id` is a name, or a function that finds one in
    the call's keyword arguments. The call's own `session_id=` argument wins over both. Without any of them,
    `metadata["session_id"]` is used; without that, conversations are told apart by their contents.

    A wrapped function raises as `CompactManager.call` does.
    """

    def __init__(
        self, manager: CompactManager | CompactConfig | None = None, session_id: SessionId = None
    ) -> None:
        self._manager = take_manager(manager, "CompactHook")
        self._session_id = session_id

    def __call__(self, completion: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with everything that it sends made to fit."""
        parameters = inspect.signature(completion).parameters.values()
        places = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]

        def prepare(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[HostCall, Callable[[Any], Any]]:
            # All arguments by name: `completion("gpt-4o", messages)` is valid too.
            given = {**dict(zip(places, args, strict=False)), **named}
            own, items = given.pop("session_id", None), list(given.get("messages") or ())
            name = self._manager.resolver.resolve(
                items,
                session_id=self._session_id if own is None else own,
                call=given,
                given=_given_id(given),
                kind="litellm",
            )
            call = HostCall(
                manager=self._manager,
                session_id=name,
                items=items,
                original=items,
                tools=given.get("tools"),
                model=given.get("model"),
            )
            return call, lambda messages: completion(**{**given, "messages": messages})

        @functools.wraps(completion)
        def send(*args: Any, **named: Any) -> Any:
            call, complete = prepare(args, named)
            return call.run(complete)

        @functools.wraps(completion)
        async def asend(*args: Any, **named: Any) -> Any:
            call, complete = prepare(args, named)
            return await call.arun(complete)

        return asend if inspect.iscoroutinefunction(inspect.unwrap(completion)) else send


def _given_id(request: Mapping[str, Any]) -> Any:
    """The id in a request's metadata, or None."""
    metadata = request.get("metadata")
    return metadata.get("session_id") if isinstance(metadata, Mapping) else None
