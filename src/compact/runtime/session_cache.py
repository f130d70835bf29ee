"""The sessions that a manager has in memory. A server sees many, and most of them never come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.engine.ladder import Outcome
from compact.engine.state import SessionState
from compact.events import Trace, session_trace
from compact.messages.hygiene.verified import Verified
from compact.runtime.lanes import Lane


@dataclass(slots=True)
class Session:
    """What is kept of one session in this process. Whoever holds its lane may change it."""

    id: str
    trace: Trace
    lane: Lane = field(default_factory=Lane)
    state: SessionState = field(default_factory=SessionState)
    verified: Verified = field(default_factory=Verified)
    moved: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    outcome: Outcome | None = None
    warned: set[str] = field(default_factory=set)
    last_total: int = 0
    last_factor: float = 1.0
    """What the last call's request costs by our count, and by how much its model's counts are rounded up."""
    given: Sequence[Any] = ()
    """What the host passed with the last call."""
    sent: Sequence[Any] = ()
    """What the last call returned, and what it cost: the next one should begin with it."""
    sent_tokens: int = 0
    correction: float = 1.0
    request: Any = None
    """The messages that the newest reply of a model call answers."""

    def ask_again(self) -> None:
        """The archive may know more than this process: the next call asks it."""
        self.state = replace(self.state, asked=False)


class OpenSessions:
    """Sessions by their name; safe among threads. Beyond `most`, those that nobody asked for the longest are forgotten.

    A forgotten session loses nothing: what it stands on lies in the archive, and its next call asks for it. One that is
    being worked on is not forgotten.
    """

    def __init__(self, most: int, forgotten: Callable[[str], None]) -> None:
        self._most = most
        self._forgotten = forgotten
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def get(self, session_id: str) -> Session:
        """The session, which is now the one that was asked for last."""
        with self._lock:
            found = self._sessions.pop(session_id, None) or Session(session_id, session_trace(session_id))
            self._sessions[session_id] = found
            gone = self._make_room() if len(self._sessions) > self._most else []
        for name in gone:
            self._forgotten(name)
        return found

    def __len__(self) -> int:
        return len(self._sessions)

    def _make_room(self) -> list[str]:
        """The names of those that went; never the newest."""
        excess = len(self._sessions) - self._most
        idle = [name for name, session in list(self._sessions.items())[:-1] if session.lane.is_free]
        for name in idle[:excess]:
            del self._sessions[name]
        return idle[:excess]
