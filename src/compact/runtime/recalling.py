"""Recall tools that read the session of the running call, for hosts that make their tools before their sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any

from compact.archive import Archive
from compact.archive.recall import RecallTool, recall_tools
from compact.archive.recall.answers import CannotAnswer

_REMEMBERED = 64
"""Sessions whose search index is kept."""
_NOWHERE = (
    "no session is known here, so nothing was read. The host has to name one: recall_tools(session_id), or session_id= on "
    "the integration"
)


def follow_running(archive: Archive, find: Callable[[], str | None]) -> dict[str, RecallTool]:
    """Return the recall tools of whichever session `find()` names when they are called. None: they read nothing."""

    @lru_cache(maxsize=_REMEMBERED)
    def tools_of(session_id: str) -> Mapping[str, RecallTool]:
        return recall_tools(archive, session_id)

    def follow(tool: RecallTool) -> RecallTool:
        @wraps(tool.function)
        def read(*values: Any, **arguments: Any) -> str:
            session_id = find()
            if session_id is None:
                raise CannotAnswer(_NOWHERE)
            return tools_of(session_id)[tool.name].function(*values, **arguments)

        return replace(tool, function=read)

    return {name: follow(tool) for name, tool in recall_tools(archive, "").items()}
