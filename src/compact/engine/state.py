"""What a session remembers between two calls, and how a host's list is recognised by it.

Hosts come in two kinds. One keeps the list that it was given and appends to it, so its list begins with what the last step
left. The other passes its full history every time, so its list begins with what the last step replaced. The state
remembers both beginnings, and neither host has to say which kind it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.engine.context import Row
from compact.engine.effects import Loaded
from compact.engine.intake import Working
from compact.messages.cache_marks import has_mark, keep_marks
from compact.messages.dialects.wire import begins_with, plain

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionState:
    """What the newest step left behind."""

    step: int = 0
    replaced: Sequence[Any] | None = None
    """The host's messages that the step replaced; None if only their hash is known."""
    standing: Sequence[Any] | None = None
    """The messages that replace them."""
    sources: Sequence[int | None] = ()
    """For each of those its index among the replaced ones, or None if compact wrote it."""
    summaries: frozenset[str] = frozenset()
    tokens_after: int = 0
    ineffective: int = 0
    """Passes in a row that saved too little."""
    asked: bool = False
    """Whether the archive was asked for the session's state."""
    is_marked: bool = field(init=False, default=False)
    """Whether a message that compact wrote carries a cache mark of what it replaces."""

    def __post_init__(self) -> None:
        written = zip(self.standing or (), self.sources, strict=False)
        found = any(source is None and has_mark(item) for item, source in written)
        object.__setattr__(self, "is_marked", found)


def resolve(state: SessionState, messages: Sequence[Any]) -> Working | None:
    """The context that a host's list represents, or None if the list does not continue the remembered one."""
    if not state.step:
        return Working(messages, range(len(messages)))
    if state.standing is not None and continues(messages, state.standing):
        return Working(messages, range(len(messages)))
    if state.replaced is not None and state.standing is not None and continues(messages, state.replaced):
        count = len(state.replaced)
        items = [
            item if source is None else messages[source]
            for item, source in zip(state.standing, state.sources, strict=True)
        ]
        if state.is_marked:  # the host may have moved its marks on
            items = keep_marks(messages[:count], items, state.sources)
        tail = range(count, len(messages))
        return Working([*items, *messages[count:]], [*state.sources, *tail])
    return None


def continues(messages: Sequence[Any], prefix: Sequence[Any]) -> bool:
    """Whether a list begins with messages that are essentially these."""
    if begins_with(messages, prefix):
        return True
    return len(messages) >= len(prefix) and all(map(is_same_message, messages, prefix))


def is_same_message(one: Any, other: Any) -> bool:
    """Whether two entries are essentially the same message, whatever marks and prompts a host has put into them."""
    return one is other or _essence(one) == _essence(other)


def _essence(item: Any) -> Any:
    """What makes a message the same one on the next call: not its cache marks, and not the words of a prompt.

    Hosts move cache marks to their newest message, for which a text becomes a block, and put the time or a to-do list
    into their system prompt.
    """
    try:
        data = plain(item)
    except ValueError:
        return item
    if data.get("role") in ("system", "developer"):
        return data["role"]
    found = _without_marks(data)
    content = found.get("content")
    if isinstance(content, list) and len(content) == 1 and _is_only_text(content[0]):
        found["content"] = content[0]["text"]
    return found


def _is_only_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.keys() == {"type", "text"} and block["type"] == "text"


def _without_marks(value: Any, depth: int = 0) -> Any:
    if depth > 6:
        return value  # cache marks stand on messages, on blocks and on blocks of results
    if isinstance(value, Mapping):
        return {k: _without_marks(v, depth + 1) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list | tuple):
        return [_without_marks(entry, depth + 1) for entry in value]
    return value


def restore_state(loaded: Loaded, messages: Sequence[Any]) -> SessionState | None:
    """The state in the archive, if this list continues it; None otherwise."""
    record = loaded.state
    if record.get("version") != STATE_VERSION:
        return None
    recipe: list[Any] = record["recipe"]
    common = {
        "step": loaded.step,
        "asked": True,
        "summaries": frozenset(record["summaries"]),
        "tokens_after": record["tokens_after"],
        "ineffective": record["ineffective"],
    }
    if _hashes_to(messages, len(recipe), loaded.fingerprints.get("standing")):
        return SessionState(**common, standing=list(messages[: len(recipe)]), sources=[None] * len(recipe))
    count = record["replaced"]
    if _hashes_to(messages, count, loaded.fingerprints.get("replaced")):
        sources = [entry if isinstance(entry, int) else None for entry in recipe]
        standing = [messages[entry] if isinstance(entry, int) else entry["item"] for entry in recipe]
        return SessionState(**common, replaced=list(messages[:count]), standing=standing, sources=sources)
    return None


def _hashes_to(messages: Sequence[Any], count: int, expected: str | None) -> bool:
    try:
        return len(messages) >= count and fingerprint(messages[:count]) == expected
    except ValueError:
        return False  # an entry is not a message; reading the list raises an error that names its index


def forget(step: int) -> Loaded:
    """What is loaded of a step whose state was forgotten: nothing stands, so everything in the host's list is new."""
    return Loaded(step, *describe_state([], [], [], frozenset(), 0, 0))


def describe_state(
    messages: Sequence[Any],
    rows: Sequence[Row],
    items: Sequence[Any],
    summaries: frozenset[str],
    tokens_after: int,
    ineffective: int,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A step's state as it is archived: how to make the context from the host's messages, and both hashes."""
    recipe = [
        {"item": plain(item)} if row.source is None else row.source
        for row, item in zip(rows, items, strict=True)
    ]
    state = {
        "version": STATE_VERSION,
        "replaced": len(messages),
        "recipe": recipe,
        "summaries": sorted(summaries),
        "tokens_after": tokens_after,
        "ineffective": ineffective,
    }
    known: dict[int, bytes] = {}
    return state, {"replaced": fingerprint(messages, known), "standing": fingerprint(items, known)}


def fingerprint(messages: Sequence[Any], known: dict[int, bytes] | None = None) -> str:
    """Hash messages, the same for equal ones in any process. `known` caches the digests of objects by id."""
    known = {} if known is None else known
    found = hashlib.sha256()
    for item in messages:
        digest = known.get(id(item))
        if digest is None:
            text = json.dumps(_essence(plain(item)), sort_keys=True, ensure_ascii=False, default=str)
            digest = known[id(item)] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found.update(digest)
    return found.hexdigest()
