"""JSON reports read back: of `compact replay` or `compact harness`, and nothing that only looks like one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from compact.errors import TranscriptError
from compact.tools.replay.running import FORMAT

FAULTS = ("failed", "illegal", "over_budget", "control")
_TOO_LARGE = 1e18
"""No count of a run comes near; arithmetic on larger whole numbers can overflow."""
_HINT = "Expected what `compact replay --report x.json` or `compact harness --report x.json` wrote"

_Rule = tuple[str, Callable[[Any], bool]]


def read_report(path: Path) -> dict[str, Any]:
    """A JSON report of either command, with everything that a comparison looks at.

    Raises:
        TranscriptError: the file cannot be read, is no such report, or a part of it is missing or of a wrong type.
    """
    data = _parsed(path)
    problem = None
    if isinstance(data, dict) and data.get("format") == FORMAT:
        problem = _problem_of_replay(data)
    elif isinstance(data, dict) and ("checks" in data or "sessions" in data):
        problem = _problem_of_harness(data)
    else:
        raise TranscriptError(f"cannot read {path}: it is no report", hint=_HINT, path=str(path))
    if problem:
        raise TranscriptError(
            f"cannot read {path}: it is no whole report: {problem}", hint=_HINT, path=str(path)
        )
    return data


def is_replay(data: Mapping[str, Any]) -> bool:
    """Whether it is a report of replay; else it is one of the harness."""
    return data.get("format") == FORMAT


def _parsed(path: Path) -> Any:
    try:
        text = path.read_bytes()
        if not text.strip():
            raise TranscriptError(f"cannot read {path}: it is empty", hint=_HINT, path=str(path))
        return json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise TranscriptError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}, line {line}" if line else str(path)
        raise TranscriptError(
            f"cannot read {where}: it is not JSON: {error}", path=str(path), line=line
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _problem_of_replay(data: Mapping[str, Any]) -> str | None:
    return _problem_in_list(data, "summary", "", _SUMMARY) or _problem_in_list(
        data, "sessions", "", _SESSION, runs=_RUN
    )


def _problem_of_harness(data: Mapping[str, Any]) -> str | None:
    if "sessions" not in data:
        return _problem_of_one(data, "", _STABILITY) or _problem_in_list(data, "checks", "", _CHECK)
    named = {"file": _TEXT, "session": _TEXT, **_STABILITY}
    return _problem_in_list(data, "sessions", "", named, checks=_CHECK)


def _problem_in_list(
    data: Mapping[str, Any], key: str, where: str, rules: Mapping[str, _Rule], **inside: Mapping[str, _Rule]
) -> str | None:
    """What is wrong with a list of objects; `inside` says what each of them has lists of."""
    found = data.get(key)
    if not isinstance(found, list):
        return f"{where}{key} {_given(data, key)}, not a list"
    for index, one in enumerate(found):
        place = f"{where}{key}[{index}]"
        if not isinstance(one, dict):
            return f"{place} is {type(one).__name__}, not an object"
        problem = _problem_of_one(one, f"{place}.", rules)
        for inner, inner_rules in inside.items():
            problem = problem or _problem_in_list(one, inner, f"{place}.", inner_rules)
        if problem:
            return problem
    return None


def _problem_of_one(one: Mapping[str, Any], where: str, rules: Mapping[str, _Rule]) -> str | None:
    for key, (expected, holds) in rules.items():
        if not holds(one.get(key)) or key not in one:
            return f"{where}{key} {_given(one, key)}, not {expected}"
    return None


def _given(data: Mapping[str, Any], key: str) -> str:
    return f"is {data[key]!r:.40}" if key in data else "is missing"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE


_NUMBER: _Rule = ("a number", _is_number)
_MAYBE_NUMBER: _Rule = ("a number or null", lambda value: value is None or _is_number(value))
_TEXT: _Rule = ("text", lambda value: isinstance(value, str))
_MAYBE_TEXT: _Rule = ("text or null", lambda value: value is None or isinstance(value, str))
_LIST: _Rule = ("a list", lambda value: isinstance(value, list))
_OBJECTS: _Rule = (
    "a list of objects",
    lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value),
)
_VERDICT: _Rule = ("true or false", lambda value: isinstance(value, bool))

_SUMMARY: Mapping[str, _Rule] = {
    "policy": _TEXT,
    **dict.fromkeys((*FAULTS, "input_tokens", "steps"), _NUMBER),
    **dict.fromkeys(("cost", "cost_cached", "retention"), _MAYBE_NUMBER),
}
_SESSION: Mapping[str, _Rule] = {"file": _TEXT, "session": _TEXT, "error": _MAYBE_TEXT}
_RUN: Mapping[str, _Rule] = {
    **dict.fromkeys(("illegal", "over_budget", "control"), _LIST),
    "error": _MAYBE_TEXT,
}
_STABILITY: Mapping[str, _Rule] = {"tokens": _NUMBER, "kept": _OBJECTS, "dropped": _OBJECTS}
_CHECK: Mapping[str, _Rule] = {"name": _TEXT, "passed": _VERDICT}
