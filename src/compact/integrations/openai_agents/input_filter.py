"""The filter before every model call of a run, and the hook after it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
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

from compact.archive.recall import offered_prefix
from compact.config import CompactConfig
from compact.integrations.calls import (
    call_ids,
    check_manager,
    observe,
    separate_roles,
    warn_server_managed,
)
from compact.integrations.managers import take_manager
from compact.integrations.offering import describe_recall, name_tools
from compact.integrations.openai_agents.agent_tools import AgentTools
from compact.integrations.openai_agents.handed_out import Handed, from_filter, from_session
from compact.runtime.manager import CompactManager
from compact.runtime.resolver import SessionId

DIALECT = "responses"
_KIND = "agents"


def compact_filter(
    manager: CompactManager | CompactConfig | None = None,
    session_id: SessionId = None,
    *,
    explain_recall: bool = True,
) -> Callable[[CallModelData[Any]], Coroutine[Any, Any, ModelInputData]]:
    """Return a `RunConfig.call_model_input_filter` that makes every request fit.

    `session_id` is a name, or a function that finds one in the SDK's `CallModelData`. It defaults to the id of the
    `CompactSession` or of the trace's group, in this order; different conversations inside it, such as those of agents
    that serve as tools, are told apart. Without any id, conversations are told apart by their contents, and a restart
    does not continue them.

    Instructions, tools, handoffs and the output schema are counted, and the agent's model decides the window. If the
    agent has `recall_tools`, its instructions get the segment that explains them, unless `explain_recall` is off.

    Input that continues a conversation on OpenAI's side is left alone, with a `server_managed` warning. The filter
    raises as `preflight` does.

    Raises:
        ConfigError: `manager` is neither a manager nor a configuration.
    """
    chosen = take_manager(manager, "compact_filter")
    tools = AgentTools()

    async def prepare(data: CallModelData[Any]) -> ModelInputData:
        given, instructions = data.model_data.input, data.model_data.instructions
        if _continues_elsewhere(given):
            name = warn_kept_elsewhere(chosen, session_id, data, given)
            return ModelInputData(
                input=chosen.mask(name, given), instructions=chosen.mask(name, instructions)
            )
        items = from_session.expand(given)
        name = find_session(chosen, session_id, data, items, given)
        schemas = await tools.schemas_of(data.agent, data.context)
        prefix = offered_prefix(schemas)
        if prefix is not None and explain_recall:
            instructions = describe_recall(prefix, instructions)
        instructions = chosen.mask(name, instructions)
        kept = await chosen.apreflight(
            name,
            items,
            schemas,
            system=instructions,
            dialect=DIALECT,
            model=model_name(data.agent.model),
        )
        chosen.resolver.note_sent(name, items, kept)
        chosen.resolver.enter(name)
        chosen.resolver.note_unseen(name)  # a CompactModel, or CompactHooks, shows its reply
        sent = list(
            kept if kept is items else adapt_to_model(data.agent.model, name_tools(kept, items, schemas))
        )
        from_filter.add(Handed(list(sent), items, name, chosen))
        return ModelInputData(input=sent, instructions=instructions)

    return prepare


class CompactHooks(RunHooks[Any]):
    """`Runner.run(..., hooks=CompactHooks(manager))` beside the filter: the provider's counts correct ours.

    `CompactModel` does this by itself.
    """

    def __init__(self, manager: CompactManager) -> None:
        self._manager = check_manager(manager, "CompactHooks")

    async def on_llm_end(
        self, _context: RunContextWrapper[Any], _agent: Agent[Any], response: ModelResponse
    ) -> None:
        """See `RunHooks`."""
        name = self._manager.resolver.running
        if name is not None:
            self._manager.resolver.note_calls(name, call_ids(response))
            observe(self._manager, name, response.usage)


def find_session(
    manager: CompactManager, session_id: SessionId, data: Any, items: Sequence[Any], given: Sequence[Any]
) -> str:
    """Return the session that a list belongs to. `given` is what the SDK has of it."""
    return manager.resolver.resolve(items, session_id=session_id, call=data, given=host_id(given), kind=_KIND)


def host_id(given: Sequence[Any]) -> str | None:
    """Return the id that the host gave the run of a list: of its `CompactSession`, or of its trace's group.

    A run without a session may follow in the same task, and is somebody else's.
    """
    handed = from_session.newest
    if handed is not None and handed.is_of_run(given):
        return handed.session_id
    return getattr(get_current_trace(), "group_id", None)


def model_name(model: Any) -> str | None:
    """Return the name of an agent's model. None: it is the SDK's default, or a model that says its name nowhere."""
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) and name else None


def adapt_to_model(model: Any, kept: Sequence[Any]) -> Sequence[Any]:
    """Separate equal roles unless the model is OpenAI's own, which takes any order of roles."""
    if getattr(model, "makes_requests_fit", False):
        return kept  # a CompactModel does it
    is_foreign_name = isinstance(model, str) and "/" in model and not model.startswith("openai/")
    is_foreign_model = isinstance(model, Model) and not isinstance(
        model, OpenAIResponsesModel | OpenAIChatCompletionsModel
    )
    return separate_roles(kept) if is_foreign_name or is_foreign_model else kept


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


def warn_kept_elsewhere(
    manager: CompactManager, session_id: SessionId, data: Any, given: Sequence[Any]
) -> str:
    """Warn, once per session, that compact leaves it alone. Returns the session's name."""
    explicit = session_id(data) if callable(session_id) else session_id
    resolver = manager.resolver
    name = resolver.resolve((), session_id=explicit, given=host_id(given))
    resolver.enter(name)
    warn_server_managed(manager, name, ("conversation_id", "previous_response_id"))
    return name
