"""The middleware: around every model call of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from compact.archive.recall import RecallTool
from compact.integrations.langchain.messages import View
from compact.integrations.shared import SessionId, conversations_of, observe, parted
from compact.runtime.manager import CompactManager


class CompactMiddleware(AgentMiddleware):
    """Sends what fits, and sends less when the provider refuses: `create_agent(..., middleware=[CompactMiddleware(manager)])`.

    The agent's state keeps the full history; the manager re-applies its last step to it on every call. The system prompt and
    the tools are counted, and the provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the `ModelRequest`. Without it, it is the run's `thread_id`; sub-agents
    inside one thread are told apart. With `recovery_tools`, the agent is given tools that read back what left its context;
    `tool_prefix` goes before their names, for agents that have a `read_file` of their own, as Deep Agents do.

    Raises, on a call, as `CompactManager.call` does.
    """

    def __init__(
        self,
        manager: CompactManager,
        session_id: SessionId = None,
        *,
        recovery_tools: bool = False,
        tool_prefix: str = "",
    ) -> None:
        super().__init__()
        self._manager = manager
        self._session_id = session_id
        self.tools: Sequence[BaseTool] = self._recovery_tools(tool_prefix) if recovery_tools else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.wrap_model_call`."""
        view = View(request.messages)
        name = self._name(request, view)

        def send(kept: Sequence[Any]) -> ModelResponse[Any]:
            return handler(self._request(request, view, name, kept))

        response: ModelResponse[Any] = self._manager.call(name, view.items, send, **_beside(request))
        self._observe(name, response)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.awrap_model_call`."""
        view = View(request.messages)
        name = self._name(request, view)

        async def send(kept: Sequence[Any]) -> ModelResponse[Any]:
            return await handler(self._request(request, view, name, kept))

        response: ModelResponse[Any] = await self._manager.acall(name, view.items, send, **_beside(request))
        self._observe(name, response)
        return response

    def _request(
        self, request: ModelRequest[Any], view: View, name: str, kept: Sequence[Any]
    ) -> ModelRequest[Any]:
        conversations_of(self._manager).note(name, view.items, kept)
        return request if kept is view.items else request.override(messages=view.back(parted(kept)))

    def _name(self, request: ModelRequest[Any], view: View) -> str:
        if callable(self._session_id):
            return self._session_id(request)
        if self._session_id is not None:
            return self._session_id
        return conversations_of(self._manager).named(view.items, _thread)

    def _observe(self, name: str, response: ModelResponse[Any]) -> None:
        for message in getattr(response, "result", ()):
            if isinstance(message, AIMessage):
                observe(self._manager, name, message.usage_metadata)

    def _recovery_tools(self, prefix: str) -> list[BaseTool]:
        own = self._session_id if isinstance(self._session_id, str) else None

        def langchain_tool(tool: RecallTool) -> BaseTool:
            def invoke(**arguments: Any) -> str:
                answer: str = self._manager.recovery_tools(own or _thread())[tool.name].answer(arguments)
                return answer

            return StructuredTool.from_function(
                invoke,
                name=f"{prefix}{tool.name}",
                description=tool.description,
                args_schema=dict(tool.schema),
            )

        return [langchain_tool(tool) for tool in self._manager.recovery_tools(own).values()]


def _thread() -> str:
    """The `thread_id` of the run that this is called in."""
    try:
        found = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # outside a graph
        found = None
    return str(found) if found else "langchain"


def _beside(request: ModelRequest[Any]) -> dict[str, Any]:
    system = None if request.system_message is None else request.system_message.content
    return {
        "tools": [convert_to_openai_tool(tool) for tool in request.tools] or None,
        "system": system,
        "dialect": "chat",
    }
