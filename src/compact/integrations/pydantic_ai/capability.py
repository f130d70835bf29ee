"""The capability: a model that sends what fits, around whatever model serves a request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset

from compact.archive.recall import RecallTool
from compact.integrations.pydantic_ai.messages import View
from compact.integrations.shared import SessionId, conversations_of, observe, parted
from compact.runtime.manager import CompactManager


@dataclass
class CompactHistory(AbstractCapability[Any]):
    """Sends what fits, and sends less when the provider refuses: `Agent(..., capabilities=[CompactHistory(manager)])`.

    The run's message history stays whole; the manager re-applies its last step to it on every request. Instructions and tools
    are counted, and the provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the list of messages. Without it, it is the run's `conversation_id`.
    With `recovery_tools`, the agent is given tools that read back what left its context (this needs a `session_id` that is a
    name); `tool_prefix` goes before their names.

    Raises, on a request, as `CompactManager.acall` does.
    """

    manager: CompactManager
    session_id: SessionId = None
    recovery_tools: bool = False
    tool_prefix: str = ""

    def get_wrapper_model(self, model: Model) -> Model:
        """See `AbstractCapability.get_wrapper_model`."""
        return _CompactModel(model, self.manager, self.session_id)

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """See `AbstractCapability.get_toolset`."""
        if not self.recovery_tools:
            return None
        return FunctionToolset([self._tool(name) for name in self.manager.recovery_tools()])

    def _tool(self, name: str) -> Tool[Any]:
        def recovery_tool(session_id: str | None) -> RecallTool:
            found: RecallTool = self.manager.recovery_tools(session_id)[name]
            return found

        def invoke(ctx: RunContext[Any], **arguments: Any) -> str:
            own = self.session_id if isinstance(self.session_id, str) else ctx.conversation_id
            return recovery_tool(own).answer(arguments)

        shown = recovery_tool(None)
        return Tool.from_schema(
            invoke, f"{self.tool_prefix}{name}", shown.description, dict(shown.schema), takes_ctx=True
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it holds a manager."""
        return None


class _CompactModel(WrapperModel):
    def __init__(self, wrapped: Model, manager: CompactManager, session_id: SessionId) -> None:
        super().__init__(wrapped)
        self._manager = manager
        self._session_id = session_id

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def send(sent: list[ModelMessage]) -> ModelResponse:
            return await self.wrapped.request(sent, model_settings, model_request_parameters)

        response: ModelResponse
        name, response = await self._call(messages, model_request_parameters, send)
        observe(self._manager, name, response.usage)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with AsyncExitStack() as stack:

            async def send(sent: list[ModelMessage]) -> StreamedResponse:
                stream = self.wrapped.request_stream(
                    sent, model_settings, model_request_parameters, run_context
                )
                return await stack.enter_async_context(stream)

            name, response = await self._call(messages, model_request_parameters, send)
            yield response
            observe(self._manager, name, response.usage)

    async def _call(
        self,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
        send: Callable[[list[ModelMessage]], Awaitable[Any]],
    ) -> tuple[str, Any]:
        view = View(messages)
        name = self._name(messages, view)

        async def send_kept(kept: Sequence[Any]) -> Any:
            conversations_of(self._manager).note(name, view.items, kept)
            return await send(messages if kept is view.items else view.back(parted(kept)))

        reply = await self._manager.acall(
            name,
            view.items,
            send_kept,
            _schemas(parameters) or None,
            system=_instructions(messages, parameters),
            dialect="chat",
        )
        return name, reply

    def _name(self, messages: list[ModelMessage], view: View) -> str:
        if callable(self._session_id):
            return self._session_id(messages)
        if self._session_id is not None:
            return self._session_id
        told = next((m.conversation_id for m in reversed(messages) if m.conversation_id), None)
        return told or conversations_of(self._manager).named(view.items, lambda: "pydantic-ai")


def _schemas(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    tools = [*parameters.function_tools, *parameters.output_tools]
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in tools
    ]


def _instructions(messages: list[ModelMessage], parameters: ModelRequestParameters) -> str | None:
    if parameters.instruction_parts:
        return "\n\n".join(part.content for part in parameters.instruction_parts)
    return next((text for m in reversed(messages) if (text := getattr(m, "instructions", None))), None)
