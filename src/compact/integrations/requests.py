"""Requests by keyword arguments, as OpenAI's, Anthropic's and LiteLLM's functions take them: where a conversation stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.integrations.calls import HostCall, aread_ahead, read_ahead, warn_server_managed
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

__all__ = ["ANTHROPIC", "CHAT", "RESPONSES", "RequestShape", "abegin", "begin"]


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Where a request keeps its conversation."""

    dialect: str
    messages: str
    system: str | None
    server_managed: tuple[str, ...] = ()
    """Fields that refer to a conversation which the provider keeps."""

    def prepare(
        self,
        manager: CompactManager,
        request: dict[str, Any],
        session_id: SessionId,
        *,
        given: Any = None,
        kind: str,
        restore: Callable[[Sequence[Any]], Any] = lambda kept: kept,
    ) -> HostCall | None:
        """Take `session_id` out of a request and return its call. None: there is nothing to compact.

        The request's own `session_id` wins over the one that is passed, and both win over the id that the host has
        `given`.

        Raises:
            ConfigError: an id is not a non-empty string.
        """
        own = request.pop("session_id", None)
        explicit = session_id if own is None else own
        values = {name: value for name, value in request.items() if not _is_omitted(value)}
        if any(values.get(name) is not None for name in self.server_managed):
            name = manager.resolver.resolve((), session_id=explicit, call=request, given=given)
            warn_server_managed(manager, name, self.server_managed)
            return None
        messages = values.get(self.messages)
        if messages is None:
            return None
        is_text = isinstance(messages, str)
        items = [{"role": "user", "content": messages}] if is_text else list(messages)
        system = None if self.system is None else values.get(self.system)
        return HostCall(
            manager=manager,
            session_id=manager.resolver.resolve(
                items, session_id=explicit, call=request, given=given, system=system, kind=kind
            ),
            items=items,
            original=messages if is_text else items,
            restore=restore,
            dialect=self.dialect,
            tools=values.get("tools"),
            system=system,
            model=values.get("model"),
        )


CHAT = RequestShape("chat", "messages", None)
RESPONSES = RequestShape("responses", "input", "instructions", ("previous_response_id", "conversation"))
ANTHROPIC = RequestShape("anthropic", "messages", "system", ("thread",))


def shape_of(parameters: Mapping[str, Any]) -> RequestShape | None:
    """Return the shape of a function's requests by the names of its parameters; None if it takes no conversation."""
    if "messages" in parameters:
        return ANTHROPIC if "system" in parameters else CHAT
    return RESPONSES if {"input", "instructions"} <= parameters.keys() else None


def begin(reply: Any) -> Any:
    """Return a reply that was not refused. Raises StreamRefused."""
    return read_ahead(reply) if hasattr(reply, "__next__") else reply


async def abegin(reply: Any) -> Any:
    """`begin` for async functions."""
    return await aread_ahead(reply) if hasattr(reply, "__anext__") else reply


def _is_omitted(value: Any) -> bool:
    """Return whether a value is a package's marker for an argument that was not given."""
    return type(value).__name__ in ("NotGiven", "Omit")
