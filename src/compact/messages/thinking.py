"""Signed thinking: how it is taken out of a message, and whether what stands before a block is what it was made with. Pure.

Some models bind a block to its prefix: the system prompt, the tools, and every message before it. After an edit there, that block
and all later ones are refused. Cache marks, other thinking and deferred tools are no part of a prefix. Blocks may be left out from
the first one on, never between others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages.cache_marks import as_unmarked, without_any_mark
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import plain
from compact.messages.message import Message, Reasoning, to_json


@dataclass(frozen=True, slots=True)
class Request:
    """What goes to a provider, as far as thinking is bound to it. None: not given, so that it is not compared."""

    messages: Sequence[Any]
    system: Any = None
    tools: Any = None
    is_whole: bool = False
    """Whether it was given as a request body, so that a missing system prompt is an empty one."""

    @classmethod
    def of(cls, given: Any) -> Request:
        """Read a list of messages, or a request body with `messages` or `input`."""
        if not isinstance(given, Mapping):
            return cls(given)
        key = "messages" if "messages" in given else "input"
        system, said = given.get("system", given.get("instructions")), given.get(key) or []
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        return cls(messages, system, given.get("tools"), is_whole=True)


def without_thinking(message: Message) -> Message | None:
    """The message without its signed thinking: the same object if it has none, None if it would say nothing.

    Nothing that the model said or called is touched.
    """
    if not message.signed:
        return message
    parts = tuple(part for part in message.parts if not (isinstance(part, Reasoning) and part.signed))
    if all(isinstance(part, Reasoning) for part in parts):
        return None
    return message.with_parts(parts)


def open_loop(messages: Sequence[Message]) -> int:
    """Where the tool loop begins that the next reply continues; the length of the list if none is open."""
    if not messages or not (messages[-1].results or messages[-1].calls):
        return len(messages)
    start = len(messages)
    while start and not messages[start - 1].starts_turn:
        start -= 1
    return start


@dataclass(frozen=True, slots=True)
class Unbound:
    """A block that its provider would refuse."""

    index: int
    """The index of its message."""
    why: str


def find_unbound(now: Request, before: Request, dialect: Dialect) -> Iterator[Unbound]:
    """Find every signed block of a request whose prefix is not what it was in the request before, in order.

    A block that stands in both is compared with its own place there. A new one was made behind the whole request before.
    """
    ours, theirs = _blocks(now.messages, dialect), _blocks(before.messages, dialect)
    if not ours:
        return
    known = {block: (place, index) for place, (index, block) in enumerate(theirs)}
    beside = _beside(now) == _beside(before) or not (now.is_whole and before.is_whole)
    same = _count_same(now.messages, before.messages, dialect) if beside else -1
    previous: str | None = None
    for index, block in ours:
        place, there = known.get(block, (len(theirs), len(before.messages)))
        prefix = theirs[place - 1][1] if place else None
        if same < 0:
            yield Unbound(index, "the system prompt or the tools are not what they were when it was made")
        elif index < there or same < there or (block in known and index != there):
            yield Unbound(index, "a message before it is not what it was when it was made")
        elif previous is not None and block not in known and previous not in known:
            pass  # both are new: nothing is known of what stood between them
        elif previous is not None and previous != prefix:
            yield Unbound(index, "a thinking block before it was left out or moved")
        previous = block


def _blocks(messages: Sequence[Any], dialect: Dialect) -> list[tuple[int, str]]:
    """Every signed block as text, with the index of its message."""
    found = []
    for index, item in enumerate(messages):
        for part in dialect.read(item).parts:
            if isinstance(part, Reasoning) and part.signed:
                found.append((index, _text_of(part, item)))
    return found


def _text_of(part: Reasoning, item: Any) -> str:
    """What makes a block this one. In a dialect where a field holds them, that is the field."""
    origin = part.origin
    return to_json(plain(item).get(origin) if isinstance(origin, str) else origin)


def _count_same(now: Sequence[Any], before: Sequence[Any], dialect: Dialect) -> int:
    """How many messages at the beginning are the same for thinking that follows them."""
    count = 0
    for one, other in zip(now, before, strict=False):
        if one is not other and bound_form(one, dialect) != bound_form(other, dialect):
            break
        count += 1
    return count


def _beside(request: Request) -> tuple[Any, Any]:
    return bound_beside(request.system), bound_beside(request.tools)


def bound_beside(value: Any) -> Any:
    """A system prompt or tools as thinking is bound to them: without cache marks and deferred tools."""
    if isinstance(value, str):
        value = [{"type": "text", "text": value}]
    if not isinstance(value, list | tuple):
        return without_any_mark(value) or []
    return [
        without_any_mark(each)
        for each in value
        if not (isinstance(each, Mapping) and each.get("defer_loading"))
    ]


def bound_form(item: Any, dialect: Dialect) -> Any:
    """A message as thinking behind it is bound to it: without thinking and cache marks, a single text as itself."""
    message = dialect.read(item)
    bare = without_thinking(message)
    return as_unmarked(plain(item if bare is message else {} if bare is None else dialect.write(bare)))
