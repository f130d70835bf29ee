"""A stored session that returns its compacted history."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agents import Agent, OpenAIConversationsSession, Session, SessionABC, TResponseInputItem

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.integrations.managers import take_manager
from compact.integrations.offering import name_tools
from compact.integrations.openai_agents.agent_tools import AgentTools
from compact.integrations.openai_agents.handed_out import Handed, from_session
from compact.integrations.openai_agents.input_filter import DIALECT, adapt_to_model, model_name
from compact.runtime.manager import CompactManager


class CompactSession(SessionABC):
    """Any SDK session, returning what fits: `Runner.run(agent, text, session=CompactSession(session, manager))`.

    The wrapped session keeps the full history. The compacted one is kept in the manager's archive, so that another
    process can continue it. With `agent`, its tools and its instructions (if they are text) are counted, and its model
    decides the window.

    The SDK reads a session once, when a run starts: also use `compact_filter` or `CompactModel` if one run can outgrow
    the window. They are shown the full history behind what this session returned, so all of them work on one state.

    Raises:
        ConfigError: the session's history is kept by OpenAI, or an argument is of the wrong kind.
    """

    def __init__(
        self,
        session: Session,
        manager: CompactManager | CompactConfig | None = None,
        *,
        agent: Agent[Any] | None = None,
    ) -> None:
        if isinstance(session, OpenAIConversationsSession):
            raise ConfigError(
                "CompactSession cannot wrap OpenAIConversationsSession: the SDK must see it as it is",
                hint="Pass it to the runner itself, and compact_filter(manager) as call_model_input_filter",
                path="session",
            )
        if not isinstance(session, Session):
            raise ConfigError(
                f"CompactSession wraps a session of the SDK, got {type(session).__name__}",
                hint='CompactSession(SQLiteSession("chat-7"), manager)',
                path="session",
            )
        self.session_id = session.session_id
        self.session_settings = getattr(session, "session_settings", None)  # not in older releases
        self._session = session
        self._manager = take_manager(manager, "CompactSession")
        self._agent = agent
        self._tools = AgentTools()

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[TResponseInputItem]:
        """Return the history to send, or its newest `limit` items. Raises as `preflight` does."""
        full = await _with_wrapper(self._session.get_items, wrapper)()
        tools = system = model = None
        if self._agent is not None:
            instructions, model = self._agent.instructions, self._agent.model
            system = instructions if isinstance(instructions, str) else None
            tools = await self._tools.schemas_of(self._agent, getattr(wrapper, "context", None))
        resolver = self._manager.resolver
        name = resolver.resolve(full, given=self.session_id) if full else self.session_id
        kept: list[Any] = await self._manager.apreflight(
            name, full, tools, system=system, dialect=DIALECT, model=model_name(model)
        )
        resolver.note_sent(name, full, kept)
        if kept is not full:
            kept = list(adapt_to_model(model, name_tools(kept, full, tools)))
        returned = kept if limit is None else kept[max(0, len(kept) - limit) :]
        # A host that asks for the newest items alone gets no more than these.
        stands_for = full if limit is None else returned
        from_session.add(Handed(list(returned), list(stands_for), self.session_id, self))
        return returned

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Any = None) -> None:
        """Add to the full history."""
        await _with_wrapper(self._session.add_items, wrapper)(items)
        from_session.grow(self, len(items))

    async def pop_item(self, *, wrapper: Any = None) -> TResponseInputItem | None:
        """Remove and return the newest item of the full history."""
        popped: TResponseInputItem | None = await _with_wrapper(self._session.pop_item, wrapper)()
        if popped is not None:
            from_session.grow(self, -1)
        return popped

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Empty the full history. The archive keeps what it has."""
        await _with_wrapper(self._session.clear_session, wrapper)()


def _with_wrapper(method: Callable[..., Any], wrapper: Any) -> Callable[..., Any]:
    """Bind the run's context for those sessions that take it."""
    if wrapper is None or "wrapper" not in inspect.signature(method).parameters:
        return method
    return lambda *args: method(*args, wrapper=wrapper)
