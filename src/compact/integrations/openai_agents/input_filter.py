"""Before every model call of a run, and after it."""

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

from compact.integrations.openai_agents.tools import AgentTools
from compact.integrations.shared import SessionId, conversations_of, current_session, observe, parted
from compact.runtime.manager import CompactManager

DIALECT = "responses"
_NO_TRACE = "no-op"
_CALLS = "_call"
_OUTPUTS = "_call_output"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a stored session gave back at the start of the run in this task."""

    session_id: str
    items: Sequence[Any]


opened_session: ContextVar[Opened | None] = ContextVar("compact_opened_session", default=None)


def compact_filter(
    manager: CompactManager, session_id: SessionId = None
) -> Callable[[CallModelData[Any]], Coroutine[Any, Any, ModelInputData]]:
    """A `RunConfig.call_model_input_filter` that sends what fits.

    `session_id` is a name, or a function that finds one in the SDK's `CallModelData`. Without it, it is the id of the
    `CompactSession`, of the trace's group or of the trace, in this order; further conversations inside it, such as
    those of agents that serve as tools, are told apart. Name it if a session should go on in another process.

    Instructions, tools, handoffs and the output schema are counted. Input that continues a conversation on OpenAI's
    side is left as it is, with a `server_managed` warning. Raises as `preflight` does.
    """
    tools = AgentTools()

    async def prepare(data: CallModelData[Any]) -> ModelInputData:
        items, instructions = data.model_data.input, data.model_data.instructions
        if continues_elsewhere(items):
            warn_server_managed(manager, session_id, data)
            return data.model_data
        name = name_of(manager, session_id, data, items)
        offered = await tools.of(data.agent, data.context)
        kept = await manager.apreflight(name, items, offered, system=instructions, dialect=DIALECT)
        conversations_of(manager).note(name, items, kept)
        current_session.set(name)
        sent = kept if kept is items else fit_for(data.agent.model, kept)
        return ModelInputData(input=list(sent), instructions=instructions)

    return prepare


class CompactHooks(RunHooks[Any]):
    """`Runner.run(..., hooks=CompactHooks(manager))` beside the filter: the provider's own counts correct ours.

    `CompactModel` does this by itself.
    """

    def __init__(self, manager: CompactManager) -> None:
        self._manager = manager

    async def on_llm_end(
        self, _context: RunContextWrapper[Any], _agent: Agent[Any], response: ModelResponse
    ) -> None:
        """See `RunHooks`."""
        name = current_session.get()
        if name is not None:
            observe(self._manager, name, response.usage)


def name_of(manager: CompactManager, session_id: SessionId, data: Any, items: Sequence[Any]) -> str:
    """The session that a list belongs to."""
    if session_id is not None:
        return session_id(data) if callable(session_id) else session_id
    opened = opened_session.get()
    if opened is not None and opened.items and list(items[: len(opened.items)]) == opened.items:
        return opened.session_id
    return conversations_of(manager).named(items, _own_id)


def fit_for(model: Any, kept: Sequence[Any]) -> Sequence[Any]:
    """What compact wrote, as a model's provider takes it: OpenAI's own takes any order of roles, others may not."""
    if getattr(model, "sends_what_fits", False):
        return kept  # a CompactModel sees to it
    others = isinstance(model, str) and "/" in model and not model.startswith("openai/")
    unknown = isinstance(model, Model) and not isinstance(
        model, OpenAIResponsesModel | OpenAIChatCompletionsModel
    )
    return parted(kept) if others or unknown else kept


def _own_id() -> str:
    opened = opened_session.get()
    if opened is not None:
        return opened.session_id
    trace = get_current_trace()
    if trace is None or trace.trace_id == _NO_TRACE:
        return "agents"
    return getattr(trace, "group_id", None) or trace.trace_id


def continues_elsewhere(items: Sequence[Any]) -> bool:
    """Whether a list answers calls that it does not contain: then the provider holds what came before."""
    called = {item.get("call_id") for item in items if _kind(item).endswith(_CALLS)}
    referred = any(_kind(item) == "item_reference" for item in items)
    answers = [item.get("call_id") for item in items if _kind(item).endswith(_OUTPUTS)]
    return not referred and any(answer not in called for answer in answers)


def _kind(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else ""


def warn_server_managed(manager: CompactManager, session_id: SessionId, data: Any) -> None:
    """Says, once a session, that compact leaves it alone."""
    name = session_id(data) if callable(session_id) else session_id
    manager.warn(
        name or _own_id(),
        "server_managed",
        "the provider keeps this conversation (conversation_id or previous_response_id): only what is new is sent, "
        "so there is nothing to compact; for compaction keep the history on your side",
    )
