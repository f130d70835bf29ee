"""The capability: a model wrapper that makes every request fit, and the recall tools beside the agent's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset

from compact.archive.recall import RecallTool, offered_prefix
from compact.config import CompactConfig
from compact.integrations.calls import HostCall, separate_roles
from compact.integrations.managers import take_manager
from compact.integrations.offering import Offering, RecallChoice, RecallDue, describe_recall
from compact.integrations.pydantic_ai.pydantic_view import PydanticView
from compact.runtime.manager import CompactManager
from compact.runtime.overflow.streams import Proxy
from compact.runtime.resolver import SessionId, check_session_choice

_KIND = "pydantic-ai"


@dataclass
class CompactHistory(AbstractCapability[Any]):
    """Makes every request fit, and sends less if the provider refuses it: `Agent(..., capabilities=[CompactHistory(manager)])`.

    The run's message history stays complete; the manager re-applies its last step to it on every request. Instructions
    and tools are counted, and the provider's usage corrects the counts. The request's own model decides the window.

    `session_id` is a name, or a function that finds one in the list of messages. It defaults to the run's
    `conversation_id`.

    `recall_tools`: "auto" gives the agent tools that read back what left its context, and instructions that explain
    them, once something left it; True from the first request on; False never. `tool_prefix` stands before their names;
    without one, "archive_" does if the agent has a tool of the same name. `recovery_tools` is the former name of
    `recall_tools`.

    `manager` may be a `CompactConfig`; the capability's `manager` is then a new one.

    A request raises as `CompactManager.acall` does.

    Raises:
        ConfigError: an argument is of the wrong kind.
    """

    manager: CompactManager | CompactConfig | None = None
    session_id: SessionId = None
    recall_tools: RecallChoice = "auto"
    tool_prefix: str | None = None
    recovery_tools: RecallChoice | None = None
    _offering: Offering = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.manager = take_manager(self.manager, type(self).__name__)
        self.session_id = check_session_choice(self.session_id)
        choice = self.recall_tools if self.recovery_tools is None else self.recovery_tools
        self._offering = Offering(self.manager, choice, self.tool_prefix)

    def get_wrapper_model(self, model: Model) -> Model:
        """See `AbstractCapability.get_wrapper_model`."""
        return _CompactModel(model, self._manager, self.session_id, self._offering)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """See `AbstractCapability.get_wrapper_toolset`."""
        if self._offering.choice is False:
            return None
        return _RecallToolset(toolset, self._manager, self.session_id, self._offering)

    @property
    def _manager(self) -> CompactManager:
        return take_manager(self.manager, type(self).__name__)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a manager cannot be serialized."""
        return None


