"""Wrong settings, in sentences: what a field allows, what it got, and which name was probably meant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Any

from pydantic import BaseModel, ValidationError

from compact.errors import ConfigError
from compact.messages import to_json

_SHOWN_CHARS = 60
"""A rejected value is echoed up to this length."""
MOST_SHOWN = 20
"""The most wrong settings that an error lists. It counts the others."""

_OTHER_NAMES = dict.fromkeys(
    (
        "window",
        "window_tokens",
        "context_window",
        "context_length",
        "context_size",
        "max_context",
        "max_tokens",
        "max_input_tokens",
    ),
    "max_context_tokens",
)
"""What other programs call a setting, where the nearest name would be another one."""


@dataclass(frozen=True, slots=True)
class WrongSetting:
    """One wrong setting: its dotted path and a sentence about it."""

    path: str
    text: str
    involves: tuple[str, ...] = ()
    """Paths of other settings that it conflicts with."""


class WrongPart(ValueError):
    """A validator's own sentence about a value: `where` in the field (`[2]`), and what is wrong."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(text)
        self.where = where


@dataclass(frozen=True, slots=True)
class Kind:
    """What one field accepts, read from its JSON schema."""

    types: frozenset[str]
    """JSON types: boolean, integer, number, string, array, object, null."""
    allowed: str
    """The end of the sentence "x must be ..."."""
    is_secret: bool
    """A rejected value is not echoed. An address may carry a password."""
    has_plain_items: bool
    """The field accepts a list of plain names, which an environment variable separates by commas."""


@cache
def kind_of(owner: type[BaseModel], name: str) -> Kind:
    """Return what a field of `owner` accepts."""
    schema = owner.model_json_schema()["properties"][name]
    choices = schema.get("anyOf", [schema])
    main = next(choice for choice in choices if choice["type"] != "null")
    types = frozenset(choice["type"] for choice in choices)
    allowed = schema.get("description") or _describe(main)
    return Kind(
        types=types,
        allowed=f"{allowed} or null" if "null" in types else allowed,
        is_secret=main.get("writeOnly", False),
        has_plain_items=any(choice.get("items", {}).get("type") == "string" for choice in choices),
    )


def _describe(schema: Mapping[str, Any]) -> str:
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema["type"] == "array":
        return "a list, each " + _describe(schema["items"])
    return {"boolean": "true or false"}[schema["type"]]


def config_error(problems: Sequence[WrongSetting]) -> ConfigError:
    """Return one error for all problems: a single sentence, or a list of the first `MOST_SHOWN`."""
    if len(problems) == 1:
        message = problems[0].text
    else:
        lines = [each.text for each in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            lines.append(f"and {len(problems) - MOST_SHOWN:,} more")
        message = f"{len(problems)} settings are wrong:" + "".join(f"\n  {line}" for line in lines)
    return ConfigError(message, path=problems[0].path, problems=tuple(problems))


def field_problems(
    owner: type[BaseModel], section: str, error: ValidationError, values: Mapping[str, Any]
) -> list[WrongSetting]:
    """Return one problem per rejected field, however many parts of its value are wrong."""
    prefix = f"{section}." if section else ""
    problems = []
    details = {str(detail["loc"][0]): detail for detail in reversed(error.errors(include_url=False))}
    for name in reversed(details):
        path = prefix + name
        reason = details[name].get("ctx", {}).get("error")
        if isinstance(reason, WrongPart):
            text = f"{path}{reason.where}: {reason}"
        elif name in owner.model_fields:
            kind = kind_of(owner, name)
            got = show(values[name], is_secret=kind.is_secret)
            text = f"{path} must be {_limit(details[name]) or kind.allowed}, got {got}"
        else:
            text = unknown_setting(path, [prefix + field for field in owner.model_fields])
        problems.append(WrongSetting(path, text))
    return problems


def _limit(detail: Any) -> str:
    """What a number may be at most, if it is only too large. Descriptions do not repeat the largest number of all."""
    if detail["type"] != "less_than_equal" or detail["ctx"]["le"] <= 1:
        return ""
    return f"at most {detail['ctx']['le']:,}"


def unknown_setting(path: str, known: Iterable[str]) -> str:
    """Return the sentence about an unknown name, with the nearest known one.

    A name of the same section is preferred. A right name in the wrong section is found too.
    """
    known = list(known)
    if _OTHER_NAMES.get(path) in known:
        return f"{path} is not a setting; did you mean {_OTHER_NAMES[path]}?"
    section, _, leaf = path.rpartition(".")
    same = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == section}
    other = {name.rpartition(".")[2]: name for name in reversed(known)}
    for candidates, cutoff in ((same, 0.6), (other, 0.8)):
        near = get_close_matches(leaf, candidates, n=1, cutoff=cutoff)
        if near:
            return f"{path} is not a setting; did you mean {candidates[near[0]]}?"
    where = f"{section} has" if section else "there are"
    return f"{path} is not a setting; {where} {', '.join(same) or 'none of that kind'}"


def show(value: Any, *, is_secret: bool = False) -> str:
    """Return a value as a file would hold it, shortened. A secret value is described by type and length only."""
    if is_secret and value is not None:
        return f"a text of {len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, str | int | list | tuple | Mapping | NoneType):
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):  # YAML allows dates as keys and recursive lists
            text = to_json(value)
    else:
        text = f"{value} ({type(value).__name__})"
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."
