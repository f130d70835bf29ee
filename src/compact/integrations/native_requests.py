"""Compaction requests of a wrapped client, and the beta header of requests that carry Anthropic's block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.errors import CompactError
from compact.integrations.requests import ANTHROPIC, RESPONSES, RequestShape
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
            return client.responses.compact(**carried, **body)

        return ask_openai
    if shape is not ANTHROPIC:
        return None
    if _compacts_by_itself(request):
        return _leave_to_provider
    carried.pop("prompt_cache_key", None)
    thinking = request.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") == "adaptive":
        carried["thinking"] = thinking
    if "betas" in request:
        carried["betas"] = request["betas"]

    def ask_anthropic(body: Mapping[str, Any]) -> Any:
        return client.beta.messages.create(**_with_beta({**carried, **body}, takes_betas=True))

    return ask_anthropic


def _compacts_by_itself(request: Mapping[str, Any]) -> bool:
    """Whether the provider compacts at a threshold, beside which it takes no signed block."""
    settings = request.get("context_management")
    edits = settings.get("edits") if isinstance(settings, Mapping) else None
    return any(str(dict(edit).get("type")).startswith("compact_") for edit in edits or ())


def _leave_to_provider(_: Mapping[str, Any]) -> Any:
    raise CompactError("the request compacts at a threshold by itself (context_management)")


def with_beta(request: dict[str, Any], messages: Any, *, takes_betas: bool) -> dict[str, Any]:
    """The request with the header that a list with Anthropic's block needs; the same one without a block."""
    return _with_beta(request, takes_betas=takes_betas) if begins_with_block(messages) else request


def _with_beta(request: dict[str, Any], *, takes_betas: bool) -> dict[str, Any]:
    headers = dict(request.get("extra_headers") or {})
    name = next((each for each in headers if each.lower() == _HEADER), None)
    if name is None and takes_betas:  # a header of the host's own would win over these
        betas = request.get("betas")
        listed = list(betas) if isinstance(betas, list | tuple) else []
        return request if BETA in listed else {**request, "betas": [*listed, BETA]}
    listed = [each.strip() for each in str(headers.get(name or _HEADER) or "").split(",")]
    headers[name or _HEADER] = ",".join(dict.fromkeys([*filter(None, listed), BETA]))
    return {**request, "extra_headers": headers}
