"""One time limit for all that one call of the archive does, however many requests that takes.

A store limits each request. An operation counts together how long its requests were waited for, and the store gives each
of them only what is left. Only waiting counts: redacting a large text uses up no time of the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["quick", "step"]
"""What an agent waits for while it works, or the making of a step."""


class Operation:
    """Requests that share one limit. It may be entered again: begin and commit of a step are one operation."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._waited_s = 0.0
        self._share = 1.0

    def left(self, limit_s: float) -> float:
        """What is left of a limit, in seconds; 0 or less when it is used up."""
        return limit_s * self._share - self._waited_s

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Requests inside belong to it; inside another operation they belong to that one."""
        if _current.get() is not None:
            yield
            return
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def waited(self, seconds: float) -> None:
        """So long a request was waited for."""
        self._waited_s += seconds

    @contextmanager
    def sharing(self, part: float) -> Iterator[None]:
        """Requests inside may use only a part of the limit, so that the rest is left for what follows."""
        self._share = part
        try:
            yield
        finally:
            self._share = 1.0


_current: ContextVar[Operation | None] = ContextVar("compact_archive_operation", default=None)


def current() -> Operation | None:
    """The operation that this code runs in."""
    return _current.get()


@contextmanager
def waiting() -> Iterator[None]:
    """Counts the time spent inside for the operation that this code runs in."""
    under_way, began = _current.get(), time.monotonic()
    try:
        yield
    finally:
        if under_way is not None:
            under_way.waited(time.monotonic() - began)
