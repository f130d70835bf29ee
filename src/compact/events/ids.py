"""The ids of traces and spans. They depend only on a seed, so the same run has the same ids."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class Ids:
    """A sequence of ids that depends only on its seed. Safe to share between threads."""

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(f"{seed}:".encode("utf-8", "surrogatepass"))
        self.next_number: Callable[[], int] = itertools.count(1).__next__  # atomic
        """Draws the number of an id. The id itself can be made later."""

    def trace_id(self) -> str:
        """Return a new trace id: 32 hex digits."""
        return self._name(self.next_number(), 32)

    def span_id(self, number: int | None = None) -> str:
        """Return the span id with this number, or a new one: 16 hex digits."""
        return self._name(self.next_number() if number is None else number, 16)

    def _name(self, number: int, digits: int) -> str:
        found = self._seed.copy()
        found.update(b"%d" % number)
        return found.hexdigest()[:digits]


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace that an event belongs to, and its parent span."""

    trace_id: str
    parent_id: str | None = None


class Span(NamedTuple):
    """The place of an event that is made later. Ids are numbers until then, because making them costs a hash."""

    trace_id: str
    parent: int | None
    """The number of the span above it."""
    number: int
    started_at: datetime
    ended_at: datetime


def session_trace(session_id: str, tenant: str | None = None) -> Trace:
    """Return the trace of a session. It depends only on the id and the tenant, so all processes share it."""
    owner = "session" if tenant is None else f"tenant {len(tenant)}:{tenant}"
    return Trace(Ids(f"{owner}:{session_id}").trace_id())
