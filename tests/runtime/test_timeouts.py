"""A pass out of time gives its snapshot; what still comes of it counts for nothing, and it blocks nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from support.engine import Clock, assert_good, events, manager, says, summary_of, user
from support.running import GOOD, Caller, Gate, long_session, watchers_of
from support.waiting import WAIT_S, auntil, until

from compact import CompactConfig, CompactManager
from compact.archive import Archive, MemoryStore
from compact.checks import violations
from compact.errors import ArchiveError, OutOfTime
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.runtime import threads
from compact.runtime.conductor import Snapshot
from compact.summaries.request import SummaryRequest
from compact.tokens import Meter

WINDOW = 20_000
SHORT: dict[str, Any] = {"timeout_s": 1.5}


def run(made: CompactManager, items: list[Any], runs_async: bool) -> Any:
    return asyncio.run(made.apreflight("s", items)) if runs_async else made.preflight("s", items)


def run_in_the_end(made: CompactManager, items: list[Any], runs_async: bool) -> Any:
    """Run until a pass ends in its time. On a busy machine the first one may not."""
    found: list[Any] = []

    def ends() -> bool:
        try:
            found.append(run(made, items, runs_async))
        except OutOfTime:
            return False
        return True

    until(ends)
    return found[0]


def idle(made: CompactManager) -> bool:
    return not any(thread.name == "compact-pass" for thread in threading.enumerate())


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_pass_out_of_time_gives_the_snapshot_and_its_late_result_is_discarded(runs_async: bool) -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate, policy={**SHORT, "hard_cap_buffer": 0})
    items = long_session(50)
    assert 0.85 * WINDOW <= made.estimate(items).total <= WINDOW
    assert run(made, items, runs_async) is items
    outcome = made.last_outcome("s")
    assert isinstance(outcome, Snapshot)
    assert outcome.snapshot_id == "snapshot-000-1"
    assert outcome.tokens_before == outcome.tokens_after == made.estimate(items).total
    gate.let_go.set()
    until(lambda: idle(made))
    assert made.archive.steps("s") == []
    assert made.archive.verify() == []
    assert not [e for e in made.archive.store.blobs("s") if "attempt" in e.key], "the attempt was removed"
    out = run(made, items, runs_async)
    assert summary_of(out)
    assert len(gate.requests) == 2
    assert made.archive.steps("s") == [1]


def test_a_pass_out_of_time_is_told() -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate, policy={**SHORT, "hard_cap_buffer": 0})
    items = long_session(50)
    made.preflight("s", items)
    gate.let_go.set()
    (error,) = events(made, name="error")
    assert error["properties"]["error_type"] == "TimeoutError"
    assert error["properties"]["fallback"] == "snapshot"
    assert error["payload"] == {"generation": 1, "snapshot": "snapshot-000-1"}
    (finished,) = events(made, name="finished")
    assert finished["properties"]["outcome"] == "timeout"
    assert finished["properties"]["duration_ms"] > 0
    assert finished["properties"]["tokens_after"] == made.estimate(items).total


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_snapshot_that_does_not_fit_goes_through_the_stages_that_need_no_model(runs_async: bool) -> None:
    gate = Gate()
    made = manager(WINDOW, summarizer=gate, policy=SHORT)
    items = long_session(100)
    assert made.estimate(items).total > WINDOW
    out = run(made, items, runs_async)
    assert_good(made, items, out)
    assert len(gate.requests) == 1, "the model was not asked again"
    assert made.archive.steps("s") == [1]
    assert [e["properties"]["outcome"] for e in events(made, name="finished")] == ["timeout", "compacted"]
    gate.let_go.set()
    until(lambda: idle(made))
    assert made.archive.steps("s") == [1], "the late one did not commit"
    assert made.preflight("s", items) == out


class SlowArchive(Archive):
    """An archive in memory that hangs in one operation until it is let go."""

    def __init__(self, operation: str) -> None:
        recorder = Recorder(Clock(), Ids("test"))
        super().__init__(MemoryStore(recorder.clock), Redactor(), recorder)
        self.let_go = threading.Event()
        self.hangs = threading.Event()
        self.operation = operation

    def begin(self, *args: Any, **named: Any) -> Any:
        self._wait("begin")
        return super().begin(*args, **named)

    def latest(self, session_id: str) -> Any:
        self._wait("latest")
        return super().latest(session_id)

    def put_output(self, *args: Any, **named: Any) -> Any:
        self._wait("put_output")
        return super().put_output(*args, **named)

    def append_events(self, *args: Any) -> None:
        self._wait("append_events")
        super().append_events(*args)

    def _wait(self, operation: str) -> None:
        if operation == self.operation:
            self.hangs.set()
            assert self.let_go.wait(WAIT_S)


@pytest.mark.parametrize("runs_async", [False, True])
@pytest.mark.parametrize("operation", ["begin", "latest"])
def test_an_archive_that_hangs_costs_one_timeout(operation: str, runs_async: bool) -> None:
    archive = SlowArchive(operation)
    policy = {"timeout_s": 3.0, "rescue_timeout_s": 0.5, "hard_cap_buffer": 0}
    config = CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, policy=policy)
    made = CompactManager(config, archive=archive)
    items = long_session(50)
    assert run(made, items, runs_async) is items
    large = long_session(100)
    with pytest.raises(ArchiveError, match="did not end within"):
        run(made, large, runs_async)
    archive.let_go.set()
    until(lambda: idle(made))
    assert archive.steps("s") == []
    assert_good(made, large, run_in_the_end(made, large, runs_async))
    assert archive.verify() == []


@pytest.mark.parametrize("operation", ["begin", "latest"])
def test_nobody_waits_for_a_run_whose_archive_hangs(operation: str) -> None:
    archive = SlowArchive(operation)
    hanging = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=WINDOW), archive=archive)
    other = manager(WINDOW)
    items = long_session(100)

    async def host() -> Any:
        waiting = asyncio.create_task(hanging.apreflight("s", items))
        await auntil(archive.hangs.is_set)
        assert not threads.processor.locked()
        out = await other.apreflight("s", items)
        assert not waiting.done()
        archive.let_go.set()
        await waiting
        return out

    assert_good(other, items, asyncio.run(host()))


def test_a_tool_result_that_is_not_stored_in_time_stays_as_it_is_and_a_late_store_harms_nothing() -> None:
    archive = SlowArchive("put_output")
    made = CompactManager(CompactConfig(model="gpt-4o", archive={"timeout_s": 0.2}), archive=archive)
    large = "a line of output\n" * 20_000
    assert made.process_tool_result(large, "query", "c1", "s") is large
    assert not archive.let_go.is_set()
    archive.let_go.set()
    until(lambda: not any(thread.name == "compact-store" for thread in threading.enumerate()))
    (error,) = events(made, name="error")
    assert error["properties"]["fallback"] == "none"
    assert "within 1.2 s" in error["properties"]["message"]
    assert not events(made, name="offload"), "nothing left the context"
    assert archive.verify() == []
    assert made.process_tool_result(large, "query", "c1", "s") != large


class Answer:
    """A tool's result that is written out when the event loop says so: it would wait for itself on the loop."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()

    def __str__(self) -> str:
        self.asked.set()
        assert self.let_go.wait(WAIT_S)
        return "a line of output\n" * 20_000


