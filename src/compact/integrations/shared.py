"""What the integrations share: names for conversations that have none, usage, and streams that refuse late."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from compact.messages.markers import GAP, SUMMARY_OPENS
from compact.runtime.manager import CompactManager
from compact.runtime.overflow.surviving import input_tokens

SessionId = str | Callable[[Any], str] | None
"""A session's id, or a function that finds it in what the host passes, or None: the integration finds one."""

_REMEMBERED = 256
"""Conversations without a name of their own that are told apart at the same time."""


@dataclass(slots=True)
class _Known:
    given: Sequence[Any]
    """The newest list of the host."""
    kept: Sequence[Any]
    """What it was told to send for it."""


class Conversations:
    """Tells conversations apart by what they say: a list that continues a known one belongs to it.

    Hosts run several conversations through one hook, sub-agents and parallel runs among them, and do not always say which
    is which. Safe among threads.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def named(self, items: Sequence[Any], base: Callable[[], str]) -> str:
        """The name of the conversation that a list continues; a new one is called `base`, or `base.2` and so on."""
        with self._lock:
            for name in reversed(self._known):
                known = self._known[name]
                if _continues(items, known.given) or _continues(items, known.kept):
                    return name
            wanted = base()
            name, count = wanted, 1
            while name in self._known:
                count += 1
                name = f"{wanted}.{count}"
            self._known[name] = _Known(list(items), list(items))
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return name

    def note(self, name: str, given: Sequence[Any], kept: Sequence[Any]) -> None:
        """Remembers what a conversation looked like, and what was sent for it."""
        with self._lock:
            known = self._known.pop(name, None) or _Known([], [])
            if _continues(given, known.given) or not _continues(given, known.kept):
                known.given = list(given)
            # Otherwise the list is one that was shortened already, on its way through a second hook.
            known.kept = list(kept)
            self._known[name] = known


def _continues(items: Sequence[Any], before: Sequence[Any]) -> bool:
    count = len(before)
    return 0 < count <= len(items) and list(items[:count]) == before


_conversations: WeakKeyDictionary[CompactManager, Conversations] = WeakKeyDictionary()
_making = threading.Lock()


def conversations_of(manager: CompactManager) -> Conversations:
    """The conversations of a manager: all hooks on one manager know the same ones."""
    with _making:
        return _conversations.setdefault(manager, Conversations())


current_session: ContextVar[str | None] = ContextVar("compact_session", default=None)
"""The session of the newest call in this task, for hooks that are told nothing."""


def observe(manager: CompactManager, session_id: str, usage: Any) -> None:
    """Tells the manager what the provider counted, if it did."""
    counted = input_tokens({"usage": usage})
    if counted:
        manager.observe(session_id, input_tokens=counted)


def parted(items: Sequence[Any]) -> list[Any]:
    """Messages with a short one of the user's where a summary would open the conversation or meet another reply.

    A framework may pass the list on to any provider, and some want a user first and roles that alternate. For chat
    messages and Responses items.
    """
    found: list[Any] = []
    for item in items:
        before = found[-1] if found else {"role": "system"}
        meets = _speaker(before) in ("system", "developer", "assistant")
        if _speaker(item) == "assistant" and meets and (_is_summary(item) or _is_summary(before)):
            found.append({"role": "user", "content": GAP})
        found.append(item)
    return found


def _speaker(item: Any) -> str:
    if "role" in item:
        return str(item["role"])
    return "tool" if str(item.get("type")).endswith("_output") else "assistant"


def _is_summary(item: Any) -> bool:
    return str(item.get("content", "")).startswith(SUMMARY_OPENS)


PREAMBLE = frozenset({"response.created", "response.in_progress", "response.queued"})
"""Events of a stream before the model said anything: a request that gets no further may be sent again."""
_REFUSALS = frozenset({"error", "response.error", "response.failed"})


class StreamRefused(Exception):
    """A stream began well and then said that the request is refused. `events` are all that came; `stream` repeats them."""

    def __init__(self, events: list[Any], stream: Any = None) -> None:
        problem = getattr(events[-1], "response", None)
        problem = getattr(problem, "error", None) or events[-1]
        self.code = getattr(problem, "code", None)
        self.message = getattr(problem, "message", None) or ""
        self.events = list(events)
        self.stream = stream
        super().__init__(f"{self.code}: {self.message}" if self.code else self.message)


def is_preamble(event: Any) -> bool:
    """Whether nothing was said yet."""
    return getattr(event, "type", None) in PREAMBLE


def is_refusal(event: Any) -> bool:
    """Whether an event says that the request was refused."""
    return getattr(event, "type", None) in _REFUSALS
