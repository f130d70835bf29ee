"""The filter before every model call of a run, and the hook after it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunContextWrapper,
    RunHooks,
    get_current_trace,
)
from agents.run import CallModelData, ModelInputData

from compact.integrations.calls import observe, separate_roles, warn_server_managed
from compact.integrations.openai_agents.agent_tools import AgentTools
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

DIALECT = "responses"
_NO_TRACE = "no-op"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a stored session returned at the start of the run in this task."""

    session_id: str
    items: Sequence[Any]


opened_session: ContextVar[Opened | None] = ContextVar("compact_opened_session", default=None)


def compact_filter(
    manager: CompactManager, session_id: SessionId = None
) -> Callable[[CallModelData[Any]], Coroutine[Any, Any, ModelInputData]]:
    """Return a `RunConfig.call_model_input_filter` that makes every request fit.

    `session_id` is a name, or a function that finds one in the SDK's `CallModelData`. It defaults to the id of the
    `CompactSession`, of the trace's group, or of the trace, in this order. Further conversations inside a run, such as
    those of agents that serve as tools, are told apart. Pass a name if a session should continue in another process.

    Instructions, tools, handoffs and the output schema are counted. Input that continues a conversation on OpenAI's
    side is left alone, with a `server_managed` warning. The filter raises as `preflight` does.
    """
    tools = AgentTools()

    async def prepare(data: CallModelData[Any]) -> ModelInputData:
        items, instructions = data.model_data.input, data.model_data.instructions
        if _continues_elsewhere(items):
            warn_kept_elsewhere(manager, session_id, data)
            return data.model_data
        name = find_session(manager, session_id, data, items)
        schemas = await tools.schemas_of(data.agent, data.context)
        kept = await manager.apreflight(name, items, schemas, system=instructions, dialect=DIALECT)
        manager.resolver.note_sent(name, items, kept)
        manager.resolver.enter(name)
        sent = kept if kept is items else adapt_to_model(data.agent.model, kept)
        return ModelInputData(input=list(sent), instructions=instructions)

    return prepare


class CompactHooks(RunHooks[Any]):
    """`Runner.run(..., hooks=CompactHooks(manager))` beside the filter: the provider's counts correct ours.

    `CompactModel` does this by itself.
    """

    def __init__(self, manager: CompactManager) -> None:
        self._manager = manager

    async def on_llm_end(
        self, _context: RunContextWrapper[Any], _agent: Agent[Any], response: ModelResponse
    ) -> None:
        """See `RunHooks`."""
        name = self._manager.resolver.running
        if name is not None:
            observe(self._manager, name, response.usage)


def find_session(
    manager: CompactManager,
    session_id: SessionId,
    data: Any,
    items: Sequence[Any],
    objects: Sequence[Any] | None = None,
) -> str:
    """Return the session that a list belongs to."""
    return manager.resolver.resolve(
        items, session_id=session_id, call=data, given=_current_id(), objects=objects, kind="agents"
    )


def adapt_to_model(model: Any, kept: Sequence[Any]) -> Sequence[Any]:
    """Separate equal roles unless the model is OpenAI's own, which takes any order of roles."""
    if getattr(model, "makes_requests_fit", False):
        return kept  # a CompactModel does it
    is_foreign_name = isinstance(model, str) and "/" in model and not model.startswith("openai/")
    is_foreign_model = isinstance(model, Model) and not isinstance(
        model, OpenAIResponsesModel | OpenAIChatCompletionsModel
    )
    return separate_roles(kept) if is_foreign_name or is_foreign_model else kept


def _current_id() -> str | None:
    opened = opened_session.get()
    if opened is not None:
        return opened.session_id
    trace = get_current_trace()
    if trace is None or trace.trace_id == _NO_TRACE:
        return None
    return getattr(trace, "group_id", None) or trace.trace_id


def _continues_elsewhere(items: Sequence[Any]) -> bool:
    """Return whether a list answers calls that it does not contain. Then the provider keeps what came before."""
    refers = any(isinstance(item, dict) and item.get("type") == "item_reference" for item in items)
    return not refers and not _call_ids(items, "_call_output") <= _call_ids(items, "_call")


def _call_ids(items: Sequence[Any], ending: str) -> set[Any]:
    """Return the call ids of the items whose type has this ending."""
    return {
        item.get("call_id")
        for item in items
        if isinstance(item, dict) and str(item.get("type")).endswith(ending)
    }


def warn_kept_elsewhere(manager: CompactManager, session_id: SessionId, data: Any) -> None:
    """Warn, once per session, that compact leaves it alone."""
    resolver = manager.resolver
    if callable(session_id):
        name = session_id(data)
    else:
        name = resolver.find(session_id=session_id, given=_current_id()) or resolver.nobody
    warn_server_managed(manager, name, ("conversation_id", "previous_response_id"))
