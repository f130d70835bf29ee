"""Requests by keyword arguments, as OpenAI's, Anthropic's and LiteLLM's functions take them: where a conversation stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.errors import ConfigError, MaskingError
from compact.integrations.calls import HostCall, warn_server_managed
from compact.messages.protecting import unmarked
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

__all__ = ["ANTHROPIC", "CHAT", "CONVERSE", "GEMINI", "KEPT", "RESPONSES", "RequestShape"]

_TOOLS = ("tools", "functions")
_SCHEMAS = frozenset({*_TOOLS, "response_format", "text", "text_format", "output_config", "output_format"})
"""Fields with schemas, where `password: ...` describes a field."""
KEPT = frozenset(
    [
        "model",
        # ids
        "user",
        "user_profile_id",
        "workspace_id",
        "safety_identifier",
        "prompt_cache_key",
        "response_id",
        "previous_response_id",
        "conversation",
        "thread",
        "container",
        "metadata",
        # names of tools, and switches
        "tool_choice",
        "function_call",
        "stream",
        "stream_options",
        "logit_bias",
        "cache_control",
        "betas",
        # what the provider needs and the model does not read
        "mcp_servers",
        "fallback_credit_token",
        "extra_headers",
        "extra_query",
        "timeout",
        # Google's config and Bedrock's request
        "http_options",
        "labels",
        "cached_content",
        "safety_settings",
        "tool_config",
        "thinking_config",
        "automatic_function_calling",
        "response_modalities",
        "response_mime_type",
        "speech_config",
        "inferenceConfig",
        "guardrailConfig",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "additionalModelResponseFieldPaths",
    ]
)
"""Fields of a request that live masking leaves as they are."""
_CONVERSATION = frozenset(
    [
        "messages",
        "input",
        "system",
        "instructions",
        *_TOOLS,
        "previous_response_id",
        "conversation",
        "thread",
    ]
)
"""Fields that are arguments of their own. Inside `extra_body` they would replace what was made to fit."""


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
        beside: Collection[str] | None = None,
        restore: Callable[[Sequence[Any]], Any] = lambda kept: kept,
    ) -> HostCall | None:
        """Take `session_id` out of a request and return its call. None: there is nothing to compact.

        The request's own `session_id` wins over the one that is passed, and both win over the id that the host has
        `given`. With live masking, `beside` names the fields that are masked beside the conversation; None: all but `KEPT`.

        Raises:
            ConfigError: an id is not a non-empty string, or `extra_body` holds a part of the conversation.
            MaskingError: live masking is on, and a field could not be masked.
        """
        own = request.pop("session_id", None)
        explicit = session_id if own is None else own
        values = {name: value for name, value in request.items() if not _is_omitted(value)}
        more = _checked_body(values.get("extra_body"))
        messages = values.get(self.messages)
        is_server_managed = any(values.get(name) is not None for name in self.server_managed)
        if messages is None and not is_server_managed and manager.live is None:
            return None
        if messages is None or is_server_managed:
            name = manager.resolver.resolve((), session_id=explicit, call=request, given=given)
            if is_server_managed:
                manager.resolver.enter(name)
                warn_server_managed(manager, name, self.server_managed)
            self._mask(manager, name, request, values, beside, self.messages)
            return None
        is_text = isinstance(messages, str)
        items = [{"role": "user", "content": messages}] if is_text else list(messages)
        system = None if self.system is None else values.get(self.system)
        name = manager.resolver.resolve(
            items, session_id=explicit, call=request, given=given, system=system, kind=kind
        )
        self._mask(manager, name, request, values, beside)
        return HostCall(
            manager=manager,
            session_id=name,
            items=items,
            original=messages if is_text else _sendable(items),
            restore=lambda kept: restore(_sendable(kept)),
            dialect=self.dialect,
            tools=values.get("tools"),
            system=None if self.system is None else values.get(self.system),
            model=more.get("model", values.get("model")),
            cache_mark=more.get("cache_control", values.get("cache_control")),
        )

    def mask_only(self, manager: CompactManager, request: dict[str, Any], session_id: SessionId) -> None:
        """Take `session_id` out of a request that is not made to fit, such as a count, and mask all that it sends.

        Raises:
            ConfigError: as `prepare`, while live masking is on.
            MaskingError: as `prepare`.
        """
        own = request.pop("session_id", None)
        if manager.live is None:
            return
        values = {name: value for name, value in request.items() if not _is_omitted(value)}
        _checked_body(values.get("extra_body"))
        messages = values.get(self.messages)
        if messages is not None and not isinstance(messages, str):
            messages = values[self.messages] = request[self.messages] = list(messages)
        items = messages if isinstance(messages, list) else ()
        explicit = session_id if own is None else own
        name = manager.resolver.resolve(items, session_id=explicit, call=request, kind=self.dialect)
        self._mask(manager, name, request, values, None, self.messages)

    def _mask(
        self,
        manager: CompactManager,
        session_id: str,
        request: dict[str, Any],
        values: dict[str, Any],
        beside: Collection[str] | None,
        *more: str,
    ) -> None:
        """Mask what a request sends beside its conversation, and `more` fields of it, if live masking is on."""
        if manager.live is None:
            return
        for name in (self.system, *_TOOLS, *more):
            if name is not None and values.get(name) is not None:
                whole = _listed(values[name])
                values[name] = request[name] = manager.mask(session_id, whole, schemas=name in _SCHEMAS)
        done = {self.messages, self.system, *_TOOLS}
        for name, value in values.items():
            if name not in done and name not in KEPT and (beside is None or name in beside):
                request[name] = _mask_data(manager, session_id, name, _listed(value))


CHAT = RequestShape("chat", "messages", None)
RESPONSES = RequestShape("responses", "input", "instructions", ("previous_response_id", "conversation"))
ANTHROPIC = RequestShape("anthropic", "messages", "system", ("thread",))
GEMINI = RequestShape("gemini", "contents", "system_instruction")
CONVERSE = RequestShape("converse", "messages", "system")


def shape_of(parameters: Mapping[str, Any]) -> RequestShape | None:
    """Return the shape of a function's requests by the names of its parameters; None if it takes no conversation."""
    if "messages" in parameters:
        return ANTHROPIC if "system" in parameters else CHAT
    return RESPONSES if {"input", "instructions"} <= parameters.keys() else None


