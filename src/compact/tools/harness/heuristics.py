"""Truncation heuristics: which artifacts must stay, and in which order the others get the remaining room.

A heuristic takes the artifacts of a session (without their content) and the settings, and returns choices, the most wanted
first. What it does not name is dropped. Those that must stay are kept whatever their size; the others while they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compact.tools.harness.artifacts import AUTHORITY, Choice, Entry

if TYPE_CHECKING:
    from compact.tools.harness.config import HarnessConfig

Heuristic: TypeAlias = "Callable[[Sequence[Entry], HarnessConfig], Iterable[Choice]]"


def conversation_first(entries: Sequence[Entry], config: HarnessConfig) -> Iterator[Choice]:
    """Keep system, task and the newest messages; of the rest, prefer higher priority, then messages, then newer ones.

    So no message is dropped that would fit if every output of the same or a lower priority were dropped.
    """
    return _choose(entries, config, lambda entry: (-entry.priority, not entry.is_conversation, -entry.index))


def newest_first(entries: Sequence[Entry], config: HarnessConfig) -> Iterator[Choice]:
    """Like `conversation_first`, but whatever is newer comes first: a long output can take the room of messages."""
    return _choose(entries, config, lambda entry: (-entry.priority, -entry.index))


BUILT_IN: Mapping[str, Heuristic] = {"conversation_first": conversation_first, "newest_first": newest_first}


def _choose(
    entries: Sequence[Entry], config: HarnessConfig, order: Callable[[Entry], tuple[float, ...]]
) -> Iterator[Choice]:
    for entry in entries:
        if entry.kind in AUTHORITY:
            yield Choice(entry, True, f"{entry.kind} artifacts always stay")
    messages = [entry for entry in entries if entry.kind == "message" and not entry.is_empty]
    newest = messages[max(0, len(messages) - config.keep_messages) :]
    for entry in newest:
        yield Choice(entry, True, f"one of the {config.keep_messages} newest messages")
    stay = {entry.index for entry in newest}
    rest = [entry for entry in entries if entry.kind not in AUTHORITY and entry.index not in stay]
    for entry in sorted(rest, key=order):
        if not entry.is_empty:
            yield Choice(entry, False, "it fits")
