"""Truncation heuristics: which artifacts must stay, and in which order the others are given what room is left.

A heuristic takes the artifacts of a session (without their words) and the settings, and gives choices, the most wanted
first. What it does not name is dropped. Those that must stay are kept whatever they cost; the others while they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compact.tools.harness.artifacts import AUTHORITY
from compact.tools.harness.entries import Choice, Entry

if TYPE_CHECKING:
    from compact.tools.harness.config import HarnessConfig

Heuristic: TypeAlias = "Callable[[Sequence[Entry], HarnessConfig], Iterable[Choice]]"


def newest_first(entries: Sequence[Entry], config: HarnessConfig) -> Iterator[Choice]:
    """System, task and the newest messages stay; of the rest the higher priority comes first, then the newer."""
    yield from _must_stay(entries, config)
    for entry in sorted(_optional(entries, config), key=lambda entry: (-entry.priority, -entry.index)):
        yield Choice(entry, False, "it fits")


def conversation_first(entries: Sequence[Entry], config: HarnessConfig) -> Iterator[Choice]:
    """As `newest_first`, but no tool output takes the room of a message of the same priority."""
    yield from _must_stay(entries, config)
    rest = _optional(entries, config)
    for entry in sorted(rest, key=lambda entry: (-entry.priority, entry.kind != "message", -entry.index)):
        yield Choice(entry, False, "it fits")


BUILT_IN: Mapping[str, Heuristic] = {"newest_first": newest_first, "conversation_first": conversation_first}


def _must_stay(entries: Sequence[Entry], config: HarnessConfig) -> Iterator[Choice]:
    for entry in entries:
        if entry.kind in AUTHORITY:
            yield Choice(entry, True, f"{entry.kind} artifacts always stay")
    for entry in _newest_messages(entries, config):
        yield Choice(entry, True, f"one of the {config.keep_messages} newest messages")


def _newest_messages(entries: Sequence[Entry], config: HarnessConfig) -> list[Entry]:
    messages = [entry for entry in entries if entry.kind == "message"]
    return messages[max(0, len(messages) - config.keep_messages) :]


def _optional(entries: Sequence[Entry], config: HarnessConfig) -> list[Entry]:
    newest = {entry.index for entry in _newest_messages(entries, config)}
    return [entry for entry in entries if entry.kind not in AUTHORITY and entry.index not in newest]