@dataclass
class _RecallToolset(WrapperToolset[Any]):
    """The agent's tools and the recall tools. Until these are due, the model wrapper leaves them out of the requests."""

    manager: CompactManager
    session_id: SessionId
    offering: Offering

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        prefix = self.offering.choose_prefix(tools)
        own = FunctionToolset([self._make(tool, prefix) for tool in self.offering.tools.values()])
        return {**tools, **await own.get_tools(ctx)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        toolset = tool.toolset if isinstance(tool.toolset, FunctionToolset) else self.wrapped
        plain = self.offering.plain_name(name)
        is_own = plain is not None and tool.tool_def.description == self.offering.tools[plain].description
        return await (toolset if is_own else self.wrapped).call_tool(name, tool_args, ctx, tool)

    def _make(self, tool: RecallTool, prefix: str) -> Tool[Any]:
        def invoke(ctx: RunContext[Any], **arguments: Any) -> str:
            return self.offering.answer(self._session_of(ctx), tool.name, arguments)

        return Tool.from_schema(
            invoke, f"{prefix}{tool.name}", tool.description, dict(tool.schema), takes_ctx=True
        )

    def _session_of(self, ctx: RunContext[Any]) -> str | None:
        """Return the session of a run, as its requests name it."""
        messages, own = list(ctx.messages), self.session_id
        return self.manager.resolver.find(
            PydanticView(messages).items,
            session_id=own(messages) if callable(own) else own,
            given=_conversation_id(messages) or ctx.conversation_id,
            objects=messages,
        )


class _CompactModel(WrapperModel):
    def __init__(
        self, wrapped: Model, manager: CompactManager, session_id: SessionId, offering: Offering
    ) -> None:
        super().__init__(wrapped)
        self._manager = manager
        self._session_id = session_id
        self._offering = offering

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def send(call: _Prepared) -> ModelResponse:
            response: ModelResponse = await call.host.arun(
                lambda sent: self.wrapped.request(sent, model_settings, call.parameters)
            )
            return response

        view, session_id = self._see(messages)
        try:
            return await send(self._prepare(view, session_id, model_request_parameters))
        except RecallDue:
            return await send(self._prepare(view, session_id, model_request_parameters))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with AsyncExitStack() as stack:

            async def send(call: _Prepared) -> Any:
                async def open_stream(sent: list[ModelMessage]) -> _BegunResponse:
                    async with AsyncExitStack() as attempt:
                        response = await attempt.enter_async_context(
                            self.wrapped.request_stream(sent, model_settings, call.parameters, run_context)
                        )
                        begun = await _BegunResponse.begin(response)
                        stack.push_async_exit(attempt.pop_all())
                        return begun

                return await call.host.arun(open_stream)

            view, session_id = self._see(messages)
            call = self._prepare(view, session_id, model_request_parameters)
            try:
                response = await send(call)
            except RecallDue:
                call = self._prepare(view, session_id, model_request_parameters)
                response = await send(call)
            yield response
            call.host.observe(response)

    def _see(self, messages: list[ModelMessage]) -> tuple[PydanticView, str]:
        view = PydanticView(messages)
        session_id = self._manager.resolver.resolve(
            view.items,
            session_id=self._session_id,
            call=messages,
            given=_conversation_id(messages),
            objects=messages,
            kind=_KIND,
        )
        return view, session_id

    def _prepare(self, view: PydanticView, session_id: str, parameters: ModelRequestParameters) -> _Prepared:
        offering = self._offering
        prefix = offered_prefix(_schemas(parameters))
        if prefix is not None:
            is_due = offering.is_due(session_id)
            parameters = (_explain if is_due else _without_recall)(parameters, view.messages, prefix)
        parameters = self._with_mask(parameters, session_id)

        def restore(kept: Any) -> list[ModelMessage]:
            if prefix is not None:
                offering.check(session_id, kept, view.items)
            return view.back(separate_roles(kept))

        host = HostCall(
            manager=self._manager,
            session_id=session_id,
            items=view.items,
            original=view.messages,
            restore=restore,
            tools=_schemas(parameters) or None,
            system=_instructions(view.messages, parameters),
            model=self.wrapped.model_name,
        )
        return _Prepared(host, parameters)

    def _with_mask(self, parameters: ModelRequestParameters, session_id: str) -> ModelRequestParameters:
        """Mask the instructions. Tools are code: if one has to be masked, the request raises."""
        if self._manager.live is None or not parameters.instruction_parts:
            return parameters
        parts = [
            replace(part, content=self._manager.mask(session_id, part.content))
            for part in parameters.instruction_parts
        ]
        return replace(parameters, instruction_parts=parts)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request that is ready to be sent."""

    host: HostCall
    parameters: ModelRequestParameters


class _BegunResponse(Proxy):
    """A streamed response whose first event was read ahead, so that a refusal shows while a retry is possible."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the response, so that `isinstance` still holds."""
        return type(self._target)

    def __init__(self, response: StreamedResponse, events: AsyncIterator[Any]) -> None:
        super().__init__(response)
        self._events = events

    @classmethod
    async def begin(cls, response: StreamedResponse) -> _BegunResponse:
        """Read up to the first event. Raises what the provider's refusal raises."""
        first, events = [], aiter(response)
        async for event in events:
            first.append(event)
            break
        return cls(response, _chain(first, events))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events


async def _chain(first: list[Any], rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    for event in first:
        yield event
    async for event in rest:
        yield event


def _conversation_id(messages: Sequence[ModelMessage]) -> str | None:
    return next((m.conversation_id for m in reversed(messages) if m.conversation_id), None)


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


def _without_recall(
    parameters: ModelRequestParameters, _messages: Any, prefix: str
) -> ModelRequestParameters:
    names = {f"{prefix}{name}" for name in ("read_file", "grep", "ls", "search")}
    return replace(
        parameters, function_tools=[tool for tool in parameters.function_tools if tool.name not in names]
    )


def _explain(
    parameters: ModelRequestParameters, messages: Sequence[ModelMessage], prefix: str
) -> ModelRequestParameters:
    """Return the parameters with the prompt segment behind the agent's own instructions."""
    parts = parameters.instruction_parts
    if parts is None:
        own = _instructions(messages, parameters)
        parts = [] if own is None else [InstructionPart(own)]
    return replace(
        parameters, instruction_parts=[*parts, InstructionPart(describe_recall(prefix, None), dynamic=True)]
    )


def _instructions(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> str | None:
    if parameters.instruction_parts:
        return "\n\n".join(part.content for part in parameters.instruction_parts)
    return next((text for m in reversed(messages) if (text := getattr(m, "instructions", None))), None)
