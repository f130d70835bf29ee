"""The provider's API at `summary.base_url` as the one that compacts, when no client of the host is known.

Keys belong to hosts, as `endpoint_client` says. `ANTHROPIC_API_KEY` goes to Anthropic, or to the host that `ANTHROPIC_BASE_URL` names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from compact.errors import MissingExtra
from compact.redaction.destinations import Origin, is_loopback
from compact.summaries.endpoint_client import OWN_KEY, open_client, read_bounded, why_no_key
from compact.summaries.native import BETA, Provider

_ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
_ANTHROPIC_URL = "ANTHROPIC_BASE_URL"
_ANTHROPIC_HOST = "api.anthropic.com"


def why_no_endpoint(provider: Provider, base_url: str | None, environment: Mapping[str, str]) -> str:
    """Why the provider cannot be asked with the keys that there are. Empty if it can.

    A key alone is not enough: a host that does not know that it is used sends later requests without the beta header.
    """
    if base_url is None:
        return "there is no summary.base_url"
    if find_spec(provider) is None:
        return str(MissingExtra.named("llm", "a summary by the provider"))
    if provider == "openai":
        return why_no_key(base_url, environment)
    name, _ = _anthropic_key(base_url, environment)
    if not name:
        return f"there is no key in {OWN_KEY} or {_ANTHROPIC_KEY} for it"
    target = Origin.of(base_url)
    return "" if target and target.is_private else f"{name} would be sent unencrypted; use https"


async def compact_natively(
    provider: Provider, base_url: str, body: Mapping[str, Any], *, timeout_s: float, most_bytes: int
) -> Any:
    """Send a compaction request. All errors of the client are raised."""
    if provider == "openai":
        async with open_client(base_url, timeout_s, most_bytes) as client:
            return await client.responses.compact(**body)
    import anthropic

    target = Origin.of(base_url)
    client = anthropic.AsyncAnthropic(
        api_key=_anthropic_key(base_url, os.environ)[1],
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        default_headers={"Accept-Encoding": "identity"},
        http_client=anthropic.DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=target is None or not is_loopback(target.host),
            event_hooks={"response": [partial(read_bounded, most_bytes)]},
        ),
    )
    async with client:
        return await client.beta.messages.create(**body, betas=[BETA])


def _anthropic_key(base_url: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The name and the value of the key that belongs to the endpoint; both empty if there is none."""
    target = Origin.of(base_url)
    home = Origin.of(environment.get(_ANTHROPIC_URL) or f"https://{_ANTHROPIC_HOST}")
    for name in (OWN_KEY, _ANTHROPIC_KEY):
        key = environment.get(name)
        if key and target and (name == OWN_KEY or target == home):
            return name, key
    return "", ""
