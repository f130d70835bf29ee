"""Mark messages that compaction must not touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from compact.errors import MessageError
from compact.messages.dialects.wire import marks, plain, rebuild

__all__ = ["mark_protected", "unmarked"]

M = TypeVar("M")

_MARKS = {"protected", "injected"}


def mark_protected(message: M, protected: bool = True) -> M:
    """Return a copy of a message, in any dialect, that is never pruned, cut, summarized or changed.

    The mark is `meta["protected"] = True` on the copy; the given message stays as it is. One that is marked already is
    returned itself. With `protected` False, the mark is removed.

    Raises:
        MessageError: it is not a message, or its class has no room for the mark.
    """
    try:
        data = plain(message)
    except ValueError as problem:
        raise MessageError(
            f"only a message can be protected: {problem}",
            hint="Pass one message: a dict, an SDK object with model_dump(), or an object with 'role' and 'content'",
        ) from problem
    if marks(data).get("protected", False) is protected:
        return message
    changed = dict(data)
    for key in ("meta", "metadata"):
        notes = data.get(key)
        if isinstance(notes, Mapping) and "protected" in notes:
            changed[key] = {name: value for name, value in notes.items() if name != "protected"}
    if protected:
        notes = changed.get("meta")
        if notes is not None and not isinstance(notes, Mapping):
            raise MessageError(
                f"the message cannot be protected: its 'meta' is {type(notes).__name__}, not a mapping"
            )
        changed["meta"] = {**(notes or {}), "protected": True}
    made: M = rebuild(message, changed)
    if marks(plain(made)).get("protected", False) is not protected or type(made) is not type(message):
        raise MessageError(
            f"the message cannot be protected: {type(message).__name__} takes no 'meta'",
            hint="Pass the message as a dict",
        )
    return made


def unmarked(messages: Sequence[M]) -> list[M]:
    """Return the messages as a provider takes them: without a `meta` that holds nothing but compact's own marks.

    A message without such marks is returned as the same object. A `meta` with anything else in it is the host's own.
    """
    return [_without_marks(message) for message in messages]


def _without_marks(message: Any) -> Any:
    if type(message) is dict and "meta" not in message:
        return message
    try:
        data = plain(message)
    except ValueError:
        return message
    notes = data.get("meta")
    if not isinstance(notes, Mapping) or not notes or not notes.keys() <= _MARKS:
        return message
    return rebuild(message, {name: value for name, value in data.items() if name != "meta"})
