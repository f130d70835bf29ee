"""One model call of a host: what is sent fits, and what the provider counted is reported back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.integrations.offering import name_tools
from compact.messages.cache_marks import make_room
from compact.messages.message import FRAME_OPENS, GAP
from compact.runtime.manager import CompactManager
from compact.runtime.native_asking import SendNative, able_to_compact
from compact.runtime.overflow.evidence import cached_tokens, input_tokens, is_cached_for_an_hour
from compact.runtime.overflow.streams import HostStream
from compact.runtime.session_cache import Prepared


def check_manager(value: Any, user: str) -> CompactManager:
    """Return the manager that an integration was given.

    Raises:
        ConfigError: it is something else, such as a configuration; says what to pass.
    """
    if isinstance(value, CompactManager):
        return value
    given = value.__name__ if isinstance(value, type) else type(value).__name__
    made = "CompactManager(config)" if isinstance(value, CompactConfig) else "CompactManager(model='gpt-4o')"
    raise ConfigError(
        f"{user} takes a CompactManager, got {given}", hint=f"Pass {user}({made})", path="manager"
    )


def separate_roles(items: Sequence[Any]) -> list[Any]:
    """Insert a short user message wherever a summary would open the conversation or follow another reply.

    A framework may pass the list on to any provider, and some providers require a user message first and alternating
    roles. For chat messages and Responses items.
    """
    found: list[Any] = []
    for item in items:
        before = found[-1] if found else {"role": "system"}
        meets = _speaker(before) in ("system", "developer", "assistant")
        if _speaker(item) == "assistant" and meets and (_is_summary(item) or _is_summary(before)):
            found.append({"role": "user", "content": GAP})
        found.append(item)
    return found


def _speaker(item: Any) -> str:
    if "role" in item:
        return str(item["role"])
    return "tool" if str(item.get("type")).endswith("_output") else "assistant"


def _is_summary(item: Any) -> bool:
    return str(item.get("content", "")).startswith(FRAME_OPENS)


def observe(manager: CompactManager, session_id: str, usage: Any, request: Prepared | None = None) -> None:
    """Pass on what the provider counted, if `usage` says so."""
    reply = {"usage": usage}
    counted = input_tokens(reply)
    if counted:
        manager.observe(
            session_id,
            input_tokens=counted,
            cached_tokens=cached_tokens(reply),
            cached_for_an_hour=is_cached_for_an_hour(reply),
            request=request,
        )


def warn_server_managed(manager: CompactManager, session_id: str, fields: Sequence[str]) -> None:
    """Warn, once per session, that compact leaves it alone because `fields` refer to a history on the provider's side."""
    text = (
        f"the provider keeps this conversation ({' or '.join(fields)}): only what is new is sent, so there is nothing to "
        "compact; for compaction keep the history on your side"
    )
    manager.warn(session_id, "server_managed", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A call that the manager prepares and the host sends. Raises as `CompactManager.call` does."""

    manager: CompactManager
    session_id: str
    items: Sequence[Any]
    """The conversation in `dialect`."""
    original: Any
    """What is sent if nothing changed."""
    restore: Callable[[Sequence[Any]], Any] = separate_roles
    """Turns the items to send into the host's own messages."""
    dialect: str = "chat"
    tools: Any = None
    system: Any = None
    model: str | None = None
    """The request's own model. It decides window, tokenizer and what is learned; None: the configured one."""
    cache_mark: Any = None
    """The mark of the whole request: its own `cache_control`."""
    compact: SendNative | None = None
    """Sends a compaction request with the host's client; None: it has none."""

    def run(self, send: Callable[[Any], Any]) -> Any:
        """Return the reply of `send(messages)`. A stream reports its usage while it is read."""
        self.manager.resolver.enter(self.session_id)

        def send_kept(kept: Sequence[Any]) -> Any:
            return send(self._fit(kept))

        request = self.session_id, self.items, able_to_compact(send_kept, self.compact), self.tools
        reply = self.manager.call(*request, system=self.system, dialect=self.dialect, model=self.model)
        return self._watch(reply)

    async def arun(self, send: Callable[[Any], Awaitable[Any]]) -> Any:
        """`run` for async hosts."""

        async def send_kept(kept: Sequence[Any]) -> Any:
            return await send(self._fit(kept))

        self.manager.resolver.enter(self.session_id)
        request = self.session_id, self.items, able_to_compact(send_kept, self.compact), self.tools
        reply = await self.manager.acall(*request, system=self.system, dialect=self.dialect, model=self.model)
        return self._watch(reply)

    def _fit(self, kept: Sequence[Any]) -> Any:
        self.manager.resolver.note_sent(self.session_id, self.items, kept)
        if kept is self.items:
            return self.original
        named = name_tools(kept, self.items, self.tools)
        return self.restore(make_room(named, self.cache_mark, self.system, self.tools))

    def _watch(self, reply: Any) -> Any:
        if hasattr(reply, "__next__") or hasattr(reply, "__anext__"):
            # Another call of the session may be prepared before the stream ends.
            request = self.manager.prepared(self.session_id)
            return HostStream(reply, on_event=partial(self.observe, request=request))
        self.observe(reply)
        return reply

    def observe(self, event: Any, request: Prepared | None = None) -> None:
        """Pass on what a reply or an event of a stream says: the usage, and the tools that the model asks for.

        `request` is what it answers; None: what the session prepared last.
        """
        if hasattr(event, "http_response") and not _is_read(event):
            self.manager.resolver.note_unseen(self.session_id)
            return
        self.manager.resolver.note_calls(self.session_id, call_ids(event))
        for path in ("usage", "usage_metadata", "response.usage", "message.usage", "metadata.usage"):
            usage = event
            for name in path.split("."):
                usage = _field(usage, name)
            if usage is not None:
                observe(self.manager, self.session_id, usage, request)
                return


def _is_read(reply: Any) -> bool:
    """Whether the whole body of a raw reply is there."""
    return bool(getattr(reply.http_response, "is_stream_consumed", False)) and hasattr(reply, "text")


def call_ids(event: Any) -> Iterator[str]:
    """Find the ids of tool calls in a reply or in an event of a stream, of any provider."""
    if isinstance(event, Mapping):
        yield from _texts(_bedrock_ids(event))
        return
    if hasattr(event, "http_response"):
        with suppress(ValueError):
            event = json.loads(event.http_response.text, object_hook=lambda found: SimpleNamespace(**found))
    for choice in _listed(event, "choices"):
        said = getattr(choice, "message", None) or getattr(choice, "delta", None)
        yield from _texts(getattr(call, "id", None) for call in _listed(said, "tool_calls"))
    items = [*_listed(event, "output"), getattr(event, "item", None)]
    yield from _texts(getattr(item, "call_id", None) for item in items)
    blocks = [*_listed(event, "content"), getattr(event, "content_block", None)]
    yield from _texts(
        getattr(block, "id", None) for block in blocks if getattr(block, "type", None) == "tool_use"
    )
    yield from _texts(_google_ids(event))


def _bedrock_ids(event: Mapping[str, Any]) -> Iterator[Any]:
    """The ids in a reply of Converse, or in an event of its stream."""
    message = _field(event.get("output"), "message")
    blocks = [*(_field(message, "content") or ()), _field(event.get("contentBlockStart"), "start")]
    return (_field(_field(block, "toolUse"), "toolUseId") for block in blocks)


def _google_ids(reply: Any) -> Iterator[Any]:
    """The ids in a reply of Google, or in a chunk of its stream."""
    for candidate in _listed(reply, "candidates"):
        for part in _listed(getattr(candidate, "content", None), "parts"):
            yield getattr(getattr(part, "function_call", None), "id", None)


def _listed(value: Any, name: str) -> Sequence[Any]:
    found = getattr(value, name, None)
    return found if isinstance(found, list | tuple) else ()


def _texts(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str) and value)


def _field(value: Any, name: str) -> Any:
    """A field of an event or of its parts. Some packages leave those parts as they came, as dicts."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
