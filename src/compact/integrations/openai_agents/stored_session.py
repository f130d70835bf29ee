"""A stored session, seen through its compaction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agents import Agent, OpenAIConversationsSession, Session, SessionABC, TResponseInputItem

from compact.errors import ConfigError
from compact.integrations.openai_agents.filter import DIALECT, Opened, opened_session
from compact.integrations.openai_agents.tools import AgentTools
from compact.runtime.manager import CompactManager


class CompactSession(SessionABC):
    """Any SDK session, giving back what fits: `Runner.run(agent, text, session=CompactSession(session, manager))`.

    The session that it wraps keeps the full history. The compacted one lies beside it in the manager's archive, so another
    process goes on with it. With `agent`, its tools and its instructions (if they are text) are counted.

    The SDK asks a session once, when a run starts: use `compact_filter` or `CompactModel` too if one run can outgrow the
    window.

    Raises:
        ConfigError: the session's history lies on OpenAI's side.
    """

    def __init__(self, session: Session, manager: CompactManager, *, agent: Agent[Any] | None = None) -> None:
        if isinstance(session, OpenAIConversationsSession):
            raise ConfigError(
                "CompactSession cannot wrap OpenAIConversationsSession: the SDK must see it as it is",
                hint="Pass it to the runner itself, and compact_filter(manager) as call_model_input_filter",
                path="session",
            )
        self.session_id = session.session_id
        self.session_settings = session.session_settings
        self._session = session
        self._manager = manager
        self._agent = agent
        self._tools = AgentTools()

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[TResponseInputItem]:
        """The history as it should be sent, or the newest `limit` items of that. Raises as `preflight` does."""
        full = await _passing(self._session.get_items, wrapper)()
        tools, system = await self._beside(wrapper)
        kept: list[Any] = await self._manager.apreflight(
            self.session_id, full, tools, system=system, dialect=DIALECT
        )
        opened_session.set(Opened(self.session_id, list(kept)))
        return list(kept) if limit is None else list(kept[max(0, len(kept) - limit) :])

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Any = None) -> None:
        """Adds to the full history."""
        await _passing(self._session.add_items, wrapper)(items)

    async def pop_item(self, *, wrapper: Any = None) -> TResponseInputItem | None:
        """Takes the newest item from the full history."""
        popped: TResponseInputItem | None = await _passing(self._session.pop_item, wrapper)()
        return popped

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Empties the full history. What was archived stays in the archive."""
        await _passing(self._session.clear_session, wrapper)()

    async def _beside(self, wrapper: Any) -> tuple[list[Any] | None, str | None]:
        if self._agent is None:
            return None, None
        instructions = self._agent.instructions
        tools = await self._tools.of(self._agent, getattr(wrapper, "context", None))
        return tools, instructions if isinstance(instructions, str) else None


def _passing(method: Callable[..., Any], wrapper: Any) -> Callable[..., Any]:
    """The method, with the run's context for those sessions that want it."""
    if wrapper is None or "wrapper" not in inspect.signature(method).parameters:
        return method
    return lambda *args: method(*args, wrapper=wrapper)
