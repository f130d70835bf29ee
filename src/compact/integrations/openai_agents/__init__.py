"""OpenAI Agents SDK: a filter, a session and a model. Each works alone; together they share the same sessions.

    compact_filter    RunConfig(call_model_input_filter=...)   every model call, also inside one long run
    CompactSession    Runner.run(..., session=...)             what a stored session returns at the start of a run
    CompactModel      Agent(model=...)                         every model call, and overflow is recovered

The SDK's items are OpenAI Responses items. What a filter returns is not stored: the SDK passes the full history again on
every call, and the manager re-applies its last step to it.
"""

from __future__ import annotations

from compact.errors import MissingExtra

try:
    import agents as _agents  # noqa: F401
except ImportError as problem:
    raise MissingExtra.named("agents", "The integration with the OpenAI Agents SDK") from problem

from compact.integrations.openai_agents.agent_tools import recall_tools
from compact.integrations.openai_agents.input_filter import CompactHooks, compact_filter
from compact.integrations.openai_agents.model import CompactModel
from compact.integrations.openai_agents.stored_session import CompactSession

recovery_tools = recall_tools
"""The former name of `recall_tools`."""

__all__ = [
    "CompactHooks",
    "CompactModel",
    "CompactSession",
    "compact_filter",
    "recall_tools",
    "recovery_tools",
]
