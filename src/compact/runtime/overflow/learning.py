"""What providers' own errors taught about windows. It only ever narrows what is configured."""

from __future__ import annotations

import threading

from compact.runtime.overflow import Overflow
from compact.tokens.windows import Window

_LEAST_LIMIT = 256
"""A smaller number in an error is something else."""


class LearnedWindows:
    """Limits that providers named, by model, for all sessions; safe among threads.

    Where an error names no limit, the size of the refused request is one for its session: the same size would be refused
    again, until a request of that size is answered. `reserve` is what is kept free of a window for the reply, `buffer` for what comes next.
    """

    def __init__(self, *, reserve: int, buffer: int) -> None:
        self._reserve = reserve
        self._buffer = buffer
        self._limits: dict[str, int] = {}
        self._outputs: dict[str, int] = {}
        self._refused: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def take(self, model: str, session_id: str, overflow: Overflow, tokens: int) -> None:
        """Remembers what an overflow says of a request of `tokens` tokens."""
        limit = overflow.limit if overflow.limit is not None and overflow.limit >= _LEAST_LIMIT else None
        with self._lock:
            if limit is None:
                key = (model, session_id)
                self._refused[key] = min(tokens, self._refused.get(key, tokens))
                return
            self._limits[model] = min(limit, self._limits.get(model, limit))
            if overflow.output and not overflow.is_output_alone:
                self._outputs[model] = overflow.output

    def answered(self, model: str, session_id: str, tokens: int) -> None:
        """Forgets a refused size that a request of `tokens` tokens disproves: the server has changed since."""
        with self._lock:
            if tokens >= self._refused.get((model, session_id), tokens + 1):
                del self._refused[(model, session_id)]

    def narrowed(self, model: str, window: Window) -> Window:
        """A model's window: the configured one, or the limit that its provider named where that is smaller."""
        limit = self._limits.get(model)
        return Window(limit, "learned", known=True) if limit is not None and limit < window.tokens else window

    def usable(self, model: str, session_id: str, window: Window) -> int:
        """What a session can use of a window: without the reply's share that the provider counts beyond `reserve`.

        Where no limit was named, everything below the refused size may still fit: nothing is kept free of that.
        """
        tokens = window.tokens - max(0, self._outputs.get(model, 0) - self._reserve)
        refused = self._refused.get((model, session_id))
        return tokens if refused is None else min(tokens, refused - 1 + self._reserve + self._buffer)

    def most(self, model: str) -> int | None:
        """What the provider takes at all, messages and tools; None: it never said."""
        limit = self._limits.get(model)
        return None if limit is None else limit - max(self._reserve, self._outputs.get(model, 0))
