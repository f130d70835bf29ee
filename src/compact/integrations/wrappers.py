"""The client packages that `CompactManager.wrap` knows. What wraps a client is loaded when one is wrapped."""

from __future__ import annotations

from typing import Any

from compact.runtime.manager import CompactManager
from compact.runtime.wrapping import register


def _wrap_openai_or_anthropic(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    from compact.integrations import clients

    return clients.wrap(manager, client, session_id)


def _wrap_google(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    from compact.integrations import google_genai

    return google_genai.wrap(manager, client, session_id)


def _wrap_botocore(manager: CompactManager, client: Any, session_id: str | None) -> Any:
    from compact.integrations import bedrock

    return bedrock.wrap(manager, client, session_id)


register("openai", _wrap_openai_or_anthropic)
register("anthropic", _wrap_openai_or_anthropic)
register("google", _wrap_google)
register("botocore", _wrap_botocore)
