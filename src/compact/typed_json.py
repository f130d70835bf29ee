"""Frozen dataclasses from plain JSON values and back, checked by their own type hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON values. What its `OPTIONAL` names is left out where it is None."""
    optional: frozenset[str] = getattr(value, "OPTIONAL", frozenset())
    found = {}
    for each in fields(value):
        entry = getattr(value, each.name)
        if entry is None and each.name in optional:
            continue
        found[each.name] = plain(entry) if hasattr(entry, "__dataclass_fields__") else entry
    return found


@cache
def hints(kind: Any) -> dict[str, Any]:
    """The type of each field, in order."""
    names = {each.name for each in fields(kind)}
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def build(kind: Any, data: Mapping[str, Any], where: str) -> Any:
    """The dataclass that `plain` wrote. Entries that it does not know are passed over.

    Raises:
        ValueError: a field is missing or of another type; says which.
    """
    optional: frozenset[str] = getattr(kind, "OPTIONAL", frozenset())
    wanted = hints(kind)
    return kind(
        **{
            name: checked(data, name, hint, where)
            for name, hint in wanted.items()
            if name in data or name not in optional
        }
    )


def checked(data: Mapping[str, Any], name: str, hint: Any, where: str) -> Any:
    """The entry of that name, if it is of the type that `hint` says.

    Raises:
        ValueError: it is missing or of another type; says which.
    """
    if name not in data:
        raise ValueError(f"{where}: {name!r} is missing")
    value = data[name]
    for choice in choices(hint):
        if hasattr(choice, "__dataclass_fields__"):
            if isinstance(value, Mapping):
                return build(choice, value, f"{where}.{name}")
        elif get_origin(choice) is Literal:
            if value in get_args(choice):
                return value
        elif choice is float:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
        elif isinstance(value, choice) and not (choice is int and isinstance(value, bool)):
            return value
    raise ValueError(f"{where}: {name!r} must be {_described(hint)}, got {type(value).__name__}")


def choices(hint: Any) -> tuple[Any, ...]:
    """The members of a union; of any other type the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _described(hint: Any) -> str:
    def one(choice: Any) -> str:
        if get_origin(choice) is Literal:
            return "one of " + ", ".join(map(repr, get_args(choice)))
        return "null" if choice is NoneType else str(getattr(choice, "__name__", choice))

    return " or ".join(map(one, choices(hint)))
