"""Requests by keyword arguments, as OpenAI's, Anthropic's and LiteLLM's functions take them: where a conversation stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.integrations.calls import HostCall, aread_ahead, read_ahead, warn_server_managed
from compact.messages.protecting import unmarked
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

__all__ = ["ANTHROPIC", "CHAT", "RESPONSES", "RequestShape", "abegin", "begin"]

_SCHEMAS = ("tools", "functions")


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
            manager.resolver.enter(name)
            warn_server_managed(manager, name, self.server_managed)
            self._mask(manager, name, request, values, self.messages)
            return None
        messages = values.get(self.messages)
        if messages is None:
            return None
        is_text = isinstance(messages, str)
        items = [{"role": "user", "content": messages}] if is_text else list(messages)
        system = None if self.system is None else values.get(self.system)
        name = manager.resolver.resolve(
            items, session_id=explicit, call=request, given=given, system=system, kind=kind
        )
        self._mask(manager, name, request, values)
        return HostCall(
            manager=manager,
            session_id=name,
            items=items,
            original=messages if is_text else _sendable(items),
            restore=lambda kept: restore(_sendable(kept)),
            dialect=self.dialect,
            tools=values.get("tools"),
            system=None if self.system is None else values.get(self.system),
            model=values.get("model"),
        )

    def _mask(
        self,
        manager: CompactManager,
        session_id: str,
        request: dict[str, Any],
        values: dict[str, Any],
        *more: str,
    ) -> None:
        """Mask what a request sends beside its conversation, and `more` fields of it, if live masking is on."""
        if manager.live is None:
            return
        for name in (self.system, *_SCHEMAS, *more):
            if name is not None and values.get(name) is not None:
                masked = manager.mask(session_id, values[name], schemas=name in _SCHEMAS)
                values[name] = request[name] = masked


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


def _sendable(items: Sequence[Any]) -> Sequence[Any]:
    """Return the messages without the marks that only compact reads, such as `protected`. Some providers refuse them."""
    return unmarked(items) if any(type(item) is dict and "meta" in item for item in items) else items


def _is_omitted(value: Any) -> bool:
    """Return whether a value is a package's marker for an argument that was not given."""
    return type(value).__name__ in ("NotGiven", "Omit")
