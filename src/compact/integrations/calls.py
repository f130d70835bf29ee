"""One model call of a host: what is sent fits, and what the provider counted is reported back."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.integrations.offering import name_tools
from compact.messages.message import FRAME_OPENS, GAP
from compact.runtime.manager import CompactManager
from compact.runtime.native_asking import SendNative, able_to_compact
from compact.runtime.overflow.evidence import input_tokens
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
    counted = input_tokens({"usage": usage})
    if counted:
        manager.observe(session_id, input_tokens=counted, request=request)


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
    compact: SendNative | None = None
    """Sends a compaction request with the host's client; None: it has none."""

    def run(self, send: Callable[[Any], Any]) -> Any:
        """Return the reply of `send(messages)`. A stream reports its usage while it is read."""
        self.manager.resolver.enter(self.session_id)

        def send_kept(kept: Sequence[Any]) -> Any:
            return send(self._fit(kept))

        request = self.session_id, self.items, able_to_compact(send_kept, self.compact), self.tools
        try:
            reply = self.manager.call(*request, system=self.system, dialect=self.dialect, model=self.model)
        except StreamRefused as refused:
            reply = refused.stream
        return self._watch(reply)

    async def arun(self, send: Callable[[Any], Awaitable[Any]]) -> Any:
        """`run` for async hosts."""

        async def send_kept(kept: Sequence[Any]) -> Any:
            return await send(self._fit(kept))

        self.manager.resolver.enter(self.session_id)
        request = self.session_id, self.items, able_to_compact(send_kept, self.compact), self.tools
        try:
            reply = await self.manager.acall(
                *request, system=self.system, dialect=self.dialect, model=self.model
            )
        except StreamRefused as refused:
            reply = refused.stream
        return self._watch(reply)

    def _fit(self, kept: Sequence[Any]) -> Any:
        self.manager.resolver.note_sent(self.session_id, self.items, kept)
        if kept is self.items:
            return self.original
        return self.restore(name_tools(kept, self.items, self.tools))

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


class Proxy:
    """Stands for a host's object: attributes and context managers pass through, and entering returns the proxy."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def __enter__(self) -> Any:
        self._target.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._target.__exit__(*problem)

    async def __aenter__(self) -> Any:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self._target.__aexit__(*problem)


class HostStream(Proxy):
    """A host's stream that repeats events which were read ahead, reports every event, and fails where it failed."""

    def __init__(
        self,
        stream: Any,
        head: Iterable[Any] = (),
        on_event: Callable[[Any], None] | None = None,
        problem: Exception | None = None,
    ) -> None:
        super().__init__(stream)
        self._head = deque(head)
        self._on_event = on_event
        self._problem = problem

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._report(self._read_again() if self._is_behind else next(self._target))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return self._report(self._read_again() if self._is_behind else await anext(self._target))

    @property
    def text_stream(self) -> Any:
        """The texts of Anthropic's stream helper, with those that were read ahead."""
        target = self._target
        while isinstance(target, HostStream):
            target = target._target
        if not hasattr(target, "text_stream"):
            raise AttributeError("text_stream")
        return self._texts() if hasattr(target, "__next__") else self._atexts()

    def _texts(self) -> Iterator[str]:
        for event in self:
            yield from _text_of(event)

    async def _atexts(self) -> AsyncIterator[str]:
        async for event in self:
            for text in _text_of(event):
                yield text

    @property
    def _is_behind(self) -> bool:
        return bool(self._head) or self._problem is not None

    def _read_again(self) -> Any:
        if self._head:
            return self._head.popleft()
        problem, self._problem = self._problem, None
        assert problem is not None
        raise problem

    def _report(self, event: Any) -> Any:
        if self._on_event is not None:
            self._on_event(event)
        return event


_PREAMBLE = frozenset(
    {"response.created", "response.in_progress", "response.queued", "message_start", "ping"}
)
"""Events before the model says anything. A request that gets no further may be sent again."""
_DELTAS = frozenset({"content.delta", "refusal.delta"})
"""What the stream helper for chat completions makes of a chunk, even of one without text."""
_SILENT_EVENTS = frozenset({"messageStart", "ping"})
"""Events of Bedrock's stream before the model says anything."""
_SILENT_BLOCKS = frozenset({"text", "thinking"})
"""Anthropic's blocks that say nothing by their beginning."""
_SAID = ("content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "audio")
REFUSALS = frozenset({"error", "response.error", "response.failed"})
"""Events by which a provider refuses a request inside a stream."""


class StreamRefused(Exception):
    """A stream that started well and then refused the request. `stream` repeats everything from the beginning."""

    def __init__(self, events: Sequence[Any], stream: Any) -> None:
        newest = events[-1] if events else None
        problem = _field(_field(newest, "response"), "error") or _field(newest, "error") or newest
        self.code = _field(problem, "code")
        self.message = _field(problem, "message") or ""
        self.stream = stream
        super().__init__(f"{self.code}: {self.message}" if self.code else self.message)


def _field(value: Any, name: str) -> Any:
    """A field of an event or of its parts. Some packages leave those parts as they came, as dicts."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def read_ahead(stream: Any) -> HostStream:
    """Read a stream up to the model's first output, so that a refusal shows while the request can be sent again.

    For chat completions, Responses and Anthropic's messages, with and without their stream helpers.

    Raises:
        StreamRefused: the provider refused the request, or reading failed. Its cause is the client's error, if any.
    """
    head: list[Any] = []
    try:
        for event in stream:
            head.append(event)
            if not is_preamble(event):
                break
    except Exception as problem:
        raise StreamRefused((), HostStream(stream, head, problem=problem)) from problem
    return _replay(head, stream)


async def aread_ahead(stream: Any) -> HostStream:
    """`read_ahead` for async streams."""
    head: list[Any] = []
    try:
        async for event in stream:
            head.append(event)
            if not is_preamble(event):
                break
    except Exception as problem:
        raise StreamRefused((), HostStream(stream, head, problem=problem)) from problem
    return _replay(head, stream)


def is_preamble(event: Any) -> bool:
    """Return whether a stream's event comes before the model says anything."""
    if isinstance(event, Mapping):
        return event.keys() <= _SILENT_EVENTS
    kind = getattr(event, "type", None)
    if kind == "content_block_start":
        return getattr(getattr(event, "content_block", None), "type", None) in _SILENT_BLOCKS
    if kind in _PREAMBLE or (kind in _DELTAS and not event.delta):
        return True
    chunk = getattr(event, "chunk", event) if kind in ("chunk", None) else None
    choices = getattr(chunk, "choices", None)
    return isinstance(choices, list) and all(_is_silent(choice) for choice in choices)


def _is_silent(choice: Any) -> bool:
    delta = getattr(choice, "delta", None)
    said = any(getattr(delta, name, None) for name in _SAID)
    return not said and getattr(choice, "finish_reason", None) is None


def _text_of(event: Any) -> Iterator[str]:
    if getattr(event, "type", None) == "content_block_delta" and event.delta.type == "text_delta":
        yield event.delta.text


def _replay(head: list[Any], stream: Any) -> HostStream:
    replayed = HostStream(stream, head)
    if head and getattr(head[-1], "type", None) in REFUSALS:
        raise StreamRefused(head, replayed)
    return replayed
