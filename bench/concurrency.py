"""Many sessions on one event loop, with faults: is everything legal, is anything lost, is the loop ever blocked?"""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import Figure
from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.archive.stores.files import FsStore
from compact.checks import violations
from compact.errors import ArchiveError
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.summaries.request import SummaryRequest

SESSIONS = 32
TURNS = 200
FAULTS = 0.05
WINDOW = 8_000
BEAT_S = 0.005
SUMMARY = "## Goal\nKeep the service running.\n## Next steps\nLook at the next report."

Item = dict[str, Any]


def bench_many_sessions() -> Iterator[Figure]:
    """32 sessions on one event loop, 200 turns each, 5% faults of archive and summarizer; what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        run = asyncio.run(_Load(Path(folder)).measured())
        illegal = sum(bool(violations(sent, in_flight=False)) for sent in run.sent)
        lost = run.lost()
        size = f"{len(run.sent)} requests, {run.steps} steps, {run.faults} faults, {run.seconds:.0f} s"
        run.made.close()
    yield Figure(f"illegal requests ({size})", illegal, "", 0)
    yield Figure(f"lost messages of {run.messages}", lost, "", 0)
    yield Figure(f"calls that had to be repeated ({run.refused} refused)", run.given_up, "", 0)
    late = f"99 of 100 under {run.typical_ms:.0f}; latest beat {run.late_ms:.0f}, idle {run.idle_ms:.0f}"
    yield Figure(f"longest block of the loop by us ({late})", run.blocked_ms, "ms", 50)


class _FaultyArchive(Archive):
    """An archive on the filesystem that fails now and then."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        recorder = Recorder(lambda: datetime.now(UTC), Ids("bench"))
        super().__init__(FsStore(root), Redactor(), recorder)
        self._chance = chance
        self.faults = 0

    def begin(self, *args: Any, **named: Any) -> Any:
        """See `Archive.begin`."""
        self._maybe()
        return super().begin(*args, **named)

    def put_output(self, *args: Any, **named: Any) -> Any:
        """See `Archive.put_output`."""
        self._maybe()
        return super().put_output(*args, **named)

    def latest(self, session_id: str) -> Any:
        """See `Archive.latest`."""
        self._maybe()
        return super().latest(session_id)

    def _maybe(self) -> None:
        if self._chance.random() < FAULTS:
            self.faults += 1
            raise ArchiveError("no room on the device, as the benchmark wanted")


