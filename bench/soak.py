"""A thousand long sessions in one process: `make soak`, or `python -m bench.soak --sessions 20 --turns 40`.

One manager with an archive on the filesystem serves them all, as a server would. The provider is a function that counts each
request on its own (plain tiktoken, the published formula) and refuses one over the window with the error that a provider
sends. Half of the hosts keep the list that they get back, the others pass their full history every time.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import Figure, run_to_end, whole_number
from bench.concurrency import opening_of, turn_of
from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.tokens.counter import counter_for

Item = dict[str, Any]

WINDOW = 8_000
MOST_GROWTH = 0.05
_SAMPLES = 40
_PER_MESSAGE, _PER_REQUEST, _PER_CALL = 3, 3, 8
"""Tokens that surround a message. The number around a call is not published, so it is estimated generously."""


class TooLong(Exception):
    """What a provider answers to a request over its window."""

    code = "context_length_exceeded"


@dataclass(slots=True)
class Sample:
    """What the process holds at one moment."""

    sessions: int
    resident_mb: float
    files: int
    threads: int


@dataclass
class Soak:
    """Runs the sessions and records what went wrong."""

    sessions: int
    turns: int
    root: Path
    requests: int = 0
    steps: int = 0
    messages: int = 0
    refused: int = 0
    illegal: int = 0
    lost: int = 0
    left_behind: int = 0
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._count_text = counter_for("o200k_base", fast=False).count

    def run(self, say: Any = None) -> Soak:
        """All sessions, one after the other, in one manager."""
        config = CompactConfig(
            model="gpt-4o",
            max_context_tokens=WINDOW,
            offload={"large_result_tokens": 2_000},
            archive={"root": str(self.root)},
        )
        every = max(1, self.sessions // _SAMPLES)
        with CompactManager(config) as made:
            for number in range(self.sessions):
                self._session(made, number)
                if (number + 1) % every == 0:
                    self.samples.append(self._sample(number + 1))
                    if say:
                        say(self)
        return self

    def _session(self, made: CompactManager, number: int) -> None:
        name = f"session-{number}"
        history: list[Item] = list(opening_of(number))
        context = list(history)
        for turn in range(self.turns):
            new = turn_of(number, turn)
            history += new
            context += new
            if number % 2:
                made.call(name, history, self.provider)
                sent = list(made.last_request(name) or [])
            else:
                context = list(made.preflight(name, context))
                sent = context
                self._checked(sent)
        self.messages += len(history)
        self.steps += len(made.archive.steps(name))
        self.lost += self._missing(name, history, sent)
        self._sizes.clear()
        shutil.rmtree(self.root / name, ignore_errors=True)  # a thousand archives would test the disk

    def provider(self, messages: Any) -> Item:
        """The model call: a reply, or the refusal of a request that is too long."""
        self._checked(list(messages))
        return {"choices": [{"message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}]}

    def _checked(self, sent: list[Item]) -> None:
        self.requests += 1
        self.illegal += bool(violations(sent, "chat", in_flight=False))
        if self.count(sent) > WINDOW:
            self.refused += 1
            raise TooLong(f"This model's maximum context length is {WINDOW} tokens.")

    def count(self, sent: list[Item]) -> int:
        """Tokens of a request, counted apart from our own meter."""
        total = _PER_REQUEST
        for item in sent:
            total += _PER_MESSAGE + self._size(item.get("content") or "")
            for call in item.get("tool_calls") or []:
                total += _PER_CALL + self._size(call["function"]["name"])
                total += self._size(call["function"]["arguments"])
        return total

    def _size(self, text: str) -> int:
        known = self._sizes.get(text)
        if known is None:
            known = self._sizes[text] = self._count_text(text)
        return known

    def _missing(self, name: str, history: list[Item], sent: list[Item]) -> int:
        folder = self.root / name
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
        self.left_behind += sum(path.name.startswith(".") and path.suffix == ".tmp" for path in files)
        there = "\n".join(path.read_text(encoding="utf-8") for path in files) + str(sent)
        marks = [item["content"].split(" ", 1)[0] for item in history if item["content"]]
        return sum(mark not in there for mark in marks)

    def _sample(self, done: int) -> Sample:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        return Sample(done, resident, len(list(Path("/proc/self/fd").iterdir())), threading.active_count())

    def grown(self) -> float:
        """Growth of the resident memory over the last half, each end as the median of a few samples."""
        half = self.samples[len(self.samples) // 2 :]
        few = max(1, len(half) // 5)
        first, last = (sorted(s.resident_mb for s in part)[few // 2] for part in (half[:few], half[-few:]))
        return last / first - 1

    def figures(self) -> list[Figure]:
        """What `make soak` prints."""
        half = self.samples[len(self.samples) // 2 :]
        about = f"{self.sessions} sessions, {self.messages} messages, {self.requests} requests, {self.steps} steps"
        return [
            Figure(f"context-limit errors ({about})", self.refused, "", 0),
            Figure("illegal requests", self.illegal, "", 0),
            Figure(f"lost messages of {self.messages}", self.lost, "", 0),
            Figure("temporary files left behind", self.left_behind, "", 0),
            Figure(
                f"memory over the last half, from {half[0].resident_mb:.0f} MB", self.grown() * 100, "%", 5
            ),
            Figure(
                f"open files, {half[0].files} at half", half[-1].files, "", max(s.files for s in half[:3])
            ),
            Figure(f"threads, {half[0].threads} at half", half[-1].threads, "", half[0].threads),
        ]


def main() -> int:
    """Return 1 if a target was missed."""
    asked = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    asked.add_argument("--sessions", type=whole_number(1), default=1_000)
    asked.add_argument("--turns", type=whole_number(1), default=60)
    given = asked.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = Soak(given.sessions, given.turns, Path(folder)).run(_say)
    figures = done.figures()
    for figure in figures:
        print(figure)
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(figure.passed for figure in figures) else 1


def _say(run: Soak) -> None:
    at = run.samples[-1]
    print(
        f"{at.sessions:>5} sessions  {run.steps:>6} steps  {at.resident_mb:6.1f} MB  {at.files} files  "
        f"{at.threads} threads  {run.refused} refused  {run.illegal} illegal  {run.lost} lost",
        flush=True,
    )


if __name__ == "__main__":
    run_to_end(main)