def _checked_body(extra_body: Any) -> Mapping[str, Any]:
    """Return the fields that a request adds to its body.

    Raises:
        ConfigError: a part of the conversation is among them.
    """
    fields = extra_body if isinstance(extra_body, Mapping) else {}
    for name in fields:
        if name in _CONVERSATION:
            raise ConfigError(
                f"`{name}` inside extra_body replaces what was made to fit",
                hint=f"Pass {name}= as an argument of its own",
                path=f"extra_body.{name}",
            )
    return fields


def _mask_data(manager: CompactManager, session_id: str, name: str, value: Any) -> Any:
    """Mask a field that may hold data of any form. Its own name is read with it.

    Raises:
        MaskingError: it holds something to mask, and cannot be replaced by a copy.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, type):
        schema: Any = getattr(value, "model_json_schema", dict)()
        if manager.mask(session_id, {name: schema}, schemas=True)[name] is not schema:
            raise _unmaskable(name, "is a class whose schema holds something to mask")
        return value
    if name == "extra_body" and not isinstance(value, Mapping):
        raise _unmaskable(name, f"cannot be masked as {type(value).__name__}")
    return manager.mask(session_id, {name: value}, schemas=name in _SCHEMAS)[name]


def _unmaskable(name: str, problem: str) -> MaskingError:
    return MaskingError(f"`{name}` {problem}", hint=f"Pass {name}= as a dict of plain data", reason=name)


def _listed(value: Any) -> Any:
    """Return what can be read once as a list, so that masking and sending read the same."""
    return list(value) if hasattr(value, "__next__") else value


def _sendable(items: Sequence[Any]) -> Sequence[Any]:
    """Return the messages without the marks that only compact reads, such as `protected`. Some providers refuse them."""
    return unmarked(items) if any(type(item) is dict and "meta" in item for item in items) else items


def _is_omitted(value: Any) -> bool:
    """Return whether a value is a package's marker for an argument that was not given."""
    return type(value).__name__ in ("NotGiven", "Omit")
