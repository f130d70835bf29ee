"""The middleware around every model call of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from compact.archive.recall import RecallTool
from compact.integrations.calls import HostCall, observe, separate_roles
from compact.integrations.langchain.langchain_view import LangChainView
from compact.runtime.manager import CompactManager
from compact.runtime.recalling import follow_running
from compact.runtime.resolver import SessionId


class CompactMiddleware(AgentMiddleware):
    """Makes every request fit, and sends less if the provider refuses it: `create_agent(..., middleware=[CompactMiddleware(manager)])`.

    The agent's state keeps the full history; the manager re-applies its last step to it on every call. The system prompt
    and the tools are counted, and the provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the `ModelRequest`. It defaults to the run's `thread_id`;
    sub-agents inside one thread are told apart. With `recovery_tools`, the agent gets tools that read back what left its
    context. `tool_prefix` is put before their names, for agents with a `read_file` of their own, such as Deep Agents.

    A call raises as `CompactManager.call` does.
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
        self.tools: Sequence[BaseTool] = self._recall_tools(tool_prefix) if recovery_tools else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.wrap_model_call`."""
        call = self._prepare(request)
        return _observe_reply(call, call.run(lambda messages: handler(_with_messages(request, messages))))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.awrap_model_call`."""
        call = self._prepare(request)
        reply = await call.arun(lambda messages: handler(_with_messages(request, messages)))
        return _observe_reply(call, reply)

    def _prepare(self, request: ModelRequest[Any]) -> HostCall:
        view = LangChainView(request.messages)
        name = self._manager.resolver.resolve(
            view.items,
            session_id=self._session_id,
            call=request,
            given=_thread_id(),
            objects=request.messages,
            kind="langchain",
        )
        return HostCall(
            manager=self._manager,
            session_id=name,
            items=view.items,
            original=request.messages,
            restore=lambda kept: view.back(separate_roles(kept)),
            tools=[convert_to_openai_tool(tool) for tool in request.tools] or None,
            system=None if request.system_message is None else request.system_message.content,
        )

    def _recall_tools(self, prefix: str) -> list[BaseTool]:
        resolver = self._manager.resolver

        def find() -> str | None:
            return resolver.find(session_id=self._session_id, given=_thread_id())

        def make(tool: RecallTool) -> BaseTool:
            def invoke(**arguments: Any) -> str:
                return tool.answer(arguments)

            return StructuredTool.from_function(
                invoke,
                name=f"{prefix}{tool.name}",
                description=tool.description,
                args_schema=dict(tool.schema),
            )

        return [make(tool) for tool in follow_running(self._manager.archive, find).values()]


def _with_messages(request: ModelRequest[Any], messages: Any) -> ModelRequest[Any]:
    return request if messages is request.messages else request.override(messages=messages)


def _observe_reply(call: HostCall, reply: ModelResponse[Any]) -> ModelResponse[Any]:
    for message in getattr(reply, "result", ()):
        if isinstance(message, AIMessage):
            observe(call.manager, call.session_id, message.usage_metadata)
    return reply


def _thread_id() -> Any:
    """Return the `thread_id` of the current run, or None."""
    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # outside a graph
        return None
