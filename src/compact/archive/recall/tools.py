"""The tools by which an agent reads back what compaction took out of its context.

They see `/tool_outputs/` and `/conversation_history/` of one session and nothing else. Whatever a model asks, the answer
is a text that it can act on. It is bounded, and it begins with the marker by which compact recognises it, so that it is
never moved to the archive a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from inspect import Parameter, signature
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    create_model,
)

from compact.archive.reading import Reader
from compact.archive.recall.answers import AnswerLimits, CannotAnswer, answer, quote
from compact.archive.recall.search import MOST_PASSAGES
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
    "search": "Find what was said or shown earlier in this session, by words. Give the words that stand near what you need: "
    "names, numbers, identifiers, the things it is about; a full question is not needed. Answers with many short passages "
    "(about 1,000 tokens in all), each with its file, line, message and who said it. "
    "Use it when you do not know the exact text; use grep when you do.",
}
_LARGEST = 10**12
_NOT_THE_ARCHIVE = frozenset({"argument", "changed", "missing", "outside", "pruned", "unsupported"})
"""Reasons of errors that are about what was asked for. The archive itself can be read."""


@dataclass(frozen=True, slots=True)
class RecallTool:
    """A tool for a model. Call it and it answers with text, even if the arguments are wrong."""

    name: str
    description: str
    arguments: type[BaseModel]
    """Checks what a model sends, and converts what is nearly right."""
    function: Callable[..., str]
    """The plain function, for frameworks that read a signature. It expects arguments of the right types."""

    @property
    def schema(self) -> dict[str, Any]:
        """A copy of the JSON schema of its arguments."""
        schema = {"required": [], **self.arguments.model_json_schema()}
        del schema["title"]
        for rule in schema["properties"].values():
            del rule["title"]
        return schema

    def __call__(self, /, *values: Any, **arguments: Any) -> str:
        """Answer a call. Never raises because of its arguments or the archive. Values go by the order of the schema."""
        names = list(self.arguments.model_fields)
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
            return self.function(**self._check(arguments))
        except CannotAnswer as problem:
            return answer(f"{self.name}: {problem.why}", problem.lines)
        except ArchiveError as problem:
            blame = "" if problem.reason in _NOT_THE_ARCHIVE else "the archive cannot be read: "
            return answer(f"{self.name}: {blame}{problem}")

    def openai(self) -> dict[str, Any]:
        """Describe the tool for OpenAI's chat completions."""
        return {"type": "function", "function": self._describe("parameters")}

    def responses(self) -> dict[str, Any]:
        """Describe the tool for OpenAI's Responses."""
        return {"type": "function", **self._describe("parameters")}

    def anthropic(self) -> dict[str, Any]:
        """Describe the tool for Anthropic's messages."""
        return self._describe("input_schema")

    def _describe(self, schema_key: str) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, schema_key: self.schema}

    def _check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their types. Null means the default, and "5" is a number: models write both.

        Raises:
            CannotAnswer: an argument is unknown, missing, or of the wrong type.
        """
        known = self.arguments.model_fields
        unknown = [quote(str(key), 80) for key in arguments if key not in known]
        if unknown:
            raise CannotAnswer(f"unknown argument {unknown[0]}; it takes {', '.join(known)}")
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return dict(self.arguments.model_validate(given))
        except ValidationError as problem:
            error = problem.errors(include_url=False)[0]
        name = str(error["loc"][0])
        rule = self.schema["properties"][name]
        if error["type"] == "missing":
            raise CannotAnswer(f"the argument {name!r} is missing, for example {rule['examples'][0]!r}")
        if error["type"] == "greater_than_equal":
            raise CannotAnswer(f"{name!r} must be {rule['minimum']} or more")
        kind = "an integer" if rule["type"] == "integer" else f"a {rule['type']}"
        raise CannotAnswer(f"{name!r} must be {kind}, got {quote(str(given[name]), 80)}")


def recall_tools(
    archive: Reader, session_id: str, *, limits: AnswerLimits | None = None
) -> dict[str, RecallTool]:
    """Return the tools of one session by name: `read_file`, `grep`, `ls`, `search`.

    Making them reads nothing. Keep them as long as the session runs, because `search` remembers its index.
    """
    limits = limits or AnswerLimits()
    files = SessionFiles(archive, session_id, limits)
    return {
        name: RecallTool(name, _DESCRIPTIONS[name], arguments, getattr(files, name))
        for name, arguments in _argument_models(limits.max_lines).items()
    }


def offered_prefix(schemas: Iterable[Any]) -> str | None:
    """Return what stands before the recall tools' names in a request's tools. None: they are not among them.

    The tools are recognised by their descriptions, because an agent may have a `read_file` of its own. `schemas` are in
    the shape of any provider.
    """
    for schema in schemas:
        if isinstance(schema, Mapping):
            inner = schema.get("function")
            function = inner if isinstance(inner, Mapping) else schema
            name = str(function.get("name"))
            if function.get("description") == _DESCRIPTIONS["read_file"] and name.endswith("read_file"):
                return name.removesuffix("read_file")
    return None


@cache
def _argument_models(max_lines: int) -> dict[str, type[BaseModel]]:
    """Return the model of each tool's arguments. Names and defaults come from the function's signature."""
    place = _text("A file, or a folder: / is both folders.", "/conversation_history")
    kinds: dict[str, dict[str, Any]] = {
        "read_file": {
            "path": _text(
                "The file, as ls and the pointers in the conversation name it.",
                "/conversation_history/step-001.md",
            ),
            "offset": _number("Lines to skip."),
            "limit": _number("Lines to read at most.", 1, max_lines),
            "column": _number("Characters of the first line to skip: pages through a very long line."),
        },
        "grep": {
            "pattern": _text(
                "A regular expression in RE2 syntax, matched against each line.", "def \\w+_total"
            ),
            "path": place,
            "ignore_case": Annotated[bool, Field(description="Whether to ignore upper and lower case.")],
            "context": _number("Lines to show before and after each match.", 0, 10),
        },
        "ls": {"path": place, "offset": _number("Files to skip.")},
        "search": {
            "query": _text(
                "Words that stand near what you need, in any order: names, numbers, identifiers.",
                "payment client timeout seconds",
            ),
            "limit": _number("Passages to show at most.", 1, MOST_PASSAGES),
            "who": _text("Only what this speaker said: user, agent, tool, or a tool's name.", "user"),
        },
    }
    models = {}
    for tool, arguments in kinds.items():
        defaults = {
            name: each.default for name, each in signature(getattr(SessionFiles, tool)).parameters.items()
        }
        defaults |= {"limit": max_lines} if tool == "read_file" else {}
        fields: dict[str, Any] = {
            name: (kind, ... if defaults[name] is Parameter.empty else defaults[name])
            for name, kind in arguments.items()
        }
        models[tool] = create_model(tool, __config__=ConfigDict(extra="forbid"), **fields)
    return models


def _text(description: str, example: str) -> Any:
    return Annotated[InstanceOf[str], Field(description=description, examples=[example])]


def _number(description: str, least: int = 0, most: int = _LARGEST) -> Any:
    """Return the type of an integer argument. A larger one than `most` is taken as `most`."""
    shown: Any = {} if most == _LARGEST else {"maximum": most}
    rule = Field(ge=least, description=description, json_schema_extra=shown)
    return Annotated[int, rule, BeforeValidator(_reject_bool), AfterValidator(partial(min, most))]


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a boolean is not an integer")
    return value


def run(tools: Mapping[str, RecallTool], name: str, arguments: str | Mapping[str, Any] | None = None) -> str:
    """Answer a model's call by the tool's name and its arguments, as JSON text or as an object.

    Never raises because of what the model wrote. The answer says what is wrong with it.
    """
    tool = tools.get(name)
    if tool is None:
        return answer(f"there is no tool {quote(name)}; there are {', '.join(sorted(tools))}")
    values: Any = arguments or {}
    if isinstance(values, str):
        try:
            values = json.loads(values)
        except (ValueError, RecursionError) as problem:
            return answer(f"{name}: the arguments are not JSON ({str(problem)[:200]}); {_expected(tool)}")
    if not isinstance(values, Mapping):
        return answer(f"{name}: the arguments are {quote(str(values), 80)}; {_expected(tool)}")
    return tool.answer(values)


def no_session(name: str) -> str:
    """Return a tool's answer where no session is known, so that there is nothing it may read."""
    return answer(
        f"{name}: no session is known here, so nothing was read. The host has to name one: recall_tools(session_id), or "
        "session_id= on the integration"
    )


def _expected(tool: RecallTool) -> str:
    example = {key: tool.schema["properties"][key]["examples"][0] for key in tool.schema["required"]}
    return f"expected an object like {json.dumps(example)}"
