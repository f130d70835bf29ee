"""What providers' own errors teach about windows. It only ever narrows what is configured.

An error is text from outside. A limit that it names is believed as far as it fits what is known: the request's own count, what
the provider took before, and the model's window. It is its session's alone until another session is told the same.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from compact.runtime.overflow import Overflow
from compact.tokens.windows import Window

_LEAST_LIMIT = 256
"""A smaller number in an error means something else."""
_SURPRISING = 0.5
"""A limit below this share of a window that is known needs more than words that name it."""
_NEAR = 1.5
"""A stated count is near ours if neither is more than this many times the other."""
_SURELY = 0.75
"""The share of our count that any provider counts at least."""
_SESSIONS = 4_096
"""Sessions of which something is remembered, for each model."""
_AGREEING = 2


@dataclass(slots=True)
class _Told:
    """What one session was told, and what it knows better."""

    limit: int | None = None
    output: int = 0
    is_certain: bool = False
    """Whether the provider said so by a code, or with a count that is near ours."""
    refused: int | None = None
    """The size of a request that was refused without naming a limit."""
    accepted: int = 0
    """The largest request that was answered."""


@dataclass(slots=True)
class _Model:
    """What is known of one model."""

    sessions: dict[str, _Told] = field(default_factory=dict)
    limit: int | None = None
    """What several sessions agree on."""
    output: int = 0
    accepted: int = 0


class LearnedWindows:
    """Limits that providers named, by model and session. Thread-safe.

    A limit becomes the model's own when two sessions were told the same. A request that is answered above it disproves it. If
    an error names no limit, the size of the refused request is the limit for its session, until a request of that size is
    answered. `reserve` is kept free of a window for the reply, `buffer` for what comes next.
    """

    def __init__(self, *, reserve: int, buffer: int) -> None:
        self._reserve = reserve
        self._buffer = buffer
        self._models: dict[str, _Model] = {}
        self._lock = threading.Lock()
        self.version = 0
        """Rises with everything that is learned."""

    def anew(self) -> LearnedWindows:
        """Return windows of which nothing is learned yet."""
        return LearnedWindows(reserve=self._reserve, buffer=self._buffer)

    def take(
        self, model: str, session_id: str, overflow: Overflow, tokens: int, window: Window | None = None
    ) -> Overflow:
        """Remember what an overflow says about a request of `tokens` tokens, and return what of it was believed.

        `window` is the model's, as it is configured or known.
        """
        with self._lock:
            self.version += 1
            told = self._told(model, session_id)
            known = self._models[model]
            believed = _believe(overflow, tokens, told.accepted, window)
            if believed.limit is None:
                told.refused = min(tokens, told.refused or tokens)
                return believed
            told.limit = min(believed.limit, told.limit or believed.limit)
            told.is_certain = _is_certain(believed, tokens)
            if believed.output and not believed.is_output_alone:
                told.output = believed.output
            self._agree(known, told, window)
            return believed

    def note_answer(self, model: str, session_id: str, tokens: int, counted: int | None = None) -> None:
        """Forget every limit that an answered request of `tokens` tokens disproves. `counted` is what the provider counted."""
        sure = int(tokens * _SURELY) if counted is None else counted
        with self._lock:
            known = self._models.get(model)
            if known is None:
                return  # nothing was ever refused
            told = known.sessions.get(session_id)
            known.accepted = max(known.accepted, sure)
            changed = False
            if told is not None:
                told.accepted = max(told.accepted, sure)
                if told.refused is not None and tokens >= told.refused:
                    told.refused, changed = None, True
                if told.limit is not None and sure > told.limit:
                    told.limit, told.output, changed = None, 0, True
            if known.limit is not None and sure > known.limit:
                known.limit, known.output, changed = None, 0, True
            self.version += changed

    def narrow(self, model: str, window: Window, session_id: str | None = None) -> Window:
        """A model's window: the configured one, or the limit that its provider named if that is smaller.

        With a session, what it alone was told counts too.
        """
        limit = self._limit(model, session_id)
        return Window(limit, "learned", known=True) if limit is not None and limit < window.tokens else window

    def usable(self, model: str, session_id: str, window: Window) -> int:
        """What a session can use of a window, without the reply's share that the provider counts beyond `reserve`.

        If no limit was named, everything below the refused size may still fit, so nothing of that is kept free.
        """
        known = self._models.get(model)
        if known is None:
            return window.tokens
        told = known.sessions.get(session_id)
        output = max(known.output, told.output if told else 0)
        tokens = self.narrow(model, window, session_id).tokens - max(0, output - self._reserve)
        if told is None or told.refused is None:
            return tokens
        return min(tokens, told.refused - 1 + self._reserve + self._buffer)

    def most(self, model: str, session_id: str) -> int | None:
        """The most that the provider takes, messages and tools together; None if it never said."""
        limit = self._limit(model, session_id)
        if limit is None:
            return None
        known = self._models[model]
        told = known.sessions.get(session_id)
        return limit - max(self._reserve, known.output, told.output if told else 0)

    def _limit(self, model: str, session_id: str | None) -> int | None:
        known = self._models.get(model)
        if known is None:
            return None
        told = known.sessions.get(session_id) if session_id is not None else None
        limits = [limit for limit in (known.limit, told.limit if told else None) if limit is not None]
        return min(limits, default=None)

    def _told(self, model: str, session_id: str) -> _Told:
        known = self._models.setdefault(model, _Model())
        told = known.sessions.pop(session_id, None) or _Told()
        known.sessions[session_id] = told
        if len(known.sessions) > _SESSIONS:
            del known.sessions[next(iter(known.sessions))]
        return told

    def _agree(self, known: _Model, told: _Told, window: Window | None) -> None:
        """Make a limit the model's own if another session was told the same, and nobody was answered above it."""
        limit = told.limit
        if limit is None or known.accepted > limit:
            return
        same = [each for each in known.sessions.values() if each.limit == limit]
        is_known = window is not None and window.known
        certain = [each for each in same if each.is_certain or not is_known]
        if len(certain) >= _AGREEING:
            known.limit = limit
            known.output = max(each.output for each in certain)


def _believe(overflow: Overflow, tokens: int, accepted: int, window: Window | None) -> Overflow:
    """The overflow without a limit that cannot be meant, or that only words name although it is far from what is known."""
    limit = overflow.limit
    if limit is None:
        return overflow
    is_surprising = window is not None and window.known and limit < window.tokens * _SURPRISING
    if limit < _LEAST_LIMIT or limit < accepted or (is_surprising and not _is_certain(overflow, tokens)):
        return replace(overflow, limit=None)
    return overflow


def _is_certain(overflow: Overflow, tokens: int) -> bool:
    counted = overflow.input
    is_near = counted is not None and counted <= tokens * _NEAR and tokens <= counted * _NEAR
    return overflow.by_code or is_near
