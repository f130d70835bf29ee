"""A model that makes every request fit, and sends less when its provider refuses."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from agents import Model, ModelResponse
from agents.items import TResponseStreamEvent

from compact.archive.recall import offered_prefix
from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.integrations.calls import HostCall
from compact.integrations.managers import take_manager
from compact.integrations.offering import describe_recall
from compact.integrations.openai_agents.agent_tools import schemas
from compact.integrations.openai_agents.handed_out import from_filter, from_session
from compact.integrations.openai_agents.input_filter import (
    DIALECT,
    adapt_to_model,
    find_session,
    model_name,
    warn_kept_elsewhere,
)
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

if TYPE_CHECKING:
    from agents import ModelRetryAdvice, ModelRetryAdviceRequest

_PARAMETERS = inspect.signature(Model.get_response)
"""`stream_response` has the same ones."""


class CompactModel(Model):
    """Any model of the SDK: `Agent(model=CompactModel(model, manager))`.

    When the provider refuses a request as too long, it is compacted further and sent again, streamed or not, up to
    `recovery.max_compactions` times; the agent does not notice. The provider's usage corrects the counts.

    `session_id` is a name, or a function that finds one in the arguments of `Model.get_response`, a mapping. It defaults
    as in `compact_filter`. A call with `previous_response_id` or `conversation_id` passes through, with a
    `server_managed` warning.

    The wrapped model decides the window. If the agent has `recall_tools`, its instructions get the segment that explains
    them, unless `explain_recall` is off.

    A call raises as `CompactManager.acall` does.

    Raises:
        ConfigError: `model` is not a model of the SDK, or `manager` is neither a manager nor a configuration.
    """

    makes_requests_fit = True
    """Tells the filter that its result comes here next."""

    def __init__(
        self,
        model: Model,
        manager: CompactManager | CompactConfig | None = None,
        session_id: SessionId = None,
        *,
        explain_recall: bool = True,
    ) -> None:
        if not isinstance(model, Model):
            raise ConfigError(
                f"CompactModel wraps a Model of the SDK, got {type(model).__name__}",
                hint='CompactModel(OpenAIProvider().get_model("gpt-4o"), manager)',
                path="model",
            )
        self.wrapped = model
        self._manager = take_manager(manager, "CompactModel")
        self._session_id = session_id
        self._explain_recall = explain_recall

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        """See `Model.get_response`."""
        request = _PARAMETERS.bind(self, *args, **named).arguments
        del request["self"]
        call = self._prepare(request)
        if call is None:
            return await self.wrapped.get_response(**request)
        request["system_instructions"] = call.system
        response: ModelResponse = await call.arun(
            lambda items: self.wrapped.get_response(**{**request, "input": items})
        )
        return response

    async def stream_response(self, *args: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """See `Model.stream_response`."""
        request = _PARAMETERS.bind(self, *args, **named).arguments
        del request["self"]
        call = self._prepare(request)
        if call is not None:
            request["system_instructions"] = call.system

        async def send(items: Any) -> AsyncIterator[TResponseStreamEvent]:
            return self.wrapped.stream_response(**{**request, "input": items})

        stream = self.wrapped.stream_response(**request) if call is None else await call.arun(send)
        try:
            async for event in stream:
                yield event
        finally:
            await _close(stream)

    def _prepare(self, request: dict[str, Any]) -> HostCall | None:
        """Return the call of a request. None: the provider keeps the conversation."""
        if any(request.get(field) is not None for field in ("previous_response_id", "conversation_id")):
            name = warn_kept_elsewhere(self._manager, self._session_id, request, _listed(request["input"]))
            for field in ("input", "system_instructions"):
                request[field] = self._manager.mask(name, request[field])
            return None
        listed = _listed(request["input"])
        shown = from_filter.expand(listed)
        items = list(from_session.expand(shown))
        name = self._filtered_for(listed) or find_session(
            self._manager, self._session_id, request, items, shown
        )
        offered = schemas(request["tools"], request["handoffs"], request["output_schema"])
        prefix, system = offered_prefix(offered), request["system_instructions"]
        if prefix is not None and self._explain_recall:
            system = describe_recall(prefix, system)
        system = self._manager.mask(name, system)
        return HostCall(
            manager=self._manager,
            session_id=name,
            items=items,
            original=items,
            restore=lambda kept: adapt_to_model(self.wrapped, kept),
            dialect=DIALECT,
            tools=offered,
            system=system,
            model=model_name(self.wrapped),
        )

    def _filtered_for(self, listed: Sequence[Any]) -> str | None:
        """Return the session that the filter, with this manager, has just made a list for."""
        handed = from_filter.newest
        if self._session_id is not None or handed is None or handed.owner is not self._manager:
            return None
        return handed.session_id if handed.is_sent_as(listed) else None

    # Older releases of the SDK have models without the following methods, and do not ask for them.

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """See `Model.get_retry_advice`."""
        return self.wrapped.get_retry_advice(request)

    async def close(self) -> None:
        """Close the wrapped model."""
        if hasattr(self.wrapped, "close"):
            await self.wrapped.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.wrapped._cleanup_on_run_end(owner)

    def __getattr__(self, name: str) -> Any:
        # The SDK asks models for more than `Model` declares, such as whether they take a prompt cache key.
        if name == "wrapped":
            raise AttributeError(name)
        return getattr(self.wrapped, name)


def _listed(given: Any) -> Sequence[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


async def _close(events: Any) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
