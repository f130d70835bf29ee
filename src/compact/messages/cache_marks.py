"""Cache marks, with which a host tells the provider how far to cache a request: `cache_control` on Anthropic's blocks, and
cache points, which are blocks of their own (Bedrock Converse).

A request may have four, and hosts move them to their newest messages. So a mark belongs to the request and not to the
message: what compact writes in place of a message carries the mark that the host's own message carries now.

The frame with the ledger and the summary stands as it is until the next step. In a request of a host that uses marks it gets one of
its own if there is room, so that head, ledger and summary are read from the cache however far the host's marks have moved on. A
host that uses no marks gets none: it may not pay for caching, or its provider may cache by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from compact.messages.message import CACHE_POINT, FRAME_OPENS, POINTER_OPENS

MAX_MARKS = 4
"""The most marks of a request: its own, and those in its tools, its system prompt and its messages."""
_KEY = "cache_control"
_LIVES_S: Mapping[Any, float] = {None: 300.0, "5m": 300.0, "1h": 3600.0}
"""Seconds by what a mark says as `ttl`."""
_DEEPEST = 6
"""Marks stand on messages, on blocks and on blocks of results."""
_OURS = (POINTER_OPENS, *FRAME_OPENS)


def is_point(block: Any) -> bool:
    """Whether a block is a cache point: a mark that stands as a block of its own."""
    return isinstance(block, Mapping) and CACHE_POINT in block


def count_marks(*values: Any) -> int:
    """How many blocks in these values carry a mark: messages, a system prompt, tools."""
    return sum(1 for value in values for _ in _marked(value))


def has_mark(item: Any) -> bool:
    """Whether a message carries a mark. Fast: it is asked of every message."""
    if type(item) is not dict:
        return False
    content = item.get("content")
    if type(content) is not list:
        return False
    for block in content:
        if type(block) is dict:
            if block.get(_KEY) is not None or block.get(CACHE_POINT) is not None:
                return True
            inner = block.get("content")
            if type(inner) is list and any(type(b) is dict and b.get(_KEY) is not None for b in inner):
                return True
    return False


def mark_of_block(block: Any) -> dict[str, Any] | None:
    """The mark on a single block, as the key and value that it is there; None if it has none."""
    found = block.get(_KEY) if isinstance(block, Mapping) else None
    return None if found is None else {_KEY: found}


def without_marks(item: Any) -> Any:
    """The message without marks: the same object if it has none."""
    return _strip(item, repeat(True)) if has_mark(item) else item


def without_any_mark(value: Any, depth: int = 0) -> Any:
    """A copy of messages, blocks, a system prompt or tools without the marks and points inside them."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: without_any_mark(each, depth + 1) for key, each in value.items() if key != _KEY}
    if isinstance(value, list | tuple):
        return [without_any_mark(each, depth + 1) for each in value if not is_point(each)]
    return value


