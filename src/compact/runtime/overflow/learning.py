"""What providers' own errors teach about windows. It only ever narrows what is configured."""

from __future__ import annotations

import threading

from compact.runtime.overflow import Overflow
from compact.tokens.windows import Window

_LEAST_LIMIT = 256
"""A smaller number in an error means something else."""


class LearnedWindows:
    """Limits that providers named, by model, for all sessions. Thread-safe.

    If an error names no limit, the size of the refused request is the limit for its session, until a request of that size
    is answered. `reserve` is kept free of a window for the reply, `buffer` for what comes next.
    """

    def __init__(self, *, reserve: int, buffer: int) -> None:
        self._reserve = reserve
        self._buffer = buffer
        self._limits: dict[str, int] = {}
        self._outputs: dict[str, int] = {}
        self._refused: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self.version = 0
        """Rises with everything that is learned."""

    def anew(self) -> LearnedWindows:
        """Return windows of which nothing is learned yet."""
        return LearnedWindows(reserve=self._reserve, buffer=self._buffer)

    def take(self, model: str, session_id: str, overflow: Overflow, tokens: int) -> None:
        """Remember what an overflow says about a request of `tokens` tokens."""
        limit = overflow.limit if overflow.limit is not None and overflow.limit >= _LEAST_LIMIT else None
        with self._lock:
            self.version += 1
            if limit is None:
                key = (model, session_id)
                self._refused[key] = min(tokens, self._refused.get(key, tokens))
                return
            self._limits[model] = min(limit, self._limits.get(model, limit))
            if overflow.output and not overflow.is_output_alone:
                self._outputs[model] = overflow.output

    def note_answer(self, model: str, session_id: str, tokens: int) -> None:
        """Forget a refused size that an answered request of `tokens` tokens disproves."""
        with self._lock:
            if tokens >= self._refused.get((model, session_id), tokens + 1):
                del self._refused[(model, session_id)]
                self.version += 1

    def narrow(self, model: str, window: Window) -> Window:
        """A model's window: the configured one, or the limit that its provider named if that is smaller."""
        limit = self._limits.get(model)
        return Window(limit, "learned", known=True) if limit is not None and limit < window.tokens else window

    def usable(self, model: str, session_id: str, window: Window) -> int:
        """What a session can use of a window, without the reply's share that the provider counts beyond `reserve`.

        If no limit was named, everything below the refused size may still fit, so nothing of that is kept free.
        """
        tokens = window.tokens - max(0, self._outputs.get(model, 0) - self._reserve)
        refused = self._refused.get((model, session_id))
        return tokens if refused is None else min(tokens, refused - 1 + self._reserve + self._buffer)

    def most(self, model: str) -> int | None:
        """The most that the provider takes, messages and tools together; None if it never said."""
        limit = self._limits.get(model)
        return None if limit is None else limit - max(self._reserve, self._outputs.get(model, 0))
