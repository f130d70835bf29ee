"""Speed, always as a ratio to a reference measured in the same run: `python -m bench [name ...]`.

A benchmark is a function `bench_*` in a module of this folder. Its docstring is one line that says what is timed, and it
returns one `Figure` or several. New modules are found automatically.

Some claims need many recorded sessions, which are not part of the repository. The environment variable COMPACT_BENCH_DATA
names a folder that has them: transcripts/*.jsonl.gz (in each line `id` and `messages` of chat completions) and redaction/gitleaks.jsonl.gz,
detect_secrets, secretlint and pii (in each line `text`, `secrets` and `rule` or `types`). Without it, such
a benchmark is skipped.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

REPO = Path(__file__).resolve().parents[1]
_WIDTH = 116
_TRANSCRIPTS = "transcripts/*.jsonl.gz"


class Skipped(Exception):
    """A benchmark lacks something on this machine that it needs."""

    @classmethod
    def for_want_of_data(cls, found: str) -> Skipped:
        """`found` says what was found instead, such as `8 cuts are too few`."""
        return cls(
            f"needs recorded data ({found}): set COMPACT_BENCH_DATA to a folder with {_TRANSCRIPTS} and "
            "redaction/*.jsonl.gz"
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and its target."""

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
        target = f"(target {sign} {self.limit:g})"
        columns = f"{verdict}  {self.value:>8.3g} {self.unit:<4} {target:<17}  "
        return wrapped(f"{columns}{self.label}", len(columns))


def wrapped(text: str, hang: int) -> str:
    """Wrap a text to the width of the page; all lines but the first are indented by `hang`."""
    return fill(text, _WIDTH, subsequent_indent=" " * hang, break_on_hyphens=False)


def whole_number(least: int) -> Callable[[str], int]:
    """Parse a number that is at least `least`, for argparse."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ArgumentTypeError(f"{text} is no whole number from {least} up")
        return number

    return read


def run_to_end(main: Callable[[], int]) -> NoReturn:
    """Run a command and exit with its code. Ctrl-C ends it with one line and exit code 130, as in a shell."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)


def data_folder() -> Path | None:
    """The folder that `COMPACT_BENCH_DATA` names, or the one beside the repository; None if neither exists."""
    named = os.environ.get("COMPACT_BENCH_DATA")
    folder = Path(named) if named else REPO.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def recorded(pattern: str = _TRANSCRIPTS) -> list[Path]:
    """The recorded files with such a name, in order; empty without a folder of recordings."""
    folder = data_folder()
    return sorted(folder.glob(pattern)) if folder else []


def transcripts() -> list[Path]:
    """The recorded sessions, or the few in the repository."""
    return recorded() or sorted((REPO / "tests" / "fixtures").glob(_TRANSCRIPTS))


def best_of(repeats: int, call: Callable[[], Any]) -> float:
    """Seconds of the best of several runs, which is the least disturbed one."""
    return min(_seconds(call) for _ in range(repeats))


def ratio(repeats: int, call: Callable[[], Any], reference: Callable[[], Any]) -> float:
    """Time of a call as a multiple of the reference's. They run alternately, so that a busy machine slows both."""
    pairs = [(_seconds(call), _seconds(reference)) for _ in range(repeats)]
    return min(ours for ours, _ in pairs) / min(theirs for _, theirs in pairs)


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
