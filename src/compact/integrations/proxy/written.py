"""What compact wrote into a list, in the words that fit the agent that reads it.

A pointer names the tools that read the archive as the request's own tools call them. An agent without these tools gets the
same text without the way to read it: a name that it cannot use would only make it try.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from compact.integrations.offering import name_tools
from compact.messages.message import LEDGER_OPENS, POINTER_OPENS, SUMMARY_OPENS

_WAY = re.compile(r' Read it with read_file\("[^"\n]*"\), search it with grep\("\.\.\.", "[^"\n]*"\)\.')
_PLACE = re.compile(r" is in /\S+?(?=[,:])")
_WHOLE = re.compile(r"; the whole is in /[^\s\]]+")
_ARCHIVED = re.compile(r"\n+\[Archived: [^\n]*\](?=\n)")
_MORE = re.compile(r'(\[\d[\d,]* more that stand): read_file\("[^"\n]*"\)\]')


def say_to(kept: Sequence[Any], given: Sequence[Any], tools: Any, *, has_reader: bool) -> Sequence[Any]:
    """Return the list to send. `given` is the client's, whose own messages stay as they are."""
    if has_reader:
        return name_tools(kept, given, tools)
    own = set(map(id, given))
    return [item if id(item) in own else _without_reading(item) for item in kept]


def _without_reading(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_reading(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_reading(each) for each in value]
    if not isinstance(value, str):
        return value
    if value.startswith(POINTER_OPENS):
        first, newline, rest = value.partition("\n")
        return _PLACE.sub(" was shortened", _WAY.sub("", first), count=1) + newline + rest
    if value.startswith((SUMMARY_OPENS, LEDGER_OPENS)):
        return _ARCHIVED.sub("", _MORE.sub(r"\1]", value))
    return _WHOLE.sub("", value) if POINTER_OPENS in value else value
