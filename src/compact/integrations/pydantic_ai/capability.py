"""The capability: a model wrapper that makes every request fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
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
from compact.integrations.calls import HostCall, separate_roles
from compact.integrations.pydantic_ai.pydantic_view import PydanticView
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId


@dataclass
class CompactHistory(AbstractCapability[Any]):
    """Makes every request fit, and sends less if the provider refuses it: `Agent(..., capabilities=[CompactHistory(manager)])`.

    The run's message history stays complete; the manager re-applies its last step to it on every request. Instructions
    and tools are counted, and the provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the list of messages. It defaults to the run's
    `conversation_id`. With `recovery_tools`, the agent gets tools that read back what left its context: of the
    session that a string `session_id` names, else of the run's `conversation_id`. `tool_prefix` is put before their names.

    A request raises as `CompactManager.acall` does.
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
        return FunctionToolset([self._tool(tool) for tool in self.manager.recall_tools().values()])

    def _tool(self, tool: RecallTool) -> Tool[Any]:
        def invoke(ctx: RunContext[Any], **arguments: Any) -> str:
            find = self.manager.resolver.find
            own = find(session_id=self.session_id, given=ctx.conversation_id)
            return self.manager.recall_tools(own)[tool.name].answer(arguments)

        return Tool.from_schema(
            invoke, f"{self.tool_prefix}{tool.name}", tool.description, dict(tool.schema), takes_ctx=True
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a manager cannot be serialized."""
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
        call = self._prepare(messages, model_request_parameters)
        response: ModelResponse = await call.arun(
            lambda sent: self.wrapped.request(sent, model_settings, model_request_parameters)
        )
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = self._prepare(messages, model_request_parameters)
        async with AsyncExitStack() as stack:
            response = await call.arun(
                lambda sent: stack.enter_async_context(
                    self.wrapped.request_stream(sent, model_settings, model_request_parameters, run_context)
                )
            )
            yield response
            call.observe(response)

    def _prepare(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> HostCall:
        view = PydanticView(messages)
        told = next((m.conversation_id for m in reversed(messages) if m.conversation_id), None)
        name = self._manager.resolver.resolve(
            view.items,
            session_id=self._session_id,
            call=messages,
            given=told,
            objects=messages,
            kind="pydantic-ai",
        )
        return HostCall(
            manager=self._manager,
            session_id=name,
            items=view.items,
            original=messages,
            restore=lambda kept: view.back(separate_roles(kept)),
            tools=_schemas(parameters) or None,
            system=_instructions(messages, parameters),
        )


def _schemas(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]


def _instructions(messages: list[ModelMessage], parameters: ModelRequestParameters) -> str | None:
    if parameters.instruction_parts:
        return "\n\n".join(part.content for part in parameters.instruction_parts)
    return next((text for m in reversed(messages) if (text := getattr(m, "instructions", None))), None)
