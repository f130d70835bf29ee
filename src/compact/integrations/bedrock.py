"""`manager.wrap(client)` for boto3's bedrock-runtime client: `converse` and `converse_stream`.

The package is known by its class and never imported.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compact.errors import ConfigError
from compact.integrations.calls import HostCall
from compact.integrations.nested_requests import FlatRequest
from compact.integrations.requests import CONVERSE
from compact.runtime.manager import CompactManager
from compact.runtime.overflow.streams import Proxy

__all__ = ["PASSED", "REFUSED", "SENT", "wrap"]

SENT = frozenset({"converse", "converse_stream"})
"""Methods that send a conversation."""
REFUSED = {
    "invoke_model": "its body is another format for each model",
    "invoke_model_with_response_stream": "its body is another format for each model",
    "invoke_model_with_bidirectional_stream": "a stream's messages are not seen one by one",
    "start_async_invoke": "it is not answered at once",
}
"""Methods that send conversations and cannot be intercepted, each with the reason."""
PASSED = {
    "apply_guardrail": "nothing is answered: it judges a text",
    "count_tokens": "nothing is answered: it counts the list as it is",
}
"""Methods with content that pass through, each with the reason."""
_SERVICE = "bedrock-runtime"
_BINARY = frozenset({"bytes", "redactedContent"})
_LEVELS = 8


def wrap(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    """See `CompactManager.wrap`."""
    service = getattr(getattr(getattr(client, "meta", None), "service_model", None), "service_name", None)
    if service != _SERVICE:
        raise ConfigError(
            f"wrap takes the client of {_SERVICE}, got that of {service or type(client).__name__}",
            hint='Pass boto3.client("bedrock-runtime")',
            path="client",
        )
    return _Client(client, manager, session_id)


class _Client(Proxy):
    """The client with our `converse` and `converse_stream`."""

    def __init__(self, target: Any, manager: CompactManager, session_id: str | None) -> None:
        for name, value in (("_target", target), ("_manager", manager), ("_session_id", session_id)):
            object.__setattr__(self, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the wrapped object, so that `isinstance` still holds."""
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name in SENT:
            return partial(self._send, found, name == "converse_stream")
        if name in REFUSED:
            return partial(_refuse, name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<compact: {self._target!r}>"

    def _send(self, original: Callable[..., Any], streamed: bool, **request: Any) -> Any:
        call, request = self._prepare(request)
        if call is None:
            return original(**request)
        if not streamed:
            return call.run(lambda kept: original(**{**request, "messages": kept}))
        opened = _Opened()

        def open_stream(kept: Any) -> Any:
            return opened.take(original(**{**request, "messages": kept}))

        stream = call.run(open_stream)
        return {**(opened.reply or {}), "stream": stream}

    def _prepare(self, request: dict[str, Any]) -> tuple[HostCall | None, dict[str, Any]]:
        """The call of a request, and the request without `session_id` and with what was masked in it."""
        own = request.pop("session_id", None)
        config = request.get("toolConfig")
        tools = config.get("tools") if isinstance(config, Mapping) else None
        inside = {name: value for name, value in request.items() if name not in ("modelId", "toolConfig")}
        fields = {**inside, "model": request.get("modelId"), "session_id": own}
        if tools is not None:
            fields["tools"] = tools
        flat = FlatRequest(CONVERSE, fields)
        given = request.get("messages")
        own_ids = set(map(id, given if isinstance(given, list | tuple) else ()))
        call = flat.prepare(
            self._manager,
            self._session_id,
            lambda kept: [each if id(each) in own_ids else with_bytes(each) for each in kept],
        )
        changed = {name: value for name, value in flat.changed().items() if name != "model"}
        if "tools" in changed:
            changed["toolConfig"] = {**(config or {}), "tools": changed.pop("tools")}
        return call, {**request, **changed}


@dataclass
class _Opened:
    """The newest reply of `converse_stream`, beside its stream."""

    reply: Mapping[str, Any] | None = None

    def take(self, reply: Any) -> _Events:
        """Remember a reply, and return its events. The stream of an earlier one is closed: it was refused."""
        if self.reply is not None:
            self.reply["stream"].close()
        self.reply = reply
        return _Events(reply["stream"])


class _Events(Proxy):
    """The events of a stream, which boto3 only offers as an iterable."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._events: Iterator[Any] = iter(stream)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)


def with_bytes(value: Any, levels: int = _LEVELS) -> Any:
    """Return a message with bytes where it has base64. What was restored from the archive has that, and boto3 wants bytes."""
    if not levels:
        return value
    if isinstance(value, Mapping):
        return {
            key: _decoded(each) if key in _BINARY else with_bytes(each, levels - 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_bytes(each, levels - 1) for each in value]
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return value


def _refuse(name: str, **_request: Any) -> Any:
    raise ConfigError(
        f"a wrapped client has no {name}: {REFUSED[name]}",
        hint="Use converse, or make the requests fit with manager.preflight and send them through the client that you wrapped",
        path=name,
    )
