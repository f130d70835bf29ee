"""The middleware around every model call of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from compact.archive.recall import RecallTool
from compact.config import CompactConfig
from compact.integrations.calls import HostCall, observe, separate_roles
from compact.integrations.langchain.first_output import watched
from compact.integrations.langchain.langchain_view import LangChainView
from compact.integrations.managers import take_manager
from compact.integrations.offering import Offering, RecallChoice, RecallDue, describe_recall
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId, check_session_choice

_KIND = "langchain"
_MODEL_NAMES = ("model_name", "model", "model_id", "deployment_name")
"""Where chat models of different packages keep their name."""


class CompactMiddleware(AgentMiddleware):
    """Makes every request fit, and sends less if the provider refuses it: `create_agent(..., middleware=[CompactMiddleware(manager)])`.

    The agent's state keeps the full history; the manager re-applies its last step to it on every call. The system prompt
    and the tools are counted, and the provider's usage corrects the counts. The request's own model decides the window.

    In Deep Agents it takes the place of their own summarization, because it has the same `name`.

    `session_id` is a name, or a function that finds one in the `ModelRequest`. It defaults to the run's `thread_id`;
    sub-agents inside one thread are told apart. Without a thread, conversations are told apart by their contents.

    `recall_tools`: "auto" gives the agent tools that read back what left its context, and a prompt segment that
    explains them, once something left it; True from the first request on; False never. `tool_prefix` stands before
    their names; without one, "archive_" does if the agent has a tool of the same name. `recovery_tools` is the former
    name of `recall_tools`.

    `manager` may be a `CompactConfig`; the middleware's `manager` is then a new one.

    A call raises as `CompactManager.call` does. An error behind the first streamed output is raised as it is, because
    the output cannot be taken back.

    Raises:
        ConfigError: an argument is of the wrong kind.
    """

    def __init__(
        self,
        manager: CompactManager | CompactConfig | None = None,
        session_id: SessionId = None,
        *,
        recall_tools: RecallChoice = "auto",
        tool_prefix: str | None = None,
        recovery_tools: RecallChoice | None = None,
    ) -> None:
        super().__init__()
        self.manager = take_manager(manager, type(self).__name__)
        self._session_id = check_session_choice(session_id)
        choice = recall_tools if recovery_tools is None else recovery_tools
        self._offering = Offering(self.manager, choice, tool_prefix)

    @property
    def name(self) -> str:
        """The name of LangChain's summarization. Deep Agents put a middleware of this name in place of their own."""
        return "SummarizationMiddleware"

    # --- model calls

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.wrap_model_call`."""
        view, session_id = self._see(request)

        def send(prepared: ModelRequest[Any]) -> ModelResponse[Any] | _BrokenOff:
            with watched() as output:
                try:
                    return handler(prepared)
                except Exception as problem:
                    if output.seen:
                        return _BrokenOff(problem)
                    raise

        try:
            reply = self._prepare(request, view, session_id).run(send)
        except RecallDue:
            reply = self._prepare(request, view, session_id).run(send)
        return self._take(reply, session_id)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """See `AgentMiddleware.awrap_model_call`."""
        view, session_id = self._see(request)

        async def send(prepared: ModelRequest[Any]) -> ModelResponse[Any] | _BrokenOff:
            with watched() as output:
                try:
                    return await handler(prepared)
                except Exception as problem:
                    if output.seen:
                        return _BrokenOff(problem)
                    raise

        try:
            reply = await self._prepare(request, view, session_id).arun(send)
        except RecallDue:
            reply = await self._prepare(request, view, session_id).arun(send)
        return self._take(reply, session_id)

    def _see(self, request: ModelRequest[Any]) -> tuple[LangChainView, str]:
        view = LangChainView(request.messages)
        session_id = self.manager.resolver.resolve(
            view.items,
            session_id=self._session_id,
            call=request,
            given=_thread_id(),
            objects=request.messages,
            system=_content(request.system_message),
            kind=_KIND,
        )
        return view, session_id

    def _prepare(self, request: ModelRequest[Any], view: LangChainView, session_id: str) -> HostCall:
        offering = self._offering
        prefix = offering.choose_prefix({_tool_name(tool) for tool in request.tools})
        sent = self._with_recall(request, prefix) if offering.is_due(session_id) else request
        sent = self._with_mask(sent, session_id)

        def restore(kept: Sequence[Any]) -> ModelRequest[Any]:
            offering.check(session_id, kept, view.items)
            return sent.override(messages=view.back(separate_roles(kept)))

        return HostCall(
            manager=self.manager,
            session_id=session_id,
            items=view.items,
            original=sent,
            restore=restore,
            tools=[convert_to_openai_tool(tool) for tool in sent.tools] or None,
            system=_content(sent.system_message),
            model=_model_name(request.model),
        )

    def _with_mask(self, request: ModelRequest[Any], session_id: str) -> ModelRequest[Any]:
        """Mask the system prompt. Tools are code: if one has to be masked, the call raises."""
        system = request.system_message
        if system is None or self.manager.live is None:
            return request
        content = self.manager.mask(session_id, system.content)
        if content is system.content:
            return request
        return request.override(system_message=system.model_copy(update={"content": content}))

    def _with_recall(self, request: ModelRequest[Any], prefix: str) -> ModelRequest[Any]:
        tools = [_describe(tool, prefix) for tool in self._offering.tools.values()]
        message = _explain(request.system_message, prefix)
        return request.override(tools=[*request.tools, *tools], system_message=message)

    def _take(self, reply: ModelResponse[Any] | _BrokenOff, session_id: str) -> ModelResponse[Any]:
        """Learn from a reply: what its request cost, and which session its calls belong to.

        Raises:
            Exception: the reply broke off; what broke it.
        """
        if isinstance(reply, _BrokenOff):
            raise reply.problem
        for message in getattr(reply, "result", ()):
            if isinstance(message, AIMessage):
                observe(self.manager, session_id, message.usage_metadata)
                asked = [call["id"] for call in message.tool_calls if call["id"]]
                self.manager.resolver.note_calls(session_id, asked, message.id)
        return reply

    # --- calls of the recall tools

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """See `AgentMiddleware.wrap_tool_call`."""
        name = self._recall_name(request)
        return handler(request) if name is None else self._answer(request, name)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """See `AgentMiddleware.awrap_tool_call`."""
        name = self._recall_name(request)
        if name is None:
            return await handler(request)
        return await asyncio.to_thread(self._answer, request, name)

    def _recall_name(self, request: ToolCallRequest) -> str | None:
        """Return the recall tool that a call is for. A tool that the agent has itself is never ours."""
        if self._offering.choice is False or request.tool is not None:
            return None
        return self._offering.plain_name(request.tool_call["name"])

    def _answer(self, request: ToolCallRequest, name: str) -> ToolMessage:
        call = request.tool_call
        text = self._offering.answer(self._session_of(request), name, call["args"])
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"])

    def _session_of(self, request: ToolCallRequest) -> str | None:
        """Return the session of a tool call: that of its model call, or after a restart that of its list."""
        messages = _messages_of(request.state)
        call_id = request.tool_call["id"]
        for message in reversed(messages):
            if isinstance(message, AIMessage) and any(call["id"] == call_id for call in message.tool_calls):
                known = self.manager.resolver.find_noted(call_id or "", message.id)
                if known is not None:
                    return known
        return self.manager.resolver.find(
            LangChainView(messages).items,
            session_id=self._session_id,
            given=_thread_id(),
            objects=messages,
        )


@dataclass(frozen=True, slots=True)
class _BrokenOff:
    """A reply that began and ended in an error. The request was taken, so it is not made smaller and sent again."""

    problem: Exception


def _messages_of(state: Any) -> list[BaseMessage]:
    found = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", state)
    return [message for message in found if isinstance(message, BaseMessage)]


def _describe(tool: RecallTool, prefix: str) -> BaseTool:
    """Return a recall tool as LangChain shows it to a model. The middleware answers its calls."""

    def invoke(**arguments: Any) -> str:
        return tool.answer(arguments)

    return StructuredTool.from_function(
        invoke, name=f"{prefix}{tool.name}", description=tool.description, args_schema=dict(tool.schema)
    )


def _explain(message: SystemMessage | None, prefix: str) -> SystemMessage:
    """Return the system message with the prompt segment at its end."""
    if message is None:
        return SystemMessage(describe_recall(prefix, None))
    if isinstance(message.content, str):
        return message.model_copy(update={"content": describe_recall(prefix, message.content)})
    block = {"type": "text", "text": describe_recall(prefix, None)}
    return message.model_copy(update={"content": [*message.content, block]})


def _content(message: SystemMessage | None) -> Any:
    return None if message is None else message.content


def _tool_name(tool: Any) -> str:
    if isinstance(tool, dict):
        return str((tool.get("function") or tool).get("name"))
    return str(getattr(tool, "name", tool))


def _model_name(model: Any) -> str | None:
    """Return the name of a request's model. None: its class says it nowhere."""
    while hasattr(model, "bound"):  # with arguments bound to it
        model = model.bound
    names = (getattr(model, name, None) for name in _MODEL_NAMES)
    return next((name for name in names if isinstance(name, str) and name), None)


def _thread_id() -> Any:
    """Return the `thread_id` of the current run. None: it has none."""
    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # outside a graph
        return None