def test_an_event_loop_goes_on_while_a_tool_result_is_read_counted_and_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting: set[int] = set()
    count = Meter.count_text

    def noted(meter: Meter, text: str) -> int:
        counting.add(threading.get_ident())
        return count(meter, text)

    monkeypatch.setattr(Meter, "count_text", noted)
    archive, answer = SlowArchive("put_output"), Answer()
    made = CompactManager(CompactConfig(model="gpt-4o", archive={"timeout_s": WAIT_S}), archive=archive)

    async def host() -> Any:
        waiting = asyncio.create_task(made.aprocess_tool_result(answer, "query", "c1", "s"))
        await auntil(answer.asked.is_set)
        answer.let_go.set()
        await auntil(archive.hangs.is_set)
        assert not threads.processor.locked(), "nobody waits for a disk with its turn"
        assert not waiting.done()
        archive.let_go.set()
        return await waiting

    shown = asyncio.run(host())
    assert "the output of query is in /tool_outputs/" in shown
    assert counting
    assert threading.get_ident() not in counting
    (offload,) = events(made, name="offload")
    assert offload["properties"]["tool_call_id"] == "c1"


def test_a_tool_result_is_the_same_for_a_thread_and_an_event_loop() -> None:
    for result in ("small", {"rows": [1, 2]}, "a line of output\n" * 20_000, {"rows": list(range(60_000))}):
        here, there = manager(), manager()
        expected = here.process_tool_result(result, "query", "c1", "s")
        assert asyncio.run(there.aprocess_tool_result(result, "query", "c1", "s")) == expected
        assert events(here) == events(there)
        assert (expected is result) is (len(str(result)) < 100)


def test_a_tool_result_that_is_not_stored_in_time_stays_as_it_is_on_an_event_loop_too() -> None:
    archive = SlowArchive("put_output")
    made = CompactManager(CompactConfig(model="gpt-4o", archive={"timeout_s": 0.2}), archive=archive)
    large = "a line of output\n" * 20_000
    assert asyncio.run(made.aprocess_tool_result(large, "query", "c1", "s")) is large
    archive.let_go.set()
    (error,) = events(made, name="error")
    assert error["properties"]["fallback"] == "none"


