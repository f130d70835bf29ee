"""Numbers that JSON does not know: NaN and the infinities. They are written as text, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_DEEPEST = 200


def number_text(value: float) -> str:
    """Return the text that stands for a number that JSON does not know: "NaN", "Infinity" or "-Infinity"."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def unknown_number(value: Any, depth: int = 0) -> str:
    """Return the text of the first number in a value that JSON does not know; empty if there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else number_text(value)
    if isinstance(value, str) or depth > _DEEPEST:
        return ""
    if isinstance(value, dict | Mapping):
        entries: Any = value.values()
    elif isinstance(value, list | tuple):
        entries = value
    else:
        return ""
    for entry in entries:
        if type(entry) is not str and (found := unknown_number(entry, depth + 1)):
            return found
    return ""


def with_known_numbers(value: Any, depth: int = 0) -> Any:
    """Return a value with `number_text` in the place of every number that JSON does not know."""
    if isinstance(value, float) and not math.isfinite(value):
        return number_text(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: with_known_numbers(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [with_known_numbers(entry, depth + 1) for entry in value]
    return value
