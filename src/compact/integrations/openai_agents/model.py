"""A model that sends what fits, and sends less when its provider refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agents import (
    AgentOutputSchemaBase,
    Handoff,
    ItemHelpers,
    Model,
    ModelResponse,
    ModelRetryAdvice,
    ModelRetryAdviceRequest,
    ModelSettings,
    ModelTracing,
    TResponseInputItem,
)
from agents.items import TResponseStreamEvent
from agents.tool import Tool
from openai.types.responses.response_prompt_param import ResponsePromptParam

from compact.integrations.openai_agents.filter import DIALECT, fit_for, name_of, warn_server_managed
from compact.integrations.openai_agents.tools import schemas
from compact.integrations.shared import (
    SessionId,
    StreamRefused,
    conversations_of,
    current_session,
    is_preamble,
    is_refusal,
    observe,
)
from compact.runtime.manager import CompactManager


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is called with, apart from its input."""

    instructions: str | None
    settings: ModelSettings
    tools: list[Tool]
    output: AgentOutputSchemaBase | None
    handoffs: list[Handoff[Any, Any]]
    tracing: ModelTracing
    previous_response_id: str | None
    conversation_id: str | None
    prompt: ResponsePromptParam | None

    @property
    def server_managed(self) -> bool:
        """Whether the provider holds what came before."""
        return self.previous_response_id is not None or self.conversation_id is not None

    def arguments(self, items: Any) -> tuple[Any, ...]:
        """As `Model` takes them, with this input."""
        return (self.instructions, items, self.settings, self.tools, self.output, self.handoffs, self.tracing)

    @property
    def named(self) -> dict[str, Any]:
        """Those that `Model` takes by name."""
        return {
            "previous_response_id": self.previous_response_id,
            "conversation_id": self.conversation_id,
            "prompt": self.prompt,
        }


class CompactModel(Model):
    """Any model of the SDK: `Agent(model=CompactModel(model, manager))`.

    When the provider says that a request is too long, it is compacted further and sent again, streamed or not, up to
    `recovery.max_compactions` times; the agent does not notice. The provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the `Request`; without it, as in `compact_filter`. A call with
    `previous_response_id` or `conversation_id` passes through, with a `server_managed` warning.

    Raises, on a call, as `CompactManager.acall` does.
    """

    sends_what_fits = True
    """For the filter: what it returns comes here next."""

    def __init__(self, model: Model, manager: CompactManager, session_id: SessionId = None) -> None:
        self.wrapped = model
        self._manager = manager
        self._session_id = session_id

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> ModelResponse:
        """See `Model.get_response`."""
        request = Request(
            system_instructions, model_settings, tools, output_schema, handoffs, tracing,
            previous_response_id, conversation_id, prompt,
        )  # fmt: skip

        async def send(items: Any) -> ModelResponse:
            return await self.wrapped.get_response(*request.arguments(items), **request.named)

        if request.server_managed:
            warn_server_managed(self._manager, self._session_id, request)
            return await send(input)
        response: ModelResponse
        name, response = await self._call(request, input, send)
        observe(self._manager, name, response.usage)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: ResponsePromptParam | None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """See `Model.stream_response`."""
        request = Request(
            system_instructions, model_settings, tools, output_schema, handoffs, tracing,
            previous_response_id, conversation_id, prompt,
        )  # fmt: skip

        async def send(items: Any) -> _Stream:
            events = self.wrapped.stream_response(*request.arguments(items), **request.named)
            return await _Stream.begun(events)

        if request.server_managed:
            warn_server_managed(self._manager, self._session_id, request)
            async for event in self.wrapped.stream_response(*request.arguments(input), **request.named):
                yield event
            return
        try:
            name, stream = await self._call(request, input, send)
        except StreamRefused as refused:
            for (
                event
            ) in refused.events:  # a refusal that is not about length: the SDK makes its own error of it
                yield event
            return
        async with aclosing(stream.events()) as events:
            async for event in events:
                if event.type == "response.completed":
                    observe(self._manager, name, event.response.usage)
                yield event

    async def _call(self, request: Request, input: Any, send: Any) -> tuple[str, Any]:
        items = ItemHelpers.input_to_new_input_list(input)
        name = name_of(self._manager, self._session_id, request, items)
        current_session.set(name)
        offered = schemas(request.tools, request.handoffs, request.output)

        async def send_noted(kept: Any) -> Any:
            conversations_of(self._manager).note(name, items, kept)
            return await send(kept if kept is items else fit_for(self.wrapped, kept))

        reply = await self._manager.acall(
            name, items, send_noted, offered, system=request.instructions, dialect=DIALECT
        )
        return name, reply

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """See `Model.get_retry_advice`."""
        return self.wrapped.get_retry_advice(request)

    async def close(self) -> None:
        """Closes the wrapped model."""
        await self.wrapped.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.wrapped._cleanup_on_run_end(owner)

    def __getattr__(self, name: str) -> Any:
        # The SDK asks models for more than `Model` promises, such as whether they take a prompt cache key.
        if name == "wrapped":
            raise AttributeError(name)
        return getattr(self.wrapped, name)


class _Stream:
    """A stream whose beginning was awaited, so that a refusal shows while the request can still be made smaller."""

    def __init__(self, head: list[Any], rest: AsyncIterator[Any]) -> None:
        self._head = head
        self._rest = rest

    @classmethod
    async def begun(cls, events: AsyncIterator[Any]) -> _Stream:
        head: list[Any] = []
        async for event in events:
            head.append(event)
            if is_refusal(event):
                await _closed(events)
                raise StreamRefused(head)
            if not is_preamble(event):
                break
        return cls(head, events)

    async def events(self) -> AsyncIterator[Any]:
        try:
            for event in self._head:
                yield event
            async for event in self._rest:
                yield event
        finally:
            await _closed(self._rest)


async def _closed(events: AsyncIterator[Any]) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