def test_close_does_not_wait_longer_for_an_archive_that_hangs_than_for_an_exporter() -> None:
    archive = SlowArchive("append_events")
    made = CompactManager(CompactConfig(model="gpt-4o", tracing={"flush_timeout_s": 0.2}), archive=archive)
    made.warn("s", "breaker_open", "something to write")
    made.close()
    assert not archive.let_go.is_set()
    archive.let_go.set()
    assert events(made, name="warning"), "it is written once the archive goes on"


class Stuck(dict[str, Any]):
    """A message that cannot be read until it is let go."""

    let_go: threading.Event

    def get(self, *key: Any) -> Any:
        assert self.let_go.wait(WAIT_S)
        return super().get(*key)


def test_messages_that_cannot_even_be_read_in_time_are_an_error_and_not_a_wait() -> None:
    stuck = Stuck(user("hi"))
    stuck.let_go = threading.Event()
    made = manager(WINDOW, policy={"timeout_s": 0.6, "rescue_timeout_s": 0.2})
    with pytest.raises(ArchiveError, match="did not end within"):
        asyncio.run(made.apreflight("s", [stuck]))
    stuck.let_go.set()
    until(lambda: idle(made))


class AwayArchive(SlowArchive):
    """An archive that fails, but takes its time to."""

    def __init__(self, operation: str, clock: list[float]) -> None:
        super().__init__(operation)
        self.clock = clock
        self.asked = 0

    def _wait(self, operation: str) -> None:
        if operation == self.operation:
            self.asked += 1
            self.clock[0] += 5
            raise ArchiveError("no answer")


@pytest.mark.parametrize("operation", ["begin", "latest"])
def test_an_outage_costs_one_wait_and_not_one_for_each_call(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("compact.runtime.conductor.time.monotonic", lambda: clock[0])
    archive = AwayArchive(operation, clock)
    policy = {"hard_cap_buffer": 0, "timeout_s": 1e6}
    made = CompactManager(
        CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, policy=policy), archive=archive
    )
    items = long_session(50) if operation == "begin" else long_session(5)
    for _ in range(4):
        assert made.preflight("s", items) is items
    assert archive.asked == 1
    clock[0] += 31
    assert made.preflight("s", items) is items
    assert archive.asked == 2, "it is asked again after a while"
    if operation == "begin":
        with pytest.raises(ArchiveError, match="no answer"):
            made.preflight("s", long_session(100))  # too large to wait
        assert archive.asked == 3


def test_the_caller_waits_no_longer_than_its_own_time_whoever_runs() -> None:
    """Three callers, one after the other, none of them beyond its own limit."""
    gate = Gate()
    made = manager(WINDOW, summarizer=gate, policy={"timeout_s": 1.0, "hard_cap_buffer": 0})
    items = long_session(50)
    callers = [Caller(lambda: made.preflight("s", items))]
    assert gate.asked.wait(WAIT_S)
    callers += [Caller(lambda: made.preflight("s", items)) for _ in range(2)]
    assert all(caller.given() is items for caller in callers), "each came back while the model still worked"
    gate.let_go.set()
    assert made.archive.steps("s") == []


class BlockingStore(MemoryStore):
    """A store that hangs in the middle of the commit: while the summary is staged, or while the state is created."""

    def __init__(self, clock: Any, hangs_at: str) -> None:
        super().__init__(clock)
        self.let_go = threading.Event()
        self.hangs_at = hangs_at

    def create(self, key: str, record: Any) -> Any:
        self._maybe_hang("create", key)
        return super().create(key, record)

    def stage(self, key: str, record: Any) -> None:
        self._maybe_hang("stage", key)
        super().stage(key, record)

    def _maybe_hang(self, operation: str, key: str) -> None:
        if operation == self.hangs_at and ("/state-" in key or "summary" in key):
            assert self.let_go.wait(WAIT_S)


def out_of_time_in_commit(hangs_at: str) -> tuple[CompactManager, list[Any]]:
    """A session whose pass was out of time during its commit, and has ended since."""
    recorder = Recorder(Clock(), Ids("test"))
    store = BlockingStore(recorder.clock, hangs_at)
    policy = {"timeout_s": 1.5, "hard_cap_buffer": 0}
    config = CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, policy=policy)
    made = CompactManager(config, archive=Archive(store, Redactor(), recorder))
    items = long_session(50)
    made.preflight("s", items[:3])  # the archive was asked: what this process knows is not asked for again
    assert made.preflight("s", items) is items
    store.let_go.set()
    until(lambda: idle(made))
    return made, items


