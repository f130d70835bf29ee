"""The recall tools that a manager hands out: those of one session, and those that follow the running call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any

from compact.archive.recall import RecallTool
from compact.archive.recall.answers import CannotAnswer
from compact.engine.context import Written

_REMEMBERED = 64
"""Sessions whose search index is kept."""
_NOWHERE = (
    "no session is known here, so nothing was read. The host has to name one: recall_tools(session_id), or session_id= on "
    "the integration"
)


def note_answers(
    tools: Mapping[str, RecallTool], find_written: Callable[[], Written]
) -> dict[str, RecallTool]:
    """Return the tools with every answer noted in what `find_written()` gives, by which it is recognised in the context."""

    def noting(tool: RecallTool) -> RecallTool:
        @wraps(tool.function)
        def read(*values: Any, **arguments: Any) -> str:
            text = tool.function(*values, **arguments)
            find_written().note_recalled(text)
            return text

        return replace(tool, function=read)

    return {name: noting(tool) for name, tool in tools.items()}


def follow_running(
    tools: Mapping[str, RecallTool],
    find: Callable[[], str | None],
    tools_of: Callable[[str], Mapping[str, RecallTool]],
) -> dict[str, RecallTool]:
    """Return `tools` that read whichever session `find()` names when they are called. None: they read nothing.

    `tools_of` makes the tools of a session.
    """
    remembered = lru_cache(maxsize=_REMEMBERED)(tools_of)

    def follow(tool: RecallTool) -> RecallTool:
        @wraps(tool.function)
        def read(*values: Any, **arguments: Any) -> str:
            session_id = find()
            if session_id is None:
                raise CannotAnswer(_NOWHERE)
            return remembered(session_id)[tool.name].function(*values, **arguments)

        return replace(tool, function=read)

    return {name: follow(tool) for name, tool in tools.items()}
