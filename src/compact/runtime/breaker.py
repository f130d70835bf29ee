"""A circuit breaker: what failed several times in a row is left alone for a while, then tried once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta


class Breaker:
    """Open after `failures` in a row. While it is open, one try is let through every `pause_s`. Safe among threads."""

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], datetime]) -> None:
        self._limit = failures
        self._pause = timedelta(seconds=pause_s)
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._next_try: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether tries are held back."""
        return self._next_try is not None

    def allows(self) -> bool:
        """Whether it may be tried now. While open, the one that is let through holds back the others for a pause."""
        with self._lock:
            if self._next_try is None:
                return True
            now = self._clock()
            if now < self._next_try:
                return False
            self._next_try = now + self._pause
            return True

    def succeeded(self) -> None:
        """A try went well: the breaker is closed."""
        with self._lock:
            self._failed, self._next_try = 0, None

    def failed(self) -> bool:
        """A try failed. True if that opened the breaker."""
        with self._lock:
            self._failed += 1
            if self._failed < self._limit:
                return False
            opened = self._next_try is None
            self._next_try = self._clock() + self._pause
            return opened
