"""What a file may set that nobody named.

Whoever can put a file into a folder can put a `compact.yaml` there: a cloned repository, an unpacked archive, another user of
/tmp. So a file that was only found in the current folder may tune how a session is compacted, and may not say where anything
is sent, stored or read, which words a model is given, or what is masked.

The right follows from the type of a field, so that a new field has none until someone decides otherwise: numbers and booleans
have it, everything in `redaction` lacks it, and a text or a list needs a mark beside its type (`CHOICE`, `GROWS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from compact.config.problems import WrongSetting
from compact.config.sections import CHOICE, GROWS, SETTINGS, RedactionConfig
from compact.config.sources import Given, variable_of

Right: TypeAlias = Literal["any", "grow", "none"]
"""What a file that was found may do to a field: set it, add to its default, or nothing."""

_PLAIN = ("integer", "number", "boolean")
_NEVER = (RedactionConfig,)
"""Sections that such a file may not touch at all."""


@cache
def right_to(path: str) -> Right:
    """Return what a file that was found in the current folder may do to a setting."""
    owner, name = SETTINGS[path], path.rpartition(".")[2]
    schema: Mapping[str, Any] = owner.model_json_schema()["properties"][name]
    if owner in _NEVER:
        return "none"
    if GROWS.items() <= schema.items():
        return "grow"
    choices = [choice for choice in schema.get("anyOf", [schema]) if choice.get("type") != "null"]
    return "any" if all(map(_is_harmless, choices)) else "none"


def _is_harmless(schema: Mapping[str, Any]) -> bool:
    """Whether a value of this kind is a number, a boolean, a closed choice, or a mapping of names to these."""
    if CHOICE.items() <= schema.items():
        return True
    if schema.get("type") == "object":
        entries = schema.get("additionalProperties")
        return isinstance(entries, Mapping) and _is_harmless(entries)
    return schema.get("type") in _PLAIN


def refused_settings(given: Mapping[str, Given], file: str) -> list[WrongSetting]:
    """Return the settings that a file may not set, because it was only found. Unknown names are left to the model."""
    found = []
    for path, item in given.items():
        if path not in SETTINGS:
            continue
        right = right_to(path)
        if right == "none" or (right == "grow" and not _adds_to_default(path, item.value)):
            found.append(WrongSetting(path, _sentence(path, item, file, right)))
    return found


def _adds_to_default(path: str, value: Any) -> bool:
    default = SETTINGS[path].model_fields[path.rpartition(".")[2]].default
    return isinstance(value, list) and all(name in value for name in default)


def _sentence(path: str, item: Given, file: str, right: Right) -> str:
    what = "must keep what it has by default" if right == "grow" else "may not be set"
    return (
        f"{path} {what} in a file that was only found in the current folder ({item.origin}); "
        f"to trust the file, name it: --config {file}, or set {variable_of(path)}"
    )
