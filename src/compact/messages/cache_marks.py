"""Cache marks: `cache_control` on content blocks, with which a host tells Anthropic how far to cache a request.

A request may have four, and hosts move them to their newest messages. So a mark belongs to the request and not to the
message: what compact writes in place of a message carries the mark that the host's own message carries now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.messages.message import POINTER_OPENS, SUMMARY_OPENS

MAX_MARKS = 4
"""The most marks of a request: in its tools, its system prompt and its messages together."""
_KEY = "cache_control"
_OURS = (POINTER_OPENS, SUMMARY_OPENS)


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
            if block.get(_KEY) is not None:
                return True
            inner = block.get("content")
            if type(inner) is list and any(type(b) is dict and b.get(_KEY) is not None for b in inner):
                return True
    return False


def without_marks(item: Any) -> Any:
    """The message without marks: the same object if it has none."""
    return _strip(item, ()) if has_mark(item) else item


def mark_of(item: Any) -> Any:
    """The last mark of a message, or None."""
    return next((block[_KEY] for block in reversed(list(_marked(item)))), None)


def with_mark(item: Any, mark: Any) -> Any:
    """A copy of a message with this mark on its last block that can carry one, and with no other."""
    item = without_marks(item)
    content = item.get("content") if isinstance(item, Mapping) else None
    if isinstance(content, str) and content.strip():
        return {**item, "content": [{"type": "text", "text": content, _KEY: mark}]}
    blocks = content if isinstance(content, list) else []
    for place in reversed(range(len(blocks))):
        block = blocks[place]
        if isinstance(block, Mapping) and _can_carry(block):
            return {**item, "content": [*blocks[:place], {**block, _KEY: mark}, *blocks[place + 1 :]]}
    return item


def keep_marks(given: Sequence[Any], standing: Sequence[Any], sources: Sequence[int | None]) -> list[Any]:
    """Take the marks off what replaced messages that the host no longer marks.

    What was written in place of a marked message carries its mark. As many of these marks stay as replaced messages are
    marked now, the oldest first.

    Args:
        given: The host's messages as they are now.
        standing: What stands for them.
        sources: For each of those its index in `given`, or None if compact wrote it.
    """
    own = set(sources)
    room = sum(has_mark(item) for place, item in enumerate(given) if place not in own)
    found = list(standing)
    for place, source in enumerate(sources):
        if source is None and has_mark(found[place]):
            if room <= 0:
                found[place] = without_marks(found[place])
            room -= 1
    return found


def limit_marks(items: Sequence[Any], limit: int) -> Sequence[Any]:
    """Return the list with at most `limit` marks; the same object if it has no more than that.

    Marks on what compact wrote go first, because a host cannot take them off there. Then the oldest ones go.
    """
    marked = [block for item in items if has_mark(item) for block in _marked(item)]
    surplus = len(marked) - max(0, limit)
    if surplus <= 0:
        return items
    ours = [block for block in marked if _is_ours(block)]
    others = [block for block in marked if not _is_ours(block)]
    goes = [id(block) for block in [*ours, *others][:surplus]]
    return [_strip(item, set(goes)) if has_mark(item) else item for item in items]


def _marked(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every block with a mark: of a message, of a list of blocks or tools, of a tool result."""
    blocks = value.get("content") if isinstance(value, Mapping) else value
    for block in blocks if isinstance(blocks, list | tuple) else ():
        if isinstance(block, Mapping):
            yield from _marked(block)
            if block.get(_KEY) is not None:
                yield block


def _strip(item: Any, only: Any) -> Any:
    """A copy without marks; with `only`, without the marks of the blocks with these ids."""
    blocks = item.get("content")
    if not isinstance(blocks, list | tuple):
        return item
    kept = [_strip_block(block, only) if isinstance(block, Mapping) else block for block in blocks]
    return {**item, "content": kept}


def _strip_block(block: Mapping[str, Any], only: Any) -> Mapping[str, Any]:
    goes = _KEY in block and (not only or id(block) in only)
    found = _strip(block, only) if any(True for _ in _marked(block)) else block
    return {key: value for key, value in found.items() if key != _KEY} if goes else found


def _can_carry(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return bool(str(block.get("text") or "").strip()) if kind == "text" else kind in _CARRIERS


_CARRIERS = frozenset({"tool_use", "tool_result", "image", "document", "search_result"})


def _is_ours(block: Mapping[str, Any]) -> bool:
    content = block.get("content", block.get("text"))
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        content = content[0].get("text")
    return isinstance(content, str) and content.startswith(_OURS)
