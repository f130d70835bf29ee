"""LiteLLM: `completion = CompactHook(manager)(litellm.completion)`; likewise `acompletion` and a router's methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from compact.errors import ConfigError, MissingExtra
from compact.integrations.calls import HostCall, check_manager, separate_roles
from compact.integrations.requests import CHAT, RequestShape, shape_of
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId, check_session_choice

try:
    import litellm as _litellm  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("litellm", "The integration with LiteLLM") from problem

__all__ = ["CompactHook"]

_MASKED = frozenset(
    [
        "prediction",
        "response_format",
        "stop",
        "web_search_options",
        "prompt",
        "text",
        "text_format",
        "stop_sequences",
        "output_config",
        "output_format",
        "context_management",
        "extra_body",
    ]
)
"""What live masking masks beside the conversation. Other arguments configure LiteLLM, and some hold credentials."""


class CompactHook:
    """Wraps `litellm.completion`, `litellm.acompletion` or a router's methods: requests fit and survive overflow.

    `litellm.responses`, `aresponses` and `anthropic_messages` are wrapped too. The wrapped function is called as before,
    streamed or not. `session_id` is a name, or a function that finds one in the call's keyword arguments. The call's own
    `session_id=` argument wins over both. Without any of them, `metadata["session_id"]` is the id; without that,
    conversations are told apart by their contents, and none of them is continued after a restart.

    A wrapped function raises as `CompactManager.call` does.

    Raises:
        ConfigError: what is wrapped takes no conversation, or `session_id` is of the wrong kind.
    """

    def __init__(self, manager: CompactManager, session_id: SessionId = None) -> None:
        self._manager = check_manager(manager, "CompactHook")
        self._session_id = check_session_choice(session_id)

    def __call__(self, completion: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with everything that it sends made to fit."""
        parameters = _parameters(completion)
        shape = shape_of(parameters)
        if shape is None:
            raise ConfigError(
                f"CompactHook wraps functions that send a conversation, got {getattr(completion, '__name__', completion)!r}",
                hint="Pass litellm.completion, acompletion, responses, aresponses, anthropic_messages or a router's method",
                path="completion",
            )
        places = [each.name for each in parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]

        def prepare(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[HostCall | None, dict[str, Any]]:
            # All arguments by name: `completion("gpt-4o", messages)` is valid too.
            request = {**dict(zip(places, args, strict=False)), **named}
            return self._prepare(shape, request), request

        @functools.wraps(completion)
        def send(*args: Any, **named: Any) -> Any:
            call, request = prepare(args, named)
            if call is None:
                return completion(**request)
            return call.run(lambda sent: completion(**{**request, shape.messages: sent}))

        @functools.wraps(completion)
        async def asend(*args: Any, **named: Any) -> Any:
            call, request = prepare(args, named)
            if call is None:
                return await completion(**request)

            async def complete(sent: Any) -> Any:
                return await completion(**{**request, shape.messages: sent})

            return await call.arun(complete)

        return asend if inspect.iscoroutinefunction(inspect.unwrap(completion)) else send

    def _prepare(self, shape: RequestShape, request: dict[str, Any]) -> HostCall | None:
        # Behind LiteLLM there may be any provider, and some require alternating roles.
        restore: dict[str, Any] = {"restore": separate_roles} if shape is CHAT else {}
        metadata = request.get("metadata")
        given = metadata.get("session_id") if isinstance(metadata, Mapping) else None
        more = {"given": given, "kind": "litellm", "beside": _MASKED, **restore}
        return shape.prepare(self._manager, request, self._session_id, **more)


def _parameters(completion: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function; none of what is not one, or does not say."""
    try:
        return inspect.signature(completion).parameters
    except (TypeError, ValueError):
        return {}
