"""LangChain agents, and Deep Agents, which build on them: `create_agent(..., middleware=[CompactMiddleware(manager)])`."""

from __future__ import annotations

from compact.errors import MissingExtra

try:
    import langchain.agents.middleware as _middleware  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("langchain", "The integration with LangChain") from problem

from compact.integrations.langchain.agent_middleware import CompactMiddleware

__all__ = ["CompactMiddleware"]
