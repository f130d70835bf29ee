"""What providers' own errors teach about windows. It only ever narrows what is configured.

An error is text from outside. A limit that it names is believed as far as it fits what is known: the request's own count, what
the provider took before, and the model's window. It is its session's alone until another session is told the same, and even
then some sessions try more, so that a limit that is not true is found out.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass, field, replace

from compact.runtime.overflow import Overflow
from compact.tokens.windows import Window

_LEAST_LIMIT = 256
"""A smaller number in an error means something else."""
_SURPRISING = 0.5
"""A limit below this share of a window that is known needs more than words that name it."""
_ABSURD = 0.05
"""A limit below this share of a window that is known is never the model's, however many sessions were told it."""
_NEAR = 1.5
"""A stated count is near ours if neither is more than this many times the other."""
_SURELY = 0.75
"""The share of our count that any provider counts at least."""
_SESSIONS = 4_096
"""Sessions of which something is remembered, for each model."""
_MODELS = 256
"""Models of which something is remembered."""
_AGREEING = 2
_TRYING = 16
"""One session in this many ignores what other sessions were told, so that its answers can disprove it."""


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
    """The largest request that was answered, in tokens that the provider surely counted."""


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

    A limit becomes the model's own when two sessions were told the same. A request that is answered above it disproves it, and
    what was answered before is never below a limit. If an error names no limit, the size of the refused request is the limit
    for its session, until a request of that size is answered. `reserve` is kept free of a window for the reply, `buffer` for
    what comes next. Nothing that is learned leaves less than `least`, so that an error alone never stops a session.
    """

    def __init__(self, *, reserve: int, buffer: int, least: int = 0) -> None:
        self._reserve = reserve
        self._buffer = buffer
        self._least = max(least, _LEAST_LIMIT)
        self._models: dict[str, _Model] = {}
        self._lock = threading.Lock()
        self.version = 0
        """Rises with everything that is learned."""

    def anew(self) -> LearnedWindows:
        """Return windows of which nothing is learned yet."""
        return LearnedWindows(reserve=self._reserve, buffer=self._buffer, least=self._least)

    def take(
        self, model: str, session_id: str, overflow: Overflow, tokens: int, window: Window | None = None
    ) -> Overflow:
        """Remember what an overflow says about a request of `tokens` tokens, and return what of it was believed.

        `window` is the model's, as it is configured or known.
        """
        with self._lock:
            self.version += 1
            known = self._model(model)
            told = _told(known, session_id)
            believed = _believe(
                overflow, tokens, window, least=max(self._least, told.accepted, known.accepted)
            )
            if believed.limit is None:
                if tokens >= self._least and tokens * _NEAR >= told.accepted:
                    told.refused = min(tokens, told.refused or tokens)
                return believed
            told.limit = min(believed.limit, told.limit or believed.limit)
            told.is_certain = _is_certain(believed, tokens)
            if believed.output and not believed.is_output_alone:
                told.output = believed.output
            self._agree(known, told, window)
            return believed

    def note_answer(self, model: str, session_id: str, tokens: int, counted: int | None = None) -> None:
        """Remember that a request of `tokens` tokens was answered, and forget every limit that this disproves.

        `counted` is what the provider counted.
        """
        sure = int(tokens * _SURELY if counted is None else min(counted, tokens * _NEAR))
        with self._lock:
            known = self._model(model)
            told = _told(known, session_id)
            known.accepted, told.accepted = max(known.accepted, sure), max(told.accepted, sure)
            changed = False
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
        narrowed = self.narrow(model, window, session_id).tokens
        output = _output(known, told, session_id)
        tokens = max(narrowed - max(0, output - self._reserve), min(narrowed, self._least))
        if told is None or told.refused is None:
            return tokens
        return min(tokens, told.refused - 1 + self._reserve + self._buffer)

    def most(self, model: str, session_id: str) -> int | None:
        """The most that the provider takes, messages and tools together; None if it never said."""
        limit, known = self._limit(model, session_id), self._models.get(model)
        if limit is None or known is None:
            return None
        return limit - max(self._reserve, _output(known, known.sessions.get(session_id), session_id))

    def _limit(self, model: str, session_id: str | None) -> int | None:
        known = self._models.get(model)
        if known is None:
            return None
        told = known.sessions.get(session_id) if session_id is not None else None
        of_all = None if _tries_more(session_id) else known.limit
        limits = [limit for limit in (of_all, told.limit if told else None) if limit is not None]
        return min(limits, default=None)

    def _model(self, name: str) -> _Model:
        known = self._models.pop(name, None) or _Model()
        self._models[name] = known
        if len(self._models) > _MODELS:
            del self._models[next(iter(self._models))]
        return known

    def _agree(self, known: _Model, told: _Told, window: Window | None) -> None:
        """Make a limit the model's own if another session surely was told the same, and nobody was answered above it."""
        limit = told.limit
        if limit is None or known.accepted > limit or _is_below(limit, window, _ABSURD):
            return
        certain = [each for each in known.sessions.values() if each.limit == limit and each.is_certain]
        if len(certain) >= _AGREEING:
            known.limit = limit
            known.output = max(each.output for each in certain)


def _told(known: _Model, session_id: str) -> _Told:
    told = known.sessions.pop(session_id, None) or _Told()
    known.sessions[session_id] = told
    if len(known.sessions) > _SESSIONS:
        del known.sessions[next(iter(known.sessions))]
    return told


def _tries_more(session_id: str | None) -> bool:
    """Whether this session is one of those that find out whether the model's limit is true. It can still be told its own."""
    return session_id is not None and zlib.crc32(session_id.encode("utf-8", "replace")) % _TRYING == 0


def _output(known: _Model, told: _Told | None, session_id: str) -> int:
    """The reply's share that the provider counts."""
    return max(0 if _tries_more(session_id) else known.output, told.output if told else 0)


def _believe(overflow: Overflow, tokens: int, window: Window | None, *, least: int) -> Overflow:
    """The overflow without a limit that cannot be meant, or that only words name although it is far from what is known."""
    limit = overflow.limit
    if limit is None:
        return overflow
    is_doubtful = _is_below(limit, window, _SURPRISING) and not _is_certain(overflow, tokens)
    return replace(overflow, limit=None) if limit < least or is_doubtful else overflow


def _is_below(limit: int, window: Window | None, share: float) -> bool:
    return window is not None and window.known and limit < window.tokens * share


def _is_certain(overflow: Overflow, tokens: int) -> bool:
    counted = overflow.input
    is_near = counted is not None and counted <= tokens * _NEAR and tokens <= counted * _NEAR
    return overflow.by_code or is_near
