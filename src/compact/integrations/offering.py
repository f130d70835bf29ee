"""How a framework's agent is offered the recall tools: from when on, under which names, and what its messages call them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from compact.archive.recall import RecallTool, no_session, offered_prefix
from compact.errors import ConfigError
from compact.messages import to_json
from compact.messages.message import POINTER_OPENS, SUMMARY_OPENS
from compact.runtime.guidance import prompt_segment
from compact.runtime.manager import CompactManager

RecallChoice: TypeAlias = bool | Literal["auto"]
"""Whether an agent gets the recall tools and the prompt segment about them. `auto`: once something left its context."""

_PREFIX = "archive_"
_REMEMBERED = 64
"""Sessions whose search index is kept."""
_NAMED = re.compile(r'\b(read_file|grep|search)(?=\(")')
"""Recall tools, as pointers and summaries name them."""


class RecallDue(Exception):
    """Something left the context for the first time: the request has to be made again, with the recall tools counted."""


class Offering:
    """The recall tools of one integration: which sessions are offered them, and what they answer. Thread-safe.

    Raises:
        ConfigError: `choice` is neither a boolean nor "auto".
    """

    def __init__(self, manager: CompactManager, choice: RecallChoice, prefix: str | None) -> None:
        if choice not in (True, False, "auto"):
            raise ConfigError(
                f'recall_tools must be true, false or "auto", got {choice!r}',
                hint='"auto" offers the tools once something left the context',
                path="recall_tools",
            )
        self.choice = choice
        self._prefix = prefix
        self._tools_of = lru_cache(maxsize=_REMEMBERED)(manager.recall_tools)
        self.tools: Mapping[str, RecallTool] = manager.recall_tools()
        """The tools by their plain names, to be described."""
        self._due: dict[str, None] = {}

    def is_due(self, session_id: str) -> bool:
        """Return whether a session's requests carry the tools."""
        return self.choice is True or session_id in self._due

    def choose_prefix(self, taken: Collection[str]) -> str:
        """Return what stands before the tools' names: the host's choice, else nothing, else the first that is free."""
        if self._prefix is not None:
            return self._prefix
        prefix = ""
        while any(f"{prefix}{name}" in taken for name in self.tools):
            prefix += _PREFIX
        return prefix

    def plain_name(self, offered: str) -> str | None:
        """Return the tool that is offered under a name. None: it is not one of ours."""
        for name in self.tools:
            prefix = offered.removesuffix(name)
            if offered.endswith(name) and (prefix == self._prefix or not prefix.replace(_PREFIX, "")):
                return name
        return None

    def check(self, session_id: str, kept: Sequence[Any], given: Sequence[Any]) -> None:
        """Check that a request which sends `kept` carries the tools if it should. `given` is the host's list.

        Raises:
            RecallDue: something left the context, and the tools are not offered yet.
        """
        if self.choice == "auto" and session_id not in self._due and has_pointers(kept, given):
            while len(self._due) >= _REMEMBERED**2:
                del self._due[next(iter(self._due))]
            self._due[session_id] = None
            raise RecallDue

    def answer(self, session_id: str | None, name: str, arguments: Mapping[str, Any]) -> str:
        """Answer a call of a tool, by its plain name. Without a session nothing is read."""
        return no_session(name) if session_id is None else self._tools_of(session_id)[name].answer(arguments)


def has_pointers(kept: Sequence[Any], given: Sequence[Any]) -> bool:
    """Return whether compact wrote something into `kept` that can be read back. `given` is the host's list."""
    own = set(map(id, given))
    written = (to_json(item) for item in kept if id(item) not in own)
    return any(POINTER_OPENS in text or SUMMARY_OPENS in text for text in written)


def name_tools(kept: Sequence[Any], given: Sequence[Any], schemas: Any) -> Sequence[Any]:
    """Return `kept` with the recall tools called as the request's tools call them, in everything that compact wrote.

    `given` is the host's list: what is its own stays as it is.
    """
    prefix = offered_prefix(schemas) if isinstance(schemas, list | tuple) else None
    if not prefix:
        return kept
    own = set(map(id, given))
    return [item if id(item) in own else _rename(item, prefix) for item in kept]


def _rename(value: Any, prefix: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _rename(each, prefix) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rename(each, prefix) for each in value]
    if not isinstance(value, str):
        return value
    if value.startswith(POINTER_OPENS):
        # What follows the first line is a preview of the tool's own words.
        first, newline, preview = value.partition("\n")
        return _NAMED.sub(rf"{prefix}\1", first) + newline + preview
    if value.startswith(SUMMARY_OPENS):
        before, opens, frame = value.rpartition("\n[Archived: ")
        return before + opens + (_NAMED.sub(rf"{prefix}\1", frame) if opens else frame)
    return value


def describe_recall(prefix: str, system: str | None) -> str:
    """Return a system prompt with the segment about the managed context, once."""
    segment = prompt_segment(prefix).rstrip()
    if system and segment in system:
        return system
    return f"{system}\n\n{segment}" if system else segment
