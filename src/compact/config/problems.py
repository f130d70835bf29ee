"""What is wrong with a configuration, in sentences, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from compact.config.kinds import kind_of
from compact.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong setting: its dotted path, and the sentence about it."""

    path: str
    text: str
    involves: tuple[str, ...] = ()
    """Paths of other settings that it disagrees with."""


def config_error(problems: Sequence[Problem]) -> ConfigError:
    """The error for one problem is its sentence; several are listed below each other."""
    if len(problems) == 1:
        message = problems[0].text
    else:
        message = f"{len(problems)} settings are wrong:" + "".join(
            f"\n  {problem.text}" for problem in problems
        )
    return ConfigError(message, path=problems[0].path, problems=tuple(problems))


def field_problems(
    owner: type[BaseModel], section: str, error: ValidationError, values: Mapping[str, Any]
) -> list[Problem]:
    """One problem per field that pydantic refused, however many parts of its value are wrong."""
    names = dict.fromkeys(
        str(detail["loc"][0]) for detail in error.errors(include_url=False, include_context=False)
    )
    prefix = f"{section}." if section else ""
    problems = []
    for name in names:
        path = prefix + name
        if name in owner.model_fields:
            text = kind_of(owner, name).refuse(path, values[name])
        else:
            text = unknown(path, [prefix + field for field in owner.model_fields])
        problems.append(Problem(path, text))
    return problems


def unknown(path: str, known: Iterable[str]) -> str:
    """The sentence about a name that is no setting, with the nearest one that is.

    A neighbour in the same section is preferred; a right name in the wrong section is found too.
    """
    known = list(known)
    section, _, leaf = path.rpartition(".")
    same = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == section}
    other = {name.rpartition(".")[2]: name for name in reversed(known)}
    for candidates, cutoff in ((same, 0.6), (other, 0.8)):
        near = get_close_matches(leaf, candidates, n=1, cutoff=cutoff)
        if near:
            return f"{path} is not a setting; did you mean {candidates[near[0]]}?"
    where = f"{section} has" if section else "there are"
    return f"{path} is not a setting; {where} {', '.join(same) or 'none of that kind'}"