def test_a_step_that_was_being_made_when_its_time_was_up_is_found_by_the_next_call() -> None:
    made, items = out_of_time_in_commit("create")
    assert made.archive.steps("s") == [1]
    out = made.preflight("s", items)
    assert_good(made, items, out)
    assert summary_of(out)
    assert made.archive.steps("s") == [1], "it was taken as it is, not made again"
    assert len(events(made, name="started")) == 1
    assert made.archive.verify() == []


def test_a_commit_that_is_late_is_stopped_before_its_commit_point() -> None:
    made, items = out_of_time_in_commit("stage")
    assert made.archive.steps("s") == []
    assert made.archive.verify() == []
    assert summary_of(made.preflight("s", items))
    assert made.archive.steps("s") == [1]


def test_an_attempt_that_was_revoked_cannot_commit() -> None:
    recorder = Recorder(Clock(), Ids("test"))
    archive = Archive(MemoryStore(recorder.clock), Redactor(), recorder)
    attempt = archive.begin("s", [user("hi")], dialect="chat", after=0)
    attempt.revoke()
    with pytest.raises(ArchiveError, match="has ended"):
        attempt.commit(summary={}, state={})
    attempt.abandon()
    assert archive.steps("s") == []


# --- summaries


@pytest.mark.parametrize("runs_async", [False, True])
@pytest.mark.parametrize("kind", ["thread", "coroutine", "promise"])
def test_a_summary_past_its_time_falls_back_whatever_kind_of_summarizer_it_is(
    kind: str, runs_async: bool
) -> None:
    gate = Gate()
    cancelled = threading.Event()

    async def coroutine(request: SummaryRequest) -> str:
        gate.requests.append(request)
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return GOOD

    summarizer = {"thread": gate, "coroutine": coroutine, "promise": lambda request: coroutine(request)}[kind]
    made = manager(WINDOW, summarizer=summarizer, summary={"timeout_s": 0.2})
    items = long_session(100)
    out = run(made, items, runs_async)
    gate.let_go.set()
    assert_good(made, items, out)
    assert len(gate.requests) == 1
    (error,) = events(made, name="error")
    assert error["properties"]["error_type"] == "TimeoutError"
    assert error["properties"]["fallback"] == "extractive"
    assert error["properties"]["message"] == "no answer within 0.2 s (summary.timeout_s)"
    assert kind == "thread" or cancelled.wait(WAIT_S)


def test_the_summarizers_of_an_event_loop_that_ended_do_not_hold_others_up() -> None:
    """A thread waits for a compaction that a task began; the task's loop is gone before the summary comes."""
    begun = threading.Event()

    async def summarize(request: SummaryRequest) -> str:
        begun.set()
        await asyncio.sleep(WAIT_S)
        return GOOD

    made = manager(WINDOW, summarizer=summarize)
    items = long_session(100)
    joined = threading.Event()

    async def host() -> None:
        task = asyncio.create_task(made.apreflight("s", items))
        await auntil(lambda: begun.is_set() and joined.is_set())
        task.cancel()

    loop = Caller(lambda: asyncio.run(host()))
    assert begun.wait(WAIT_S)
    follower = Caller(lambda: made.preflight("s", items))
    until(lambda: watchers_of(made) == 2)
    joined.set()
    loop.given()
    assert_good(made, items, follower.given())


def test_a_host_without_a_loop_may_use_a_coroutine() -> None:
    async def summarize(request: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return GOOD

    made = manager(WINDOW, summarizer=summarize)

    async def notebook() -> Any:
        return made.preflight("s", long_session(100))  # a sync call on a thread that has a loop already

    assert GOOD.splitlines()[1] in summary_of(asyncio.run(notebook()))
    assert GOOD.splitlines()[1] in summary_of(made.preflight("t", long_session(100)))


# --- log lines


def test_start_end_and_fallbacks_are_log_lines_with_durations(caplog: pytest.LogCaptureFixture) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"

    def broken(request: SummaryRequest) -> str:
        raise RuntimeError(f"401 for key {secret}")

    made = manager(WINDOW, summarizer=broken)
    with caplog.at_level(logging.INFO, logger="compact"):
        made.preflight("s", long_session(100))
    lines = [record.getMessage() for record in caplog.records if record.name == "compact"]
    assert lines[0].startswith("session s: compaction started (")
    assert any("RuntimeError, fallback extractive" in line for line in lines)
    assert lines[-1].startswith("session s: compaction ended after ")
    assert " ms: compacted, " in lines[-1]
    assert not any(secret in line for line in lines)
    assert violations(made.preflight("s", [user("hi"), says("x")])) == []
