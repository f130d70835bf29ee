"""A framework's messages seen as OpenAI chat messages, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

Origin = TypeVar("Origin")


class ChatView(Generic[Origin]):
    """Chat messages made from a framework's own, each with its origin. Unchanged ones map back to the same objects."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self.messages = messages
        """The framework's list."""
        self.items: list[dict[str, Any]] = []
        """The chat messages."""
        self._whole: dict[int, Origin] = {}
        self._by_call: dict[tuple[str, Any], Origin] = {}

    def add(self, item: dict[str, Any], origin: Origin) -> None:
        """Add a chat message and where it comes from."""
        self.items.append(item)
        self._whole[id(item)] = origin
        for key in _calls(item):
            self._by_call[key] = origin

    def is_unchanged(self, item: Mapping[str, Any]) -> bool:
        """Return whether an item is one of `items`, not a changed copy and not a new message."""
        return id(item) in self._whole

    def origin_of(self, item: Mapping[str, Any]) -> Origin | None:
        """Return where an item comes from. A changed copy is recognised by its calls; a new message has no origin."""
        if id(item) in self._whole:
            return self._whole[id(item)]
        return next((self._by_call[key] for key in _calls(item) if key in self._by_call), None)


def _calls(item: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the calls that a message makes or answers, with its role."""
    ids = [item.get("tool_call_id"), *(call["id"] for call in item.get("tool_calls") or ())]
    return [(item["role"], call_id) for call_id in ids if call_id is not None]
