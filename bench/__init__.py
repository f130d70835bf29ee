"""Speed, always as a ratio to a reference measured in the same run: `python -m bench [name ...]`.

A benchmark is a function `bench_*` in a module of this folder; its docstring is one line that says what is timed, and it
returns one `Figure` or several. A new module is found by itself.

Some claims need many recorded sessions, which are no part of the repo: the environment variable COMPACT_BENCH_DATA names a
folder with them, transcripts/*.jsonl.gz (in each line `id` and `messages` of chat completions) and redaction/gitleaks.jsonl.gz,
detect_secrets, secretlint and pii (in each line `text`, `secrets` and `rule` or `types`). Without it such a benchmark is
skipped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_REPO = Path(__file__).resolve().parents[1]
_TRANSCRIPTS = "transcripts/*.jsonl.gz"


class Skipped(Exception):
    """A benchmark cannot show what it claims with what is on this machine."""

    @classmethod
    def for_want_of_data(cls, found: str) -> Skipped:
        """`found`: what there is instead, such as `8 cuts are too few`."""
        return cls(
            f"needs recorded data ({found}): set COMPACT_BENCH_DATA to a folder with {_TRANSCRIPTS} and "
            "redaction/*.jsonl.gz"
        )


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


def data_folder() -> Path | None:
    """The folder that `COMPACT_BENCH_DATA` names, else the one beside the repo; None: there is none."""
    named = os.environ.get("COMPACT_BENCH_DATA")
    folder = Path(named) if named else _REPO.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def recorded(pattern: str = _TRANSCRIPTS) -> list[Path]:
    """The recorded files with such a name, in order; none where there is no folder with them."""
    folder = data_folder()
    return sorted(folder.glob(pattern)) if folder else []


def transcripts() -> list[Path]:
    """The recorded sessions, else the few that are part of the repo."""
    return recorded() or sorted((_REPO / "tests" / "fixtures").glob(_TRANSCRIPTS))


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
