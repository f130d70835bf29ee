"""Characters that no provider accepts: lone surrogates, which UTF-8 does not have, and NULs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import MAX_LEVELS, is_plain, plain
from compact.messages.message import Message

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = "a lone surrogate (not valid UTF-8)"


def bad_text(text: str) -> str | None:
    """What is wrong with the characters of a string, or None."""
    if "\x00" in text:
        return "a NUL character"
    return _LONE_SURROGATE if _has_surrogate(text) else None


def bad_text_in(message: Message, dialect: Dialect) -> str | None:
    """What is wrong with the characters of a message, or None.

    A lone surrogate anywhere in it makes the whole request unreadable. A NUL is looked for in what the model reads; inside
    of JSON it is escaped, and stays.
    """
    for piece in dialect.pieces(message.origin):
        if isinstance(piece, str) and (problem := bad_text(piece)):
            return problem
    if is_plain(message.origin):
        return None
    return _LONE_SURROGATE if _has_surrogate(plain(message.origin)) else None


def _has_surrogate(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        return not value.isascii() and _SURROGATE.search(value) is not None
    if depth > MAX_LEVELS:
        return False
    if isinstance(value, Mapping):
        return any(_has_surrogate(each, depth + 1) for entry in value.items() for each in entry)
    return isinstance(value, list | tuple) and any(_has_surrogate(each, depth + 1) for each in value)
