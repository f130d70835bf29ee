"""What the recovery tools tell a model about themselves, and the check of what it sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.archive.recall.answers import Limits, quoted
from compact.archive.recall.paths import Refused

_PLACES = (
    "/tool_outputs/ (outputs of tools) and /conversation_history/ (the conversation before each compaction)"
)
DESCRIPTIONS = {
    "read_file": "Read a file of this session's archive, line by line with numbers. "
    f"It sees {_PLACES}: what was moved out of your context to save room.",
    "grep": "Find lines in this session's archive by a regular expression (RE2: no lookaround, no backreferences). "
    "Answers like grep -n: path:line:text, with lines of context.",
    "ls": f"List the files of this session's archive. It has two folders: {_PLACES}.",
    "search": "Find passages in this session's archive by words, best first. "
    "Use it when you do not know the exact text; use grep when you do.",
}
_KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
_LARGEST = 10**12
_WORDS_FOR_TRUTH = {"true": True, "false": False}


def schema_of(name: str, limits: Limits) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    properties, required = _properties(limits)[name]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def checked(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that fit a schema. Null means the default, and a number in quotes is a number: models write both.

    Raises:
        Refused: an argument is unknown, missing, or of another kind.
    """
    properties: Mapping[str, Any] = schema["properties"]
    unknown = [quoted(str(key), 80) for key in arguments if key not in properties]
    if unknown:
        raise Refused(f"unknown argument {unknown[0]}; it takes {', '.join(properties)}")
    given = {key: value for key, value in arguments.items() if value is not None}
    missing = [key for key in schema["required"] if key not in given]
    if missing:
        example = properties[missing[0]]["examples"][0]
        raise Refused(f"the argument {missing[0]!r} is missing, for example {example!r}")
    return {key: _value(key, properties[key], value) for key, value in given.items()}


def _value(key: str, rule: Mapping[str, Any], value: Any) -> Any:
    kind = _KINDS[rule["type"]]
    if kind is int and isinstance(value, str | float) and not isinstance(value, bool):
        value = _integer(value)
    if kind is bool and isinstance(value, str):
        value = _WORDS_FOR_TRUTH.get(value.strip().lower(), value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refused(f"{key!r} must be {_article(rule['type'])}, got {quoted(str(value), 80)}")
    if kind is int:
        if value < rule["minimum"]:
            raise Refused(f"{key!r} must be {rule['minimum']} or more")
        return min(value, rule["maximum"])
    return value


def _integer(value: str | float) -> Any:
    """A whole number; anything else as it was."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    digits = value.strip().removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() and len(digits) < 16 else value


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "integer" else f"a {kind}"


def _properties(limits: Limits) -> dict[str, tuple[dict[str, Any], list[str]]]:
    where = {
        "type": "string",
        "description": "A file, or a folder: / is both folders.",
        "default": "/",
        "examples": ["/conversation_history"],
    }
    return {
        "read_file": (
            {
                "path": {
                    "type": "string",
                    "description": "The file, as ls and the pointers in the conversation name it.",
                    "examples": ["/conversation_history/step-001.md"],
                },
                "offset": _number("Lines to skip.", 0),
                "limit": _number("Lines to read at most.", limits.max_lines, 1, limits.max_lines),
                "column": _number("Characters of the first line to skip: pages through a very long line.", 0),
            },
            ["path"],
        ),
        "grep": (
            {
                "pattern": {
                    "type": "string",
                    "description": "A regular expression in RE2 syntax, matched against each line.",
                    "examples": ["def \\w+_total"],
                },
                "path": where,
                "ignore_case": {
                    "type": "boolean",
                    "description": "Whether capital letters do not matter.",
                    "default": False,
                },
                "context": _number("Lines to show before and after each match.", 1, 0, 10),
            },
            ["pattern"],
        ),
        "ls": ({"path": where, "offset": _number("Files to skip.", 0)}, []),
        "search": (
            {
                "query": {
                    "type": "string",
                    "description": "Words that stand near what you look for, in any order.",
                    "examples": ["timeout of the payment client"],
                },
                "limit": _number("Passages to show at most.", 5, 1, 20),
            },
            ["query"],
        ),
    }


def _number(description: str, default: int, minimum: int = 0, maximum: int = _LARGEST) -> dict[str, Any]:
    return {
        "type": "integer",
        "description": description,
        "default": default,
        "minimum": minimum,
        "maximum": maximum,
    }
