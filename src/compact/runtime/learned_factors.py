"""What observed usage teaches of a model beyond one session: how many tokens its provider counts for each of ours.

Samples are gathered in memory as replies come in. They are written, and what other processes wrote is read, only where a run
works with the archive anyway: when a session's state is loaded, when a step is committed, and at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from compact.archive import Archive
from compact.archive.factors import Growth, add_growth, read_growth
from compact.errors import ArchiveError
from compact.tokens import Meter

_LEAST_TOKENS = 20_000
"""Raw tokens of growth from which a factor is believed."""
_LEAST_SAMPLE = 200
"""In a smaller growth, the frames of messages hide the tokenizer."""
_MOST_KNOWN = 8_192
"""Factors that are kept in memory. Others are read again when a session of theirs begins."""
_MOST_OFF = 1.5
"""A sample, or a factor, that is further from the table's than this many times is not about the tokenizer."""


class _Key(NamedTuple):
    tenant: str | None
    model: str


class LearnedFactors:
    """Factors by tenant and model. Thread-safe."""

    def __init__(self, label: Callable[[str], str]) -> None:
        self._label = label
        self._pending: dict[_Key, Growth] = {}
        self._meters: dict[_Key, Meter] = {}
        self._known: dict[_Key, float] = {}
        self._lock = threading.Lock()

    def note(self, tenant: str | None, meter: Meter, grown: int, counted: int) -> None:
        """Take a sample: a request grew by `grown` tokens in our count and by `counted` in its provider's."""
        raw = round(grown / meter.factor)
        if meter.factor == 1.0 or raw < _LEAST_SAMPLE or not _is_near(counted / raw, meter.factor):
            return
        key = _Key(tenant, meter.model)
        with self._lock:
            self._pending[key] = self._pending.get(key, Growth(0, 0)) + Growth(raw, counted)
            self._meters[key] = meter

    def rate(self, tenant: str | None, meter: Meter) -> float:
        """How many tokens a model's provider counts for each of ours, as far as it was learned; else 1."""
        found = self._known.get(_Key(tenant, meter.model))
        return 1.0 if found is None or meter.factor == 1.0 else found / meter.factor

    def settle(self, archive: Archive, meter: Meter) -> ArchiveError | None:
        """Write what was learned of a model, and read what others wrote.

        Returns the problem if the file was damaged. Any other failure of the store only means that less is known.
        """
        if archive.forgets:
            return None
        key, label, damage = _Key(archive.tenant, meter.model), self._label(meter.model), None
        with self._lock:
            more = self._pending.pop(key, None)
        try:
            known = read_growth(archive, meter.model, label)
        except ArchiveError as problem:
            known, damage = None, problem if problem.reason == "damaged" else None
        if more is not None:
            try:
                known = add_growth(archive, meter.model, label, more)
            except ArchiveError:
                with self._lock:
                    self._pending[key] = self._pending.get(key, Growth(0, 0)) + more
        if known is not None and known.raw >= _LEAST_TOKENS and _is_near(known.factor, meter.factor):
            self._known.pop(key, None)
            self._known[key] = known.factor
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return damage

    def settle_all(self, archive_of: Callable[[str | None], Archive]) -> None:
        """Write what is not written yet, of every tenant."""
        with self._lock:
            waiting = [(key.tenant, self._meters[key]) for key in self._pending]
        for tenant, meter in waiting:
            self.settle(archive_of(tenant), meter)


def _is_near(factor: float, expected: float) -> bool:
    return expected / _MOST_OFF <= factor <= expected * _MOST_OFF
