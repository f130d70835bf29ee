"""Scripts in files, for a stand-in in a process of its own: a list of answers by turn, in JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from compact.errors import ConfigError
from compact.tools.standins.script import Answer, Call, Fault, Refusal, Reply

T = TypeVar("T")

_HINT = (
    "An answer is a text, {text, calls: [{name, arguments}], thinking}, {status, message}, {fault: overloaded}, or a list of "
    "these for one turn, given try by try"
)


def read_script(path: Path) -> list[Answer | list[Answer]]:
    """Read the answers of a file.

    Raises:
        ConfigError: the file is not a list of answers; says which entry is wrong.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise ConfigError(f"the script {path.name} cannot be read: {problem}", hint=_HINT) from problem
    if not isinstance(given, list) or not given:
        raise ConfigError(f"the script {path.name} is not a list of answers", hint=_HINT)
    return [_read_turn(entry, f"{path.name}[{place}]") for place, entry in enumerate(given)]


def _read_turn(given: Any, where: str) -> Answer | list[Answer]:
    if isinstance(given, list) and given:
        return [_read_answer(each, f"{where}[{place}]") for place, each in enumerate(given)]
    return _read_answer(given, where)


def _read_answer(given: Any, where: str) -> Answer:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} is no answer", hint=_HINT)
    if "fault" in given:
        rest = {name: value for name, value in given.items() if name != "fault"}
        return _build(Fault, {**rest, "kind": given["fault"]}, where)
    if "status" in given:
        return _build(Refusal, given, where)
    calls = [
        _build(Call, each, f"{where}.calls[{place}]") for place, each in enumerate(given.get("calls") or ())
    ]
    return _build(Reply, {**given, "calls": calls}, where)


def _build(kind: type[T], given: Any, where: str) -> T:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    if not isinstance(given, Mapping) or not given.keys() <= known:
        raise ConfigError(f"{where} has other fields than {', '.join(sorted(known))}", hint=_HINT)
    try:
        return kind(**given)
    except TypeError as problem:
        raise ConfigError(f"{where} is incomplete: {problem}", hint=_HINT) from problem
