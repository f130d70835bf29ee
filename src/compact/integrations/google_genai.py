"""`manager.wrap(client)` for google-genai: `client.models`, `client.aio.models` and the chats made from them.

The package is known by its class and never imported before its client exists.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from compact.errors import ConfigError
from compact.integrations.calls import HostCall
from compact.integrations.nested_requests import FlatRequest
from compact.integrations.requests import GEMINI
from compact.runtime.manager import CompactManager
from compact.runtime.overflow.streams import Proxy

__all__ = ["PASSED", "REFUSED", "SENT", "wrap"]

SENT = frozenset({"generate_content", "generate_content_stream"})
"""Methods of `models` that send a conversation."""
_MASKED = frozenset({"count_tokens", "compute_tokens"})
"""Methods of `models` that send a conversation as it is. Live masking holds for them too."""
REFUSED = {
    "batches": "a batch is not answered at once",
    "live": "a websocket's messages are not seen one by one",
}
"""Parts of a client that send conversations and cannot be intercepted, each with the reason."""
PASSED = {
    "interactions": "the provider keeps the conversation",
    "caches": "what is cached is no request",
    "models.embed_content": "no conversation",
    "models.generate_images": "no conversation",
    "models.generate_videos": "no conversation",
}
"""Methods with a `model` and an input that pass through, each with the reason."""
_INSTEAD = "Make the requests fit with manager.preflight, and send them through the client that you wrapped"
_CONFIG = frozenset({"system_instruction", "systemInstruction", "tools"})


def wrap(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    """See `CompactManager.wrap`."""
    if not (hasattr(client, "models") and hasattr(client, "aio")):
        raise ConfigError(
            f"wrap takes a client itself, got another object of the package ({type(client).__name__})",
            hint="Wrap google.genai.Client(), and use its parts as before: manager.wrap(client).models.generate_content",
            path="client",
        )
    return _Client(client, _Sender(manager, session_id))


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends the conversations of one wrapped client."""

    manager: CompactManager
    session_id: str | None

    def send(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a sync method that also takes `session_id=`."""

        def send(**request: Any) -> Any:
            call, request = self._prepare(request)
            if call is None:
                return original(**request)
            return call.run(lambda kept: original(**{**request, "contents": kept}))

        return send

    def asend(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`send` for a coroutine method."""

        async def send(**request: Any) -> Any:
            call, request = self._prepare(request)
            if call is None:
                return await original(**request)

            async def post(kept: Any) -> Any:
                return await original(**{**request, "contents": kept})

            return await call.arun(post)

        return send

    def mask_only(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that sends what it is given, masked if live masking is on."""

        def send(**request: Any) -> Any:
            if "contents" in request:
                request["contents"] = as_contents(request["contents"])
            GEMINI.mask_only(self.manager, request, self.session_id)
            return original(**request)

        return send

    def _prepare(self, request: dict[str, Any]) -> tuple[HostCall | None, dict[str, Any]]:
        """The call of a request, and the request without `session_id` and with what was masked in it."""
        own = request.pop("session_id", None)
        config = request.get("config")
        fields = {"model": request.get("model"), "session_id": own, **_fields_of(config)}
        if request.get("contents") is not None:
            fields["contents"] = as_contents(request["contents"])
        flat = FlatRequest(GEMINI, fields)
        call = flat.prepare(self.manager, self.session_id, list)
        changed = {name: value for name, value in flat.changed().items() if name != "model"}
        return call, {**request, "config": _with_fields(config, changed)} if changed else request


class _Part(Proxy):
    """A part of a client. What leads to an intercepted method is ours; everything else is the client's own."""

    def __init__(self, target: Any, sender: _Sender) -> None:
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_sender", sender)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the wrapped object, so that `isinstance` still holds."""
        return type(self._target)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<compact: {self._target!r}>"


class _Client(_Part):
    """The client, or its `aio`."""

    def __getattr__(self, name: str) -> Any:
        if name in REFUSED:
            return _Refused(name)
        found = getattr(self._target, name)
        if name == "aio":
            return _Client(found, self._sender)
        if name == "models":
            return _Models(found, self._sender)
        if name == "chats":
            return self._chats(found)
        return found

    def _chats(self, chats: Any) -> Any:
        """Chats that send through our models. A chat keeps its history itself and sends all of it."""
        if not hasattr(chats, "_modules"):
            return _Refused("chats")
        ours = copy.copy(chats)
        ours._modules = _Models(chats._modules, self._sender)
        return ours


class _Models(_Part):
    """`client.models`, or `client.aio.models`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name in SENT:
            is_async = type(self._target).__name__.startswith("Async")
            return self._sender.asend(found) if is_async else self._sender.send(found)
        return self._sender.mask_only(found) if name in _MASKED else found


class _Refused:
    """A part of a client whose methods would bypass compact."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(_refuse, f"{self._path}.{name}", REFUSED.get(self._path, "its requests are not seen"))


def _refuse(path: str, reason: str, *_args: Any, **_request: Any) -> Any:
    raise ConfigError(f"a wrapped client has no {path}: {reason}", hint=_INSTEAD, path=path)


def as_contents(given: Any) -> list[Any]:
    """Return what `contents=` takes as a list of contents: a text, a part, a file or a list of these is one of the user's."""
    entries = list(given) if isinstance(given, list | tuple) else [given]
    found: list[Any] = []
    said: list[Any] = []
    for entry in entries:
        if _is_content(entry) or isinstance(entry, list | tuple):
            found += _said_by_user(said)
            said = []
            found += [entry] if _is_content(entry) else _said_by_user(list(entry))
        else:
            said.append(entry)
    return found + _said_by_user(said)


def _is_content(entry: Any) -> bool:
    return "parts" in entry if isinstance(entry, Mapping) else hasattr(entry, "parts")


def _said_by_user(said: Sequence[Any]) -> list[Any]:
    if not said:
        return []
    if all(isinstance(part, str) for part in said):
        return [{"role": "user", "parts": [{"text": part} for part in said]}]
    # Pictures and files of other packages: the client's own class knows them all. It is imported already.
    from google.genai.types import UserContent

    return [UserContent(parts=list(said))]


def _fields_of(config: Any) -> dict[str, Any]:
    """The fields of a request's `config` that were given, by their names in snake case."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        given = {name: value for name, value in config.items() if value is not None}
        prompt = given.pop("systemInstruction", None)
        return given if prompt is None else {**given, "system_instruction": prompt}
    names = type(config).model_fields
    values = ((name, getattr(config, name, None)) for name in names)
    return {name: value for name, value in values if value is not None}


def _with_fields(config: Any, changed: Mapping[str, Any]) -> Any:
    if isinstance(config, Mapping):
        kept = {name: value for name, value in config.items() if name not in _CONFIG or name not in changed}
        if "system_instruction" in changed:
            kept.pop("systemInstruction", None)
        return {**kept, **changed}
    return config.model_copy(update=dict(changed))
