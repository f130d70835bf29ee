"""The tools by which an agent reads back what compaction took out of its context.

They see `/tool_outputs/` and `/conversation_history/` of one session and nothing else. Whatever a model asks, the answer
is a text that it can act on: bounded, beginning with the marker by which compact knows it again and never moves it to
the archive a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from compact.archive.reading import Reader
from compact.archive.recall.answers import Limits, answer, quoted
from compact.archive.recall.paths import Refused
from compact.archive.recall.reader import SessionFiles
from compact.archive.recall.schemas import DESCRIPTIONS, checked, schema_of
from compact.errors import ArchiveError
from compact.messages.markers import is_recovery_output

__all__ = ["Limits", "RecoveryTool", "is_recovery_output", "recovery_tools", "run"]


@dataclass(frozen=True, slots=True)
class RecoveryTool:
    """A tool for a model: call it and it answers with text, also to arguments that are wrong."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""
    function: Callable[..., str]
    """The plain function, with its signature, for frameworks that read one. It expects arguments of the right types."""

    def __call__(self, /, *values: Any, **arguments: Any) -> str:
        """The answer. Never raises because of its arguments or of the archive. Values go by the order of the schema."""
        names = list(self.schema["properties"])
        if len(values) > len(names):
            return answer(f"{self.name}: {len(values)} arguments were given; it takes {', '.join(names)}")
        placed = dict(zip(names, values, strict=False))
        twice = [name for name in placed if name in arguments]
        if twice:
            return answer(f"{self.name}: the argument {twice[0]!r} was given twice")
        return self.answer({**placed, **arguments})

    def answer(self, arguments: Mapping[str, Any]) -> str:
        """As a call, for arguments in a mapping."""
        try:
            return self.function(**checked(self.schema, arguments))
        except Refused as refused:
            return answer(f"{self.name}: {refused.why}", refused.lines)
        except ArchiveError as problem:
            return answer(f"{self.name}: the archive cannot be read: {problem}")

    def openai(self) -> dict[str, Any]:
        """For OpenAI's chat completions."""
        return {"type": "function", "function": self._described("parameters")}

    def responses(self) -> dict[str, Any]:
        """For OpenAI's Responses."""
        return {"type": "function", **self._described("parameters")}

    def anthropic(self) -> dict[str, Any]:
        """For Anthropic's messages."""
        return self._described("input_schema")

    def _described(self, schema_key: str) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, schema_key: deepcopy(dict(self.schema))}


def recovery_tools(
    archive: Reader, session_id: str, *, limits: Limits | None = None
) -> dict[str, RecoveryTool]:
    """The tools of one session, by name: `read_file`, `grep`, `ls`, `search`.

    Making them reads nothing. Keep them as long as the session runs: `search` remembers its index.
    """
    limits = limits or Limits()
    files = SessionFiles(archive, session_id, limits)
    functions: dict[str, Callable[..., str]] = {
        "read_file": files.read_file,
        "grep": files.grep,
        "ls": files.ls,
        "search": files.search,
    }
    return {
        name: RecoveryTool(name, DESCRIPTIONS[name], schema_of(name, limits), function)
        for name, function in functions.items()
    }


def run(
    tools: Mapping[str, RecoveryTool], name: str, arguments: str | Mapping[str, Any] | None = None
) -> str:
    """The answer to a model's call: its name for the tool, and its arguments as JSON text or as an object.

    Never raises because of what the model wrote: the answer says what is wrong with it.
    """
    tool = tools.get(name)
    if tool is None:
        return answer(f"there is no tool {quoted(name)}; there are {', '.join(sorted(tools))}")
    values: Any = arguments or {}
    if isinstance(values, str):
        try:
            values = json.loads(values)
        except (ValueError, RecursionError) as problem:
            return answer(f"{name}: the arguments are not JSON ({str(problem)[:200]}); {_expected(tool)}")
    if not isinstance(values, Mapping):
        return answer(f"{name}: the arguments are {quoted(str(values), 80)}; {_expected(tool)}")
    return tool.answer(values)


def _expected(tool: RecoveryTool) -> str:
    example = {key: tool.schema["properties"][key]["examples"][0] for key in tool.schema["required"]}
    return f"expected is an object like {json.dumps(example)}"
