"""Compaction requests of a wrapped client, and the beta header of requests that carry Anthropic's block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.integrations.requests import ANTHROPIC, RESPONSES, RequestShape, sendable
from compact.messages.compaction_blocks import begins_with_block
from compact.runtime.native_asking import SendNative
from compact.summaries.native import BETA

_CARRIED = ("extra_headers", "extra_query", "timeout", "service_tier", "prompt_cache_key")
"""Fields of the host's own request that a compaction request takes over."""
_HEADER = "anthropic-beta"


def compacting(client: Any, shape: RequestShape, request: Mapping[str, Any]) -> SendNative | None:
    """How this client asks for a compaction beside a request of the host; None if it does not."""
    carried = {name: request[name] for name in _CARRIED if name in request}
    if shape is RESPONSES:

        def ask_openai(body: Mapping[str, Any]) -> Any:
            return client.responses.compact(**carried, **{**body, "input": list(sendable(body["input"]))})

        return ask_openai
    if shape is not ANTHROPIC or _compacts_by_itself(request):
        return None
    carried.pop("prompt_cache_key", None)
    thinking = request.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") == "adaptive":
        carried["thinking"] = thinking

    def ask_anthropic(body: Mapping[str, Any]) -> Any:
        asked = {**carried, **body, "messages": list(sendable(body["messages"]))}
        betas = request.get("betas")
        return client.beta.messages.create(
            **{**asked, "betas": [*(betas if isinstance(betas, list) else ()), BETA]}
        )

    return ask_anthropic


def _compacts_by_itself(request: Mapping[str, Any]) -> bool:
    """Whether the provider compacts at a threshold, beside which it takes no signed block."""
    settings = request.get("context_management")
    edits = settings.get("edits") if isinstance(settings, Mapping) else None
    return any(str(edit.get("type")).startswith("compact_") for edit in edits or ())


def with_beta(request: dict[str, Any], messages: Any, *, takes_betas: bool) -> dict[str, Any]:
    """The request with the header that a list with Anthropic's block needs; the same one without a block."""
    if not begins_with_block(messages):
        return request
    betas = request.get("betas")
    if takes_betas:
        listed = list(betas) if isinstance(betas, list | tuple) else []
        return request if BETA in listed else {**request, "betas": [*listed, BETA]}
    headers = dict(request.get("extra_headers") or {})
    name = next((each for each in headers if each.lower() == _HEADER), _HEADER)
    listed = [each for each in str(headers.get(name) or "").split(",") if each]
    headers[name] = ",".join(dict.fromkeys([*listed, BETA]))
    return {**request, "extra_headers": headers}
