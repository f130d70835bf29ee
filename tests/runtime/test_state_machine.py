"""Anything in any order: concurrent callers, cancels, faults, restarts. Whatever happens, every list sent is legal and fits,
and every message is in the context or in the archive.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.engine import Clock, pair, says, user
from support.running import GOOD
from support.strategies import examples

from compact import CompactConfig, CompactManager
from compact.archive import Archive, MemoryStore
from compact.checks import violations
from compact.errors import ArchiveError
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.summaries.request import SummaryRequest

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

WINDOW = 5_000
FAULTS = ("none", "none", "summarizer", "hang", "begin", "commit", "store")


class FaultyArchive(Archive):
    """An archive on a given store that refuses what it is told to refuse, once."""

    def __init__(self, store: MemoryStore, recorder: Recorder) -> None:
        super().__init__(store, Redactor(), recorder)
        self.refuses = "none"

    def begin(self, *args: Any, **named: Any) -> Any:
        self._maybe("begin")
        attempt = super().begin(*args, **named)
        commit = attempt.commit

        def faulty(**values: Any) -> Any:
            self._maybe("commit")
            return commit(**values)

        attempt.commit = faulty  # type: ignore[method-assign]
        return attempt

    def put_output(self, *args: Any, **named: Any) -> Any:
        self._maybe("store")
        return super().put_output(*args, **named)

    def _maybe(self, operation: str) -> None:
        if self.refuses == operation:
            self.refuses = "none"
            raise ArchiveError(f"{operation} was refused")


class Callers(RuleBasedStateMachine):
    """One session with a host that keeps its full history, and any number of callers at once."""

    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.starts = 0
        self.count = 0
        self.asked = 0
        self.fault = "none"
        self.history: list[dict[str, Any]] = [{"role": "system", "content": "Be careful."}]
        self.contexts: list[list[dict[str, Any]]] = []
        self.restart()

    @rule()
    def restart(self) -> None:
        """Another process takes over: only the archive is left."""
        self.starts += 1
        recorder = Recorder(self.clock, Ids(f"process {self.starts}"))
        self.archive = FaultyArchive(self.store, recorder)
        config = CompactConfig(
            model="gpt-4o",
            max_context_tokens=WINDOW,
            policy={"hard_cap_buffer": 500, "timeout_s": 30},
            summary={"timeout_s": 0.05},
            offload={"large_result_tokens": 1000},
        )
        self.made = CompactManager(config, archive=self.archive, summarizer=self.summarize, clock=self.clock)

    async def summarize(self, request: SummaryRequest) -> str:
        fault, self.fault = self.fault, "none"
        self.asked += 1
        await asyncio.sleep(0.002)
        if fault == "summarizer":
            raise RuntimeError("503")
        if fault == "hang":
            await asyncio.sleep(5)
        return GOOD

    @rule(words=st.integers(5, 400), calls=st.integers(0, 3))
    def turn(self, words: int, calls: int) -> None:
        """The session goes on."""
        self.history += self.new_turn(words, calls)

    def new_turn(self, words: int, calls: int) -> list[dict[str, Any]]:
        self.count += 1
        found = [user(f"question {self.count} " + "why " * words)]
        for k in range(calls):
            found += pair(f"c{self.count}.{k}", f"result {self.count}.{k} " + f"row{self.count} " * words)
        return [*found, says(f"answer {self.count} " + "so " * words)]

    @rule(
        callers=st.integers(1, 4),
        in_threads=st.integers(0, 2),
        cancelled=st.integers(0, 2),
        fault=st.sampled_from(FAULTS),
        arrives=st.booleans(),
    )
    def calls(self, callers: int, in_threads: int, cancelled: int, fault: str, arrives: bool) -> None:
        """Several callers at once, tasks and threads; some give up; one thing fails; a message arrives meanwhile."""
        self.fault = self.archive.refuses = fault
        asked, steps = self.asked, len(self.archive.steps("s"))
        results = asyncio.run(self.at_once(callers, in_threads, cancelled, arrives))
        self.fault = self.archive.refuses = "none"
        for result in results:
            if isinstance(result, BaseException):
                assert isinstance(result, ArchiveError | asyncio.CancelledError), result
                assert isinstance(result, asyncio.CancelledError) or fault in ("begin", "commit", "store")
            else:
                assert violations(result) == []
                assert self.made.estimate(result).total <= WINDOW - 500
                self.contexts.append(result)
        if fault == "none" and not cancelled and not arrives:
            assert self.asked - asked <= max(1, len(self.archive.steps("s")) - steps), "no summary twice"

    async def at_once(self, callers: int, in_threads: int, cancelled: int, arrives: bool) -> list[Any]:
        tasks = [asyncio.create_task(self.made.apreflight("s", self.history)) for _ in range(callers)]
        tasks += [
            asyncio.create_task(asyncio.to_thread(self.made.preflight, "s", list(self.history)))
            for _ in range(in_threads)
        ]
        await asyncio.sleep(0.001)
        for task in tasks[:cancelled]:
            task.cancel()
        if arrives:
            self.history += self.new_turn(10, 1)
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    @precondition(lambda self: self.contexts)
    @rule()
    def nothing_is_lost(self) -> None:
        out = self.made.preflight("s", self.history)
        assert violations(out) == []
        there = str(out)
        for step in self.archive.steps("s"):
            there += str(self.archive.restore("s", step).messages)
        there += "".join(self.archive.read_text("s", file.path) for file in self.archive.files("s"))
        for n in range(1, self.count + 1):
            assert f"question {n} " in there
            assert f"answer {n} " in there

    @invariant()
    def the_archive_is_whole(self) -> None:
        steps = self.archive.steps("s")
        assert steps == list(range(1, len(steps) + 1))
        assert self.archive.verify() == []

    def teardown(self) -> None:
        if hasattr(self, "made"):
            self.made.close()


Callers.TestCase.settings = settings(
    max_examples=examples(15), stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCallers = Callers.TestCase
