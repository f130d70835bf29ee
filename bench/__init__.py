"""Speed, always as a ratio to a reference measured in the same run: `python -m bench [name ...]`.

A benchmark is a function `bench_*` in a module of this folder; its docstring is one line that says what is timed, and it
returns one `Figure` or several. A new module is found by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what it has to reach."""

    label: str
    value: float
    unit: str
    limit: float
    at_least: bool = False
    """The limit is a floor, not a ceiling."""

    @property
    def passed(self) -> bool:
        """Whether the number reaches its target."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "PASS" if self.passed else "FAIL"
        return f"{verdict}  {self.label:<58} {self.value:>9.3g} {self.unit:<3} (target {sign} {self.limit:g})"


def best_of(repeats: int, call: Callable[[], Any]) -> float:
    """The seconds of the best of several runs: the one that was disturbed least."""
    return min(_seconds(call) for _ in range(repeats))


def ratio(repeats: int, call: Callable[[], Any], reference: Callable[[], Any]) -> float:
    """How many times the reference's time a call takes. They run in turn, so that a busy machine slows both."""
    pairs = [(_seconds(call), _seconds(reference)) for _ in range(repeats)]
    return min(ours for ours, _ in pairs) / min(theirs for _, theirs in pairs)


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
