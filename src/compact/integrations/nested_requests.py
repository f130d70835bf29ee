"""Requests of Google's and AWS's clients, whose prompt and tools stand inside another argument, seen as flat ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compact.integrations.calls import HostCall
from compact.integrations.requests import RequestShape
from compact.messages.dialects.wire import plain
from compact.runtime.manager import CompactManager

__all__ = ["FlatRequest", "list_tools"]

_DECLARATIONS = ("functionDeclarations", "function_declarations")


class FlatRequest:
    """A request whose fields stand side by side, by the names that `shape` knows.

    What is masked in them is put back by `changed`.
    """

    def __init__(self, shape: RequestShape, fields: Mapping[str, Any]) -> None:
        self._shape = shape
        self._given = dict(fields)
        self._fields = dict(fields)

    def prepare(
        self, manager: CompactManager, session_id: Any, restore: Callable[[Sequence[Any]], Any]
    ) -> HostCall | None:
        """Return the call of this request; None if there is nothing to compact."""
        tools = self._fields.get("tools")
        if not _is_data(tools):
            del self._fields[
                "tools"
            ]  # functions: the client describes them, and nothing in them can be masked
        call = self._shape.prepare(
            manager, self._fields, session_id, kind=self._shape.dialect, restore=restore
        )
        return None if call is None else replace(call, tools=list_tools(self._fields.get("tools", tools)))

    def changed(self) -> dict[str, Any]:
        """The fields that were masked, without the conversation."""
        return {
            name: value
            for name, value in self._fields.items()
            if name != self._shape.messages and value is not self._given.get(name)
        }


def _is_data(tools: Any) -> bool:
    return not isinstance(tools, list | tuple) or all(
        isinstance(tool, Mapping) or hasattr(tool, "model_dump") for tool in tools
    )


def list_tools(tools: Any) -> list[Any] | None:
    """Return one schema for each tool of a request, as they are counted. A function costs about its words and parameters."""
    return [each for tool in tools for each in _schemas(tool)] if isinstance(tools, list | tuple) else None


def _schemas(tool: Any) -> Iterator[Any]:
    if isinstance(tool, Mapping) or hasattr(tool, "model_dump"):
        data = plain(tool)
        spec = data.get("toolSpec")
        if isinstance(spec, Mapping):
            yield spec
            return
        key = next((name for name in _DECLARATIONS if isinstance(data.get(name), list | tuple)), None)
        if key is None:
            yield data
            return
        yield from data[key]
        others = {name: value for name, value in data.items() if name != key and value is not None}
        if others:
            yield others
    elif callable(tool):
        try:
            parameters = str(inspect.signature(tool))
        except (TypeError, ValueError):
            parameters = ""
        name, words = getattr(tool, "__name__", ""), tool.__doc__ or ""
        yield {"name": name, "description": words, "parameters": parameters}
    else:
        yield {"name": type(tool).__name__}
