"""Who asks the provider for its own compaction: the host's client, the host's model call, or an endpoint with a key."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from compact.config import CompactConfig
from compact.engine.call import Call
from compact.errors import CompactError
from compact.messages.protecting import unmarked
from compact.summaries import native_endpoint
from compact.summaries.native import (
    Provider,
    anthropic_body,
    openai_body,
    read_anthropic,
    read_openai,
    trigger_items,
)
from compact.summaries.request import Reply, SummaryRequest

F = TypeVar("F", bound=Callable[..., Any])
SendNative: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Sends the body of a compaction request. Returns the provider's reply, or an awaitable of it."""
_NO_CLIENT = (
    "there is no client to ask the provider with: use manager.wrap(client), a model_call with an attribute `compact`, or "
    "summary.base_url with a key"
)


def able_to_compact(model_call: F, send: SendNative | None) -> F:
    """Let a model call also send compaction requests."""
    model_call.compact = send  # type: ignore[attr-defined]
    return model_call


def sender_of(model_call: Callable[[Any], Any], dialect: str | None) -> SendNative | None:
    """How a host's model call sends a compaction request: by its attribute `compact`.

    Without one, OpenAI's Responses are asked by a list that ends in `compaction_trigger`.
    """
    if hasattr(model_call, "compact") or dialect not in (None, "responses"):
        send: SendNative | None = getattr(model_call, "compact", None)
        return send

    def ask(body: Mapping[str, Any]) -> Any:
        if "input" not in body:
            raise CompactError(_NO_CLIENT)
        return model_call(trigger_items(body["input"]))

    return ask


def native_summarizer(
    config: CompactConfig, model: str, provider: Provider, call: Call, send: SendNative | None
) -> Callable[[SummaryRequest], Reply | Awaitable[Reply]]:
    """A summarizer that asks the provider about the messages of a request.

    Raises:
        CompactError: there is nobody to ask with.
    """
    ask = send or _endpoint_of(config, provider)
    read = read_anthropic if provider == "anthropic" else read_openai

    def body_of(request: SummaryRequest) -> dict[str, Any]:
        items = unmarked(request.items)  # marks that only compact reads
        if provider == "anthropic":
            return anthropic_body(model, items, call.system, call.tools, config.summary.max_tokens)
        return openai_body(model, items, call.system)

    def summarize(request: SummaryRequest) -> Reply | Awaitable[Reply]:
        reply = ask(body_of(request))
        if not hasattr(reply, "__await__"):
            return read(reply)

        async def wait() -> Reply:
            return read(await reply)

        return wait()

    return summarize


def _endpoint_of(config: CompactConfig, provider: Provider) -> SendNative:
    """Ask `summary.base_url` with a key of the environment.

    Raises:
        CompactError: there is no address, or no key for it.
    """
    summary = config.summary
    problem = native_endpoint.why_no_endpoint(provider, summary.base_url, os.environ)
    if problem:
        raise CompactError(f"{_NO_CLIENT} ({problem})")
    address, timeout_s, most_bytes = summary.base_url or "", summary.timeout_s, summary.max_reply_bytes

    async def ask(body: Mapping[str, Any]) -> Any:
        return await native_endpoint.compact_natively(
            provider, address, body, timeout_s=timeout_s, most_bytes=most_bytes
        )

    return ask
