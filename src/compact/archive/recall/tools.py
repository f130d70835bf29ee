"""The tools by which an agent reads back what compaction took out of its context.

They see `/tool_outputs/` and `/conversation_history/` of one session and nothing else. Whatever a model asks, the answer
is a text that it can act on. It is bounded, and it begins with the marker by which compact recognises it, so that it is
never moved to the archive a second time.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from compact.archive.reading import Reader
from compact.archive.recall.answers import AnswerLimits, CannotAnswer, answer, quoted
from compact.archive.recall.session_files import SessionFiles
from compact.errors import ArchiveError

_PLACES = (
    "/tool_outputs/ (outputs of tools) and /conversation_history/ (the conversation before each compaction)"
)
_DESCRIPTIONS = {
    "read_file": "Read a file of this session's archive, line by line with numbers. "
    f"It sees {_PLACES}: what was moved out of your context to save room.",
    "grep": "Find lines in this session's archive by a regular expression (RE2: no lookaround, no backreferences). "
    "Answers like grep -n: path:line:text, with lines of context.",
    "ls": f"List the files of this session's archive. It has two folders: {_PLACES}.",
    "search": "Find passages in this session's archive by words, best first. "
    "Use it when you do not know the exact text; use grep when you do.",
}


@dataclass(frozen=True, slots=True)
class RecallTool:
    """A tool for a model. Call it and it answers with text, even if the arguments are wrong."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""
    function: Callable[..., str]
    """The plain function, for frameworks that read a signature. It expects arguments of the right types."""

    def __call__(self, /, *values: Any, **arguments: Any) -> str:
        """Answer a call. Never raises because of its arguments or the archive. Values go by the order of the schema."""
        names = list(self.schema["properties"])
        if len(values) > len(names):
            return answer(f"{self.name}: {len(values)} arguments were given; it takes {', '.join(names)}")
        placed = dict(zip(names, values, strict=False))
        twice = [name for name in placed if name in arguments]
        if twice:
            return answer(f"{self.name}: the argument {twice[0]!r} was given twice")
        return self.answer({**placed, **arguments})

    def answer(self, arguments: Mapping[str, Any]) -> str:
        """Answer a call whose arguments are in a mapping."""
        try:
            return self.function(**self._checked(arguments))
        except CannotAnswer as problem:
            return answer(f"{self.name}: {problem.why}", problem.lines)
        except ArchiveError as problem:
            return answer(f"{self.name}: the archive cannot be read: {problem}")

    def openai(self) -> dict[str, Any]:
        """Describe the tool for OpenAI's chat completions."""
        return {"type": "function", "function": self._described("parameters")}

    def responses(self) -> dict[str, Any]:
        """Describe the tool for OpenAI's Responses."""
        return {"type": "function", **self._described("parameters")}

    def anthropic(self) -> dict[str, Any]:
        """Describe the tool for Anthropic's messages."""
        return self._described("input_schema")

    def _described(self, schema_key: str) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, schema_key: deepcopy(dict(self.schema))}

    def _checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their types. Null means the default, and "5" is a number: models write both.

        Raises:
            CannotAnswer: an argument is unknown, missing, or of the wrong type.
        """
        properties = self.schema["properties"]
        unknown = [quoted(str(key), 80) for key in arguments if key not in properties]
        if unknown:
            raise CannotAnswer(f"unknown argument {unknown[0]}; it takes {', '.join(properties)}")
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return dict(_arguments(self.name).model_validate(given))
        except ValidationError as problem:
            error = problem.errors(include_url=False)[0]
        name = str(error["loc"][0])
        rule = properties[name]
        if error["type"] == "missing":
            raise CannotAnswer(f"the argument {name!r} is missing, for example {rule['examples'][0]!r}")
        if error["type"] == "greater_than_equal":
            raise CannotAnswer(f"{name!r} must be {rule['minimum']} or more")
        kind = "an integer" if rule["type"] == "integer" else f"a {rule['type']}"
        raise CannotAnswer(f"{name!r} must be {kind}, got {quoted(str(given[name]), 80)}")


def recall_tools(
    archive: Reader, session_id: str, *, limits: AnswerLimits | None = None
) -> dict[str, RecallTool]:
    """Return the tools of one session by name: `read_file`, `grep`, `ls`, `search`.

    Making them reads nothing. Keep them as long as the session runs, because `search` remembers its index.
    """
    limits = limits or AnswerLimits()
    files = SessionFiles(archive, session_id, limits)
    return {
        name: RecallTool(name, description, deepcopy(_schema(name, limits.max_lines)), getattr(files, name))
        for name, description in _DESCRIPTIONS.items()
    }


@cache
def _arguments(tool: str) -> type[BaseModel]:
    """Return the model of a tool's arguments, made from the signature of its function."""
    function = getattr(SessionFiles, tool)
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]  # without self
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default)
        for each in parameters
    }
    return create_model(tool, __config__=ConfigDict(extra="forbid"), **fields)


@cache
def _schema(tool: str, max_lines: int) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without the titles that pydantic adds."""
    schema = _arguments(tool).model_json_schema()
    properties = schema["properties"]
    if tool == "read_file":
        lines = {"type": "integer", "default": max_lines, "minimum": 1, "maximum": max_lines}
        properties["limit"] = {"description": properties["limit"]["description"], **lines}
    for rule in properties.values():
        rule.pop("title", None)
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def run(tools: Mapping[str, RecallTool], name: str, arguments: str | Mapping[str, Any] | None = None) -> str:
    """Answer a model's call by the tool's name and its arguments, as JSON text or as an object.

    Never raises because of what the model wrote. The answer says what is wrong with it.
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


def _expected(tool: RecallTool) -> str:
    example = {key: tool.schema["properties"][key]["examples"][0] for key in tool.schema["required"]}
    return f"expected an object like {json.dumps(example)}"
