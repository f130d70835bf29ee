"""The archive on a local disk, with the default redaction."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench import Figure, best_of
from compact.archive import Archive, MemoryStore, Step
from compact.archive.stores.files import FsStore
from compact.events import Breakdown, Ids, Recorder, TokenEstimate
from compact.redaction import Redactor

_LINE = "def handler(request, response): return respond(request.path, status=200)  # line {}\n"


def bench_step() -> Iterator[Figure]:
    """A step of a session of 1,000 messages, about 128k tokens: begin and commit, everything durable."""
    messages = _session(1_000)
    for label, redactor in (("redacted", Redactor()), ("redaction off", Redactor.disabled())):
        with _archive(redactor) as archive:
            seconds = best_of(5, partial(_next_step, archive, messages, count()))
            yield Figure(f"one step, {label}", seconds * 1e3, "ms", 1_500)
    with _archive(Redactor.disabled(), in_memory=True) as archive:
        seconds = best_of(5, partial(_next_step, archive, messages, count()))
        yield Figure("one step, redaction off, in memory", seconds * 1e3, "ms", 200)


def bench_output() -> Iterator[Figure]:
    """A tool output of 100 KB, never seen before, durable on return."""
    with _archive(Redactor()) as archive:
        texts = (_text(100_000, n) for n in count())
        yield Figure("put_output", best_of(9, lambda: _put(archive, next(texts))) * 1e3, "ms", 100)


def bench_events() -> Iterator[Figure]:
    """The one event of a preflight that does not act, appended to the log."""
    with _archive(Redactor()) as archive:
        record = partial(archive.append_events, "s", [_estimate(archive)])
        record()
        yield Figure("append_events", best_of(200, record) * 1e3, "ms", 1)


def bench_reading() -> Iterator[Figure]:
    """A session of 20 steps of 100 messages: its state, its newest transcript, all of it verified."""
    with _archive(Redactor.disabled()) as archive:
        for number in range(20):
            _step(archive, _session(100), number)
        yield Figure("latest", best_of(20, partial(archive.latest, "s")) * 1e3, "ms", 2)
        yield Figure("restore", best_of(10, partial(archive.restore, "s")) * 1e3, "ms", 5)
        yield Figure("verify 20 steps", best_of(5, partial(archive.verify, "s")) * 1e3, "ms", 100)


def bench_disk() -> Iterator[Figure]:
    """What this disk takes for one fsync of a new file of 4 KB: a step needs 7 of them."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        names = count()
        seconds = best_of(20, lambda: _synced_file(Path(folder) / str(next(names))))
        yield Figure("one fsync", seconds * 1e3, "ms", 1_000)


@contextmanager
def _archive(redactor: Redactor, in_memory: bool = False) -> Iterator[Archive]:
    recorder = Recorder(lambda: datetime(2026, 1, 1, tzinfo=UTC), Ids("bench"))
    # Beside the code, because the system's temporary folder is often in memory, where syncing costs nothing.
    with tempfile.TemporaryDirectory(dir=".") as root:
        yield Archive(MemoryStore() if in_memory else FsStore(root), redactor, recorder)


def _step(archive: Archive, messages: list[dict[str, Any]], after: int) -> None:
    with archive.begin("s", messages, dialect="chat", after=after) as attempt:
        result = attempt.commit(summary={"text": "x" * 8_000}, state={"kept": messages[-50:]})
    assert isinstance(result, Step)


def _next_step(archive: Archive, messages: list[dict[str, Any]], numbers: Iterator[int]) -> None:
    _step(archive, messages, next(numbers))


def _put(archive: Archive, text: str) -> None:
    archive.put_output("s", text, tool_name="read_file", tool_call_id="call_1")


def _estimate(archive: Archive) -> Any:
    breakdown = Breakdown(system=100, developer=0, tools_schema=900, messages=60_000)
    estimate = TokenEstimate(
        model="gpt-4o", t_est=61_000, max_tokens=128_000, usage_pct=0.476, breakdown=breakdown
    )
    return archive._recorder.event(estimate, session_id="s", step=0)


def _session(size: int) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": _text(512, n)} for n in range(size)]


def _text(size: int, seed: int) -> str:
    lines = size // len(_LINE) + 1
    return "".join(_LINE.format(f"{seed}-{n}") for n in range(lines))[:size]


def _synced_file(path: Path) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, b"x" * 4096)
        os.fsync(file)
    finally:
        os.close(file)
