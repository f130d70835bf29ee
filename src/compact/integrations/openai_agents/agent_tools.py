"""The schemas of an agent's tools, which are counted, and recall tools for the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents import (
    Agent,
    AgentOutputSchema,
    AgentOutputSchemaBase,
    FunctionTool,
    Handoff,
    RunContextWrapper,
    handoff,
)
from agents.tool import Tool
from agents.tool_context import ToolContext

from compact.archive.recall import RecallTool, no_session, run
from compact.integrations.calls import check_manager
from compact.runtime.manager import CompactManager

_REMEMBERED_AGENTS = 64
_REMEMBERED_SESSIONS = 64
"""Sessions whose search index is kept."""


def schemas(
    tools: Iterable[Tool], handoffs: Iterable[Handoff[Any, Any]], output: AgentOutputSchemaBase | None
) -> list[Any]:
    """Return everything that a request carries beside its items and instructions, as it is sent."""
    found: list[Any] = [_schema(tool) for tool in tools]
    found += [
        _function(each.tool_name, each.tool_description, each.input_json_schema, each.strict_json_schema)
        for each in handoffs
    ]
    if output is not None and not output.is_plain_text():
        found.append({"type": "json_schema", "name": "final_output", "schema": output.json_schema()})
    return found


def _schema(tool: Tool) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        return _function(tool.name, tool.description, tool.params_json_schema, tool.strict_json_schema)
    # A tool of the provider: a type and a few settings.
    settings = getattr(tool, "tool_config", None) or getattr(tool, "description", None)
    return {"type": tool.name, "settings": settings}


def _function(name: str, description: str, parameters: Any, strict: bool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": strict,
    }


@dataclass(slots=True)
class AgentTools:
    """Finds what agents offer their model. Asks the MCP servers of each agent once."""

    _from_servers: dict[int, tuple[Agent[Any], list[Tool]]] = field(default_factory=dict)

    async def schemas_of(self, agent: Agent[Any], context: Any) -> list[Any]:
        """Return the schemas of an agent's tools, handoffs and output type."""
        own = [tool for tool in agent.tools if getattr(tool, "is_enabled", True) is not False]
        handoffs = [each if isinstance(each, Handoff) else handoff(each) for each in agent.handoffs]
        enabled = [each for each in handoffs if each.is_enabled is not False]
        return schemas([*own, *await self._server_tools(agent, context)], enabled, _output_schema(agent))

    async def _server_tools(self, agent: Agent[Any], context: Any) -> list[Tool]:
        if not agent.mcp_servers:
            return []
        known = self._from_servers.get(id(agent))
        if known is None:
            known = (agent, await agent.get_mcp_tools(RunContextWrapper(context)))
            self._from_servers[id(agent)] = known
            while len(self._from_servers) > _REMEMBERED_AGENTS:
                del self._from_servers[next(iter(self._from_servers))]
        return known[1]


def _output_schema(agent: Agent[Any]) -> AgentOutputSchemaBase | None:
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    return (
        kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind, strict_json_schema=False)
    )


def recall_tools(
    manager: CompactManager, session_id: str | None = None, *, prefix: str = ""
) -> list[FunctionTool]:
    """Return tools that read back what left the context: `Agent(tools=[..., *recall_tools(manager)])`.

    They read the session of the run that calls them, or the one that `session_id` names. `prefix` is put before their
    names, for an agent with a `read_file` of its own. The filter and the model explain them in the instructions.

    Raises:
        ConfigError: `manager` is not a manager, or the id is not a non-empty string.
    """
    resolver = check_manager(manager, "recall_tools").resolver
    tools = manager.recall_tools(session_id)
    tools_of = lru_cache(maxsize=_REMEMBERED_SESSIONS)(manager.recall_tools)

    def make(tool: RecallTool) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            # The SDK runs its own tools, so the newest call of the run's task is that of the run.
            name = session_id or resolver.find_asked(context.tool_call_id, inherited=True)
            if name is None:
                return no_session(tool.name)
            return await asyncio.to_thread(run, tools_of(name), tool.name, arguments)

        return FunctionTool(
            name=f"{prefix}{tool.name}",
            description=tool.description,
            params_json_schema=dict(tool.schema),
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return [make(tool) for tool in tools.values()]