def as_unmarked(message: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a message without marks, and with a text for a single text block: a host makes a block of it to mark it."""
    found: dict[str, Any] = without_any_mark(message)
    content = found.get("content")
    if isinstance(content, list) and len(content) == 1 and _is_only_text(content[0]):
        found["content"] = content[0]["text"]
    return found


def _is_only_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.keys() == {"type", "text"} and block["type"] == "text"


def mark_of(item: Any) -> Any:
    """The last mark of a message, or None."""
    return next((block.get(_KEY, block.get(CACHE_POINT)) for block in reversed(list(_marked(item)))), None)


def longest_life(system: Any, tools: Any, items: Sequence[Any]) -> float:
    """The longest life in seconds that the marks of a request ask for; 0.0 if there are none."""
    marks = (
        block.get(_KEY) or block.get(CACHE_POINT)
        for value in (system, tools, *items)
        for block in _marked(value)
    )
    lives = (_LIVES_S.get(mark.get("ttl"), _LIVES_S[None]) for mark in marks if isinstance(mark, Mapping))
    return max(lives, default=0.0)


def with_mark(item: Any, mark: Any) -> Any:
    """A copy of a message with this mark on its last block that can carry one, and with no other."""
    item = without_marks(item)
    content = item.get("content") if isinstance(item, Mapping) else None
    if isinstance(content, str) and content.strip():
        return {**item, "content": [{"type": "text", "text": content, _KEY: mark}]}
    blocks = content if isinstance(content, list) else []
    if blocks and all(isinstance(block, Mapping) and "type" not in block for block in blocks):
        return {**item, "content": [*blocks, {CACHE_POINT: mark}]}
    for place in reversed(range(len(blocks))):
        block = blocks[place]
        if isinstance(block, Mapping) and _can_carry(block):
            return {**item, "content": [*blocks[:place], {**block, _KEY: mark}, *blocks[place + 1 :]]}
    return item


def keep_marks(given: Sequence[Any], standing: Sequence[Any], sources: Sequence[int | None]) -> list[Any]:
    """Take the marks off what replaced messages that the host no longer marks.

    What was written in place of a marked message carries its mark. As many of these marks stay as replaced messages are
    marked now, the oldest first. That of a frame stays in any case, see `mark_frame`.

    Args:
        given: The host's messages as they are now.
        standing: What stands for them.
        sources: For each of those its index in `given`, or None if compact wrote it.
    """
    own = set(sources)
    room = sum(has_mark(item) for place, item in enumerate(given) if place not in own)
    found = list(standing)
    for place, source in enumerate(sources):
        if source is None and has_mark(found[place]) and not _is_frame(found[place]):
            if room <= 0:
                found[place] = without_marks(found[place])
            room -= 1
    return found


def mark_frame(items: Sequence[Any], sources: Sequence[int | None], *beside: Any) -> list[Any]:
    """Mark the frame in front, if the host uses marks and the request has room for one more.

    It gets the mark of the next marked message, else the last one before it: along a request, lives must not grow.

    Args:
        items: The messages of a request.
        sources: For each of them its index in the host's list, or None if compact wrote it.
        beside: The system prompt and the tools.
    """
    found = list(items)
    frame = next((n for n, item in enumerate(found) if sources[n] is None and _is_frame(item)), None)
    if frame is None or has_mark(found[frame]) or not 0 < count_marks(*beside, *found) < MAX_MARKS:
        return found
    behind, before = found[frame + 1 :], [*map(_as_message, beside), *found[:frame]]
    mark = next((mark for item in behind if (mark := _first_mark(item)) is not None), None)
    if mark is None:
        mark = next((mark for item in reversed(before) if (mark := mark_of(item)) is not None), None)
    found[frame] = with_mark(found[frame], mark)
    return found


def _first_mark(item: Any) -> Any:
    return next((block.get(_KEY, block.get(CACHE_POINT)) for block in _marked(item)), None)


def _as_message(blocks: Any) -> Mapping[str, Any]:
    return {"content": blocks}


def _is_frame(item: Any) -> bool:
    content = item.get("content") if isinstance(item, Mapping) else None
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        content = content[0].get("text")
    return isinstance(content, str) and content.startswith(FRAME_OPENS)


def limit_marks(items: Sequence[Any], limit: int) -> Sequence[Any]:
    """Return the list with at most `limit` marks; the same object if it has no more than that.

    Marks on what compact wrote go first, because a host cannot take them off there. Then the oldest ones go.
    """
    marked = [block for item in items if has_mark(item) for block in _marked(item)]
    surplus = len(marked) - max(0, limit)
    if surplus <= 0:
        return items
    # By place: a host may use one cache point several times.
    going = set(sorted(range(len(marked)), key=lambda place: not _is_ours(marked[place]))[:surplus])
    goes = (place in going for place in range(len(marked)))
    return [_strip(item, goes) if has_mark(item) else item for item in items]


def make_room(items: Sequence[Any], whole: Any, *beside: Any) -> Sequence[Any]:
    """Return the messages with room for the mark of the whole request; the same object if it has none, or there is room.

    Args:
        items: The messages of a request.
        whole: The request's own `cache_control`. The provider finds the place for it, and counts it with the others.
        beside: The system prompt and the tools.
    """
    return items if whole is None else limit_marks(items, MAX_MARKS - 1 - count_marks(*beside))


def _marked(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every block with a mark, in order: of a message, of a list of blocks or tools, of a tool result."""
    blocks = value.get("content") if isinstance(value, Mapping) else value
    for block in blocks if isinstance(blocks, list | tuple) else ():
        if isinstance(block, Mapping):
            yield from _marked(block)
            if _is_marked(block):
                yield block


def _is_marked(block: Mapping[str, Any]) -> bool:
    return block.get(_KEY) is not None or block.get(CACHE_POINT) is not None


def _strip(item: Any, goes: Iterator[bool]) -> Any:
    """A copy without marks. `goes` says of each mark, in the order of `_marked`, whether it is taken off."""
    blocks = item.get("content")
    if not isinstance(blocks, list | tuple):
        return item
    stripped = [_strip_block(block, goes) if isinstance(block, Mapping) else block for block in blocks]
    return {**item, "content": [block for block in stripped if block is not None]}


def _strip_block(block: Mapping[str, Any], goes: Iterator[bool]) -> Mapping[str, Any] | None:
    found = _strip(block, goes) if any(True for _ in _marked(block)) else block
    if not _is_marked(block) or not next(goes):
        return found
    return None if is_point(block) else {key: value for key, value in found.items() if key != _KEY}


def _can_carry(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return bool(str(block.get("text") or "").strip()) if kind == "text" else kind in _CARRIERS


_CARRIERS = (
    "tool_use",
    "tool_result",
    "image",
    "document",
    "search_result",
)  # a tuple: a type may be of any type


def _is_ours(block: Mapping[str, Any]) -> bool:
    content = block.get("content", block.get("text"))
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        content = content[0].get("text")
    return isinstance(content, str) and content.startswith(_OURS)
