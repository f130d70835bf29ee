"""Messages that are plain objects: anything with a `role` and a `content`, such as a host's own dataclass."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from typing import Any

_ABSENT = object()
_CONTENT = (str, list, tuple, type(None))
_DATA = (str, bool, int, float, list, tuple, Mapping)
"""What can be part of a message. Anything else, such as a time, is the host's own and stays with its object."""


def fields_of(item: Any) -> dict[str, Any] | None:
    """Return the public attributes of a plain message object as a dict; None if it is not one.

    Its `role` is a text or an enum of texts, its `content` a text, a list of blocks, or None. Attributes that are None, or
    no data that a message could have, are left out.
    """
    if isinstance(item, type | str | bytes):
        return None
    try:
        role, content = getattr(item, "role", None), getattr(item, "content", _ABSENT)
        role = role.value if isinstance(role, Enum) else role
        if not isinstance(role, str) or not isinstance(content, _CONTENT):
            return None
        names = dict.fromkeys(("role", "content", *_names(item)))
        found = {name: getattr(item, name, None) for name in names}
    except Exception:  # a property of the host may raise anything
        return None
    found["role"] = role
    return {name: value for name, value in found.items() if isinstance(value, _DATA) or name == "content"}


def with_fields(item: Any, data: Mapping[str, Any]) -> Any:
    """Return a copy of a plain message object with these attributes; the data itself if there can be no such object."""
    before = fields_of(item)
    if before is None:
        return data
    changed = {name: value for name, value in data.items() if name not in before or before[name] != value}
    gone = [name for name in before if name not in data and name not in ("role", "content")]
    changed.update({name: _default(item, name) for name in gone})
    if isinstance(item.role, Enum) and "role" in changed:
        try:
            changed["role"] = type(item.role)(changed["role"])
        except ValueError:
            return data
    try:
        if is_dataclass(item) and not isinstance(item, type):
            return replace(item, **changed)
        if isinstance(item, tuple) and hasattr(item, "_replace"):
            return item._replace(**changed)
        made = copy.copy(item)
        for name, value in changed.items():
            setattr(made, name, value)
    except (TypeError, ValueError, AttributeError):
        return data
    return made


def in_form_of(given: Any, found: list[Any]) -> list[Any]:
    """Give new messages, which are dicts, the form of a given one: a list of plain objects stays one."""
    known = None if isinstance(given, Mapping) or hasattr(given, "model_dump") else fields_of(given)
    if known is None or not any(type(item) is dict for item in found):
        return found
    return [with_fields(given, item) if type(item) is dict else item for item in found]


def _default(item: Any, name: str) -> Any:
    """What an attribute is without a value: the default of its class, or None."""
    for each in fields(item) if is_dataclass(item) else ():
        if each.name == name and each.default_factory is not MISSING:
            return each.default_factory()
        if each.name == name and each.default is not MISSING:
            return each.default
    return getattr(item, "_field_defaults", {}).get(name)


def _names(item: Any) -> Iterable[str]:
    if is_dataclass(item):
        found: Iterable[str] = [each.name for each in fields(item)]
    elif isinstance(item, tuple):
        found = getattr(item, "_fields", ())
    else:
        slots = [getattr(kind, "__slots__", ()) for kind in type(item).__mro__]
        found = [
            *getattr(item, "__dict__", ()),
            *(name for names in slots for name in ([names] if isinstance(names, str) else names)),
        ]
    return [name for name in found if not name.startswith("_")]
