"""The sessions that a manager has in memory. A server sees many, and most of them never come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.engine.context import Written
from compact.engine.intake import Intake
from compact.engine.ladder import Outcome
from compact.engine.state import SessionState
from compact.errors import ConfigError
from compact.events import Trace, session_trace
from compact.messages.dialects.wire import begins_with
from compact.runtime.lanes import Lane
from compact.runtime.masked_session import MaskedSession

_OBSERVABLE_TOKENS = 500
"""In a smaller request, a provider's fixed overhead hides its tokenizer."""
_MAX_CORRECTION = 3.0


@dataclass(slots=True)
class Session:
    """What this process keeps of one session. Only the run that holds its lane changes it."""

    id: str
    trace: Trace
    lane: Lane[Any] = field(default_factory=Lane)
    state: SessionState = field(default_factory=SessionState)
    intake: Intake = field(default_factory=Intake)
    written: Written = field(default_factory=Written)
    """What compact wrote into its results and arguments. Recall tools add their answers from any thread."""
    outcome: Outcome | None = None
    warned: set[str] = field(default_factory=set)
    """Codes of the warnings that were recorded already."""
    last_total: int = 0
    """What the last call's request costs by our count."""
    last_model: str = ""
    last_factor: float = 1.0
    """By how much the last call's model rounds its counts up."""
    given: Sequence[Any] = ()
    """What the host passed with the last call."""
    sent: Sequence[Any] = ()
    """What the last call returned. The next one should begin with it."""
    sent_tokens: int = 0
    corrections: dict[str, float] = field(default_factory=dict)
    """By model: how many tokens its provider counts for each of ours."""
    request: Any = None
    """The messages that the newest reply of a model call answers."""
    masked: MaskedSession | None = None
    """What live masking remembers; None while it is off."""

    def correct(self, model: str, counted: int, ours: int, factor: float) -> None:
        """Compare our count of a request to a model, which was rounded up by `factor`, with the provider's."""
        if counted > 0 and ours >= _OBSERVABLE_TOKENS:
            self.corrections[model] = min(max(counted / ours, 1 / factor), _MAX_CORRECTION)

    def correction_for(self, model: str) -> float:
        """How many tokens a model's provider counts for each of ours, as far as it is known."""
        return self.corrections.get(model, 1.0)

    def ask_again(self) -> None:
        """The archive may know of newer steps than this process, so the next call asks it."""
        self.state = replace(self.state, asked=False)

    def begin_anew(self, step: int) -> None:
        """Forget everything but what the session's models count and which warnings were given. Nothing of `step` stands."""
        self.state = SessionState(step=step, standing=[] if step else None, asked=True)
        self.given = self.sent = ()
        self.sent_tokens = 0
        self.outcome = self.request = None
        self.renew_intake()

    def renew_intake(self) -> None:
        """A run that lost the lane may still use the intake, so the next run gets its own."""
        self.intake = self.intake.renew()


class SessionCache:
    """Sessions by name; thread-safe. Beyond `most` sessions, the least recently used ones are forgotten.

    A forgotten session loses nothing, because its next call loads its state from the archive. A session with a run is
    not forgotten.
    """

    def __init__(self, most: int, forget: Callable[[str], None]) -> None:
        self._most = most
        self._forget = forget
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self.sent_tokens = 0
        """Tokens of all requests."""
        self.repeated_tokens = 0
        """Those of them that repeated the request before, so that a prompt cache could serve them."""

    def get(self, session_id: str) -> Session:
        """Return the session, which is now the most recently used one.

        Raises:
            ConfigError: the id is not a non-empty string.
        """
        if type(session_id) is not str:
            check_session_id(session_id)
        with self._lock:
            found = self._sessions.pop(session_id, None) or _begin(session_id)
            self._sessions[session_id] = found
            gone = self._make_room() if len(self._sessions) > self._most else ()
        for name in gone:
            self._forget(name)
        return found

    def note_sent(self, session: Session, messages: Sequence[Any], tokens: int) -> None:
        """Record what a call returned, and how much of it a provider's prompt cache can use again."""
        repeats = bool(session.sent) and begins_with(messages, session.sent)
        with self._lock:
            self.sent_tokens += tokens
            if repeats:
                self.repeated_tokens += session.sent_tokens
        # The copy of the host's list is ours. Any other list now belongs to the host.
        session.sent = session.given if messages is session.given else list(messages)
        session.sent_tokens = tokens

    def __len__(self) -> int:
        return len(self._sessions)

    def _make_room(self) -> list[str]:
        """Forget the oldest idle sessions, never the newest, and return their names."""
        excess = len(self._sessions) - self._most
        idle = [name for name, session in list(self._sessions.items())[:-1] if session.lane.run is None]
        for name in idle[:excess]:
            del self._sessions[name]
        return idle[:excess]


def _begin(session_id: str) -> Session:
    return Session(check_session_id(session_id), session_trace(session_id))


def check_session_id(session_id: Any) -> str:
    """Return a session's id.

    Raises:
        ConfigError: it is not a string of valid Unicode with more than blanks in it.
    """
    if not isinstance(session_id, str):
        problem = f"must be a string, got {type(session_id).__name__}"
    elif not session_id.strip():
        problem = "must not be only blanks" if session_id else "must not be empty"
    elif not _is_valid(session_id):
        problem = "must be valid Unicode, got a lone surrogate"
    else:
        return session_id
    raise ConfigError(
        f"session_id {problem}",
        hint="Pass the same text in every call of a conversation, such as the id of its thread",
        path="session_id",
    )


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