@dataclass
class _Load:
    root: Path
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    sent: list[list[Item]] = field(default_factory=list)
    refused: int = 0
    given_up: int = 0
    faults: int = 0
    idle_ms: float = 0
    late_ms: float = 0
    blocked_ms: float = 0
    typical_ms: float = 0
    seconds: float = 0

    def __post_init__(self) -> None:
        self.archive = _FaultyArchive(self.root, self.chance)
        config = CompactConfig(
            model="gpt-4o",
            max_context_tokens=WINDOW,
            offload={"large_result_tokens": 2000},
            summary={"timeout_s": 0.2},
            recovery={"breaker_pause_s": 1},
        )
        self.made = CompactManager(config, archive=self.archive, summarizer=self._summarize)
        self.histories = [list(opening_of(n)) for n in range(SESSIONS)]
        self.late: list[float] = []
        self.blocked: list[float] = []

    async def measured(self) -> _Load:
        """Measure the idle loop for a while, then run all sessions at once."""
        await self._beating(asyncio.sleep(3))
        self.idle_ms = max(self.late) * 1000
        gc.collect()
        gc.disable()  # it would walk through this benchmark's own data for a tenth of a second
        started = time.perf_counter()
        await self._beating(asyncio.gather(*(self._session(n) for n in range(SESSIONS))))
        self.seconds = time.perf_counter() - started
        gc.enable()
        self.late_ms = max(self.late) * 1000
        self.blocked_ms = max(self.blocked) * 1000
        self.typical_ms = sorted(self.blocked)[int(len(self.blocked) * 0.99)] * 1000
        self.faults += self.archive.faults
        return self

    async def _beating(self, work: Any) -> None:
        """Measure how late the loop's beats are while something else runs, and how much of that compact causes.

        On a shared machine a beat may be late because other programs had the processor. The time during which the loop's
        thread was ready but did not run is therefore not counted, and at most what our threads have computed is.
        """
        self.late, self.blocked = [], []
        task = asyncio.ensure_future(work)
        while not task.done():
            before, computed, kept_waiting = time.perf_counter(), time.process_time(), _kept_waiting_s()
            await asyncio.sleep(BEAT_S)
            late = time.perf_counter() - before - BEAT_S
            self.late.append(late)
            by_us = late - (_kept_waiting_s() - kept_waiting)
            self.blocked.append(max(0.0, min(by_us, time.process_time() - computed)))
        await task

    async def _session(self, number: int) -> None:
        keeps_result = number % 2 == 0
        history = context = self.histories[number]
        for turn in range(TURNS):
            new = turn_of(number, turn)
            history.extend(new) if keeps_result else None
            context = [*context, *new] if keeps_result else history
            if not keeps_result:
                history.extend(new)
            out = await self._prepared(number, context)
            self.sent.append(list(out))
            if keeps_result:
                context = list(out)
            await asyncio.sleep(0.01 * self.chance.random())  # the model thinks

    async def _prepared(self, number: int, context: list[Item]) -> list[Item]:
        for _ in range(8):
            try:
                out: list[Item] = await self.made.apreflight(f"session-{number}", context)
            except ArchiveError:
                self.refused += 1
            else:
                return out
        self.given_up += 1
        return context

    async def _summarize(self, request: SummaryRequest) -> str:
        assert request.messages
        await asyncio.sleep(0.02)
        dice = self.chance.random()
        if dice < FAULTS:
            self.faults += 1
            if dice < FAULTS / 2:
                raise RuntimeError("503 from the summarizer, as the benchmark wanted")
            await asyncio.sleep(1)  # longer than its timeout
        return SUMMARY

    @property
    def messages(self) -> int:
        """How many messages all sessions have."""
        return sum(map(len, self.histories))

    @property
    def steps(self) -> int:
        """How many steps were made."""
        return sum(len(self.archive.steps(f"session-{n}")) for n in range(SESSIONS))

    def lost(self) -> int:
        """Messages that are neither in the last request of their session nor in the archive."""
        missing = 0
        for number, history in enumerate(self.histories):
            name = f"session-{number}"
            there = "\n".join(
                path.read_text(encoding="utf-8") for path in (self.root / name).rglob("*") if path.is_file()
            )
            last = self.made.preflight(name, history) if number % 2 else None
            shown = str(last or "") + str([m for m in self.sent if m and m[0] is history[0]][-1])
            for message in history:
                marker = message["content"].split(" ", 1)[0] if message["content"] else None
                if marker and marker not in there and marker not in shown:
                    missing += 1
        return missing


def _kept_waiting_s() -> float:
    """How long this thread has been ready without a processor so far; 0 if the system does not tell."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def opening_of(number: int) -> Iterator[Item]:
    """How a session begins."""
    yield {"role": "system", "content": f"<{number}.system> You look after a service."}


def turn_of(number: int, turn: int) -> list[Item]:
    """A question, one or two calls with results of very different sizes, and an answer to the turn before."""
    chance = random.Random(f"{number}.{turn}")
    found: list[Item] = []
    if turn:
        found.append({"role": "assistant", "content": f"<{number}.{turn}.a> done: {_words(chance, 30)}"})
    found.append({"role": "user", "content": f"<{number}.{turn}.u> {_words(chance, 25)}?"})
    for k in range(chance.choice([1, 1, 2])):
        call = f"call_{number}_{turn}_{k}"
        function = {"name": "report", "arguments": f'{{"part": "{turn}"}}'}
        found.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            }
        )
        size = 1500 if chance.random() < 0.01 else chance.choice([10, 40, 150])
        found.append(
            {
                "role": "tool",
                "tool_call_id": call,
                "content": f"<{number}.{turn}.{k}> {_words(chance, size)}",
            }
        )
    return found


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(_POOL) for _ in range(count))


_POOL = [f"{first}{second}" for first in ("alpha", "beta", "disk", "node", "error") for second in range(200)]
