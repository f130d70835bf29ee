"""Summarizers that wait to be let go, and callers that come while a compaction runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from support.engine import pair, turns, user
from support.waiting import WAIT_S

from compact import CompactManager
from compact.summaries.request import SummaryRequest

GOOD = "## Goal\nGo on with the questions.\n## Next steps\nAnswer the next question."


def long_session(count: int = 60) -> list[dict[str, Any]]:
    """A session of about 350 tokens a turn, with a few tool calls at its end."""
    tail = [message for n in range(4) for message in pair(f"c{n}", f"output {n} " * 40)]
    return [{"role": "system", "content": "Be careful."}, *turns(count), *tail, user("Go on.")]


def moment_in(seconds: float) -> float:
    """A moment of the monotonic clock, as a `Wait` takes it."""
    return time.monotonic() + seconds


class Gate:
    """A summarizer that answers when it is let go. It counts how often it was asked."""

    def __init__(self, answer: str = GOOD) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.requests: list[SummaryRequest] = []
        self.answer = answer

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        self.asked.set()
        assert self.let_go.wait(WAIT_S)
        return self.answer


def watchers_of(made: CompactManager, session: str = "s") -> int:
    """How many callers wait for the run that is under way."""
    run = made.sessions.get(session).lane.run
    return 0 if run is None else run.watchers


class Caller(threading.Thread):
    """One call in a thread of its own; what it gave, or what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.result: Any = None
        self.problem: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as problem:
            self.problem = problem

    def given(self) -> Any:
        self.join(WAIT_S)
        assert not self.is_alive(), "the caller still waits"
        if self.problem is not None:
            raise self.problem
        return self.result
