"""How one call of a host is run: alone in its session, shared with whoever asks for the same, within its time.

    enter     the session's lane is free: go on. It is not: wait for the run that holds it, then begin again; what that run
              compacted is found compacted
    here      while only events come, the line runs on the caller's own thread: a small warm call costs no thread
    thread    from the first real need on it runs in a thread, and the caller waits for it, on a thread or on a loop
    snapshot  out of time: the run is fenced, and the caller gets the messages as they were before; if they do not fit,
              the stages that need no model are tried once; if those do not end either, an error says so

`Conductor.conduct` never blocks: it yields what it waits for, so threads and event loops share every rule.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from compact import turns
from compact.engine.driver import drive, served
from compact.engine.effects import Asking, Begin, Emit, Load, Need
from compact.engine.ladder import Outcome
from compact.engine.line import Call, Line, Result, UnderWay
from compact.errors import ArchiveError
from compact.events import Failure, Finished, Started
from compact.messages import dialects
from compact.messages.hygiene.verified import Verified
from compact.runtime.lanes import Fenced, Wait, Waiting
from compact.runtime.services import Outside, Summarizer, Work
from compact.runtime.session_cache import Session
from compact.runtime.threads import in_thread
from compact.summaries.request import SummaryRequest
from compact.tokens import Meter

T = TypeVar("T")

_MAX_ROUNDS = 4
"""How often a list is looked at again that grew while it was worked on."""
_LIGHT_CHARS = 16_000
_LIGHT_MESSAGES = 5_000
"""More than this, or so much new text, is too much work for an event loop."""
_SLOW_S = 1.0
"""An archive that takes this long to fail is away; one that fails at once may be asked again."""
_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Outcome):
    """A pass that was out of time: the messages stand as they were before it."""

    snapshot_id: str = ""
    """The step that the messages stand on, and the number of the run that gave way."""
    generation: int = 0
    """The number of that run; its result, should it still come, counts for nothing."""


class _Led(Work):
    """A run, with the line that it runs and what came of it."""

    line: Line | None = None
    result: Result | None = None
    problem: BaseException | None = None
    manual_of: Sequence[Any] | None = None
    """The messages, if they are compacted by hand."""

    @property
    def under_way(self) -> UnderWay | None:
        """The pass that was begun, if one was."""
        return None if self.line is None else self.line.under_way


@dataclass(slots=True, kw_only=True)
class Job:
    """What a host asked for."""

    session: Session
    call: Call
    line: Callable[[Session], Line]
    summarizer: Summarizer | None = None
    loop: asyncio.AbstractEventLoop | None = None
    """The caller's event loop; None: the caller is a thread and may do heavy work."""
    without_model: bool = False
    rescue_until: float | None = None
    """When what follows a run that was out of time must have ended too; None while no run was."""

    @classmethod
    def of(cls, call: Call, **parts: Any) -> Job:
        """The job of a call. Its list is copied, if that has not been done: the host may go on writing to its own."""
        if call.given is None:
            call = replace(call, messages=copied(call.messages), given=call.messages)
        return cls(call=call, without_model=call.without_model, **parts)

    def grew(self) -> bool:
        """Whether the host has added messages meanwhile; then the job is about those too."""
        before, given = self.call.messages, self.call.given
        if len(given) <= len(before):
            return False
        now = list(given)
        if any(one is not other for one, other in zip(before, now, strict=False)):
            return False  # rewritten, not grown: what was asked is answered
        self.call = replace(self.call, messages=now, manual=False)
        return True

    def joined(self, other: _Led) -> None:
        """Somebody else's run has ended: a compaction by hand that it has made is not made again."""
        if self.call.manual and other.committed and other.manual_of == self.call.messages:
            self.call = replace(self.call, manual=False)

    def is_light(self) -> bool:
        """Whether little is new since the last call, so that it may be looked at on an event loop."""
        messages = self.call.messages
        if len(messages) > _LIGHT_MESSAGES:
            return False
        for seen in (self.session.sent, self.session.given):
            count = len(seen)
            if count and len(messages) >= count and messages[count - 1] is seen[count - 1]:
                return is_light(messages[count:])
        return False


class Conductor:
    """Runs the calls of one manager."""

    def __init__(
        self, outside: Outside, *, timeout_s: float, rescue_timeout_s: float, archive_rest_s: float
    ) -> None:
        self._outside = outside
        self._timeout_s = timeout_s
        self._rescue_timeout_s = rescue_timeout_s
        self._archive_rest_s = archive_rest_s
        self._archive_rests_until = 0.0

    def conduct(self, job: Job) -> Waiting[Any]:
        """The whole call. Raises what the line raises, and `ArchiveError` when it is out of time and nothing fits."""
        until = time.monotonic() + self._timeout_s
        for _ in range(_MAX_ROUNDS):
            messages = yield from self._answered(job, until)
            unchanged = messages is job.call.messages
            if not job.grew():
                break
        return job.call.given if unchanged else messages

    def _answered(self, job: Job, until: float) -> Waiting[Any]:
        """One round: alone in the lane, or after whoever is in it."""
        session = job.session
        while True:
            work = _Led(
                session,
                until=until,
                summarizer=job.summarizer,
                loop=job.loop,
                without_model=job.without_model,
            )
            busy = session.lane.enter(work)
            if busy is None:
                return (yield from self._led(job, work))
            assert isinstance(busy, _Led)
            if not (yield from self._watched(busy, until)):
                message = f"another compaction of this session is still under way after {self._timeout_s:g} s"
                self._outside.emit(session, _timeout(message))
                return (yield from self._refused(job))
            job.joined(busy)

    def stored(
        self, session: Session, asking: Asking[T], meter: Meter, limit_s: float, *, here: bool = True
    ) -> Waiting[T]:
        """The end of a piece of work that needs the archive and not the lane.

        It begins on the caller's thread; without `here` all of it happens elsewhere.

        Raises:
            ArchiveError: the archive failed, or did not answer in time; what still comes of the work is harmless.
        """
        work = Work(session)
        try:
            need = next(asking) if here else None
        except StopIteration as end:
            done_already: T = end.value
            return done_already

        def run() -> T:
            if not here:
                turns.join()
            try:
                return drive(asking, partial(self._served, work, meter), need)
            finally:
                turns.leave()

        def fence() -> None:
            work.fenced = True

        done = in_thread(run, "compact-store", stop=fence)
        ended = False
        try:
            ended = yield Wait(done, time.monotonic() + limit_s)
        finally:
            if not ended:
                fence()
        if not ended:
            raise ArchiveError(
                f"the archive did not answer within {limit_s:g} s",
                hint="Look at what it waits for; archive.timeout_s gives it more time",
                reason="timeout",
            )
        return done.result()

    def _served(self, work: Work, meter: Meter, need: Need) -> Any:
        """The answer to a need, in a thread that may take turns."""
        work.check()
        if not isinstance(need, Emit | SummaryRequest):
            turns.rest()  # an archive may hang anywhere
        try:
            if isinstance(need, Load | Begin):
                assert isinstance(work, _Led)
                return self._unless_away(work, lambda: self._outside.serve(work, need, meter))
            return self._outside.serve(work, need, meter)
        finally:
            turns.take()

    # --- the run

    def _led(self, job: Job, work: _Led) -> Waiting[Any]:
        session = job.session
        try:
            work.line = line = job.line(session)
            asking = line.run(job.call, session.state)
            here = job.loop is None or job.is_light()
            need = self._begun(work, asking, line.meter) if here else None
            if isinstance(need, Result):
                self._settle(job, work, need)
                return need.messages
            work.manual_of = job.call.messages if job.call.manual else None
            in_thread(
                partial(self._finished, job, work, asking, need, line.meter),
                "compact-pass",
                stop=partial(session.lane.fence, work, out_of_time=False),
            )
        except BaseException:
            session.lane.leave(work)
            raise
        yield from self._watched(work, until=_NEVER)
        if work.fenced:
            return (yield from self._instead(job, work))
        if work.problem is not None:
            raise work.problem
        assert work.result is not None
        return work.result.messages

    def _begun(self, work: _Led, asking: Asking[Result], meter: Meter) -> Need | Result:
        """Runs the line as long as only events come: its end, or the need that may take its time."""
        serve = self._outside.serve
        try:
            need = next(asking)
            while isinstance(need, Emit) and not isinstance(need.properties, Started):
                need = served(asking, lambda wanted: serve(work, wanted, meter), need)
        except StopIteration as end:
            result: Result = end.value
            return result
        return need

    def _finished(
        self, job: Job, work: _Led, asking: Asking[Result], need: Need | None, meter: Meter
    ) -> None:
        """The rest of the line, in a thread of its own."""
        lane = job.session.lane
        if job.loop is not None:
            work.turn = turns.join()
        try:
            work.result = drive(asking, partial(self._served, work, meter), need)
        except Fenced:
            pass
        except BaseException as problem:
            work.problem = problem
        finally:
            work.end()
            turns.leave()
        if work.result is None:
            lane.leave(work)
        else:
            self._settle(job, work, work.result)
        if work.fenced and work.committed:
            # The step was being made in the very moment that its time was up. It is whole; the next call finds it.
            lane.when_free(job.session.ask_again)

    def _unless_away(self, work: _Led, ask: Callable[[], Any]) -> Any:
        """Asks the archive, unless it failed slowly a moment ago: an outage costs one wait, not one for each call."""
        under_way = work.under_way
        can_wait = under_way is None or (under_way.fits and work.manual_of is None)
        began = time.monotonic()
        if can_wait and began < self._archive_rests_until:
            raise ArchiveError(
                "the archive did not answer a moment ago",
                hint=f"It is asked again within {self._archive_rest_s:g} s",
                reason="resting",
            )
        try:
            return ask()
        except ArchiveError:
            now = time.monotonic()
            if now - began > _SLOW_S:
                self._archive_rests_until = now + self._archive_rest_s
            raise

    def _settle(self, job: Job, work: _Led, result: Result) -> None:
        session, outside, outcome = job.session, self._outside, result.outcome
        assert work.line is not None
        factor = work.line.meter.factor
        if outcome is not None and not work.fenced:
            outside.flush()  # a host that is killed with its new messages in hand leaves a log that explains them

        def settle() -> None:
            session.state = result.state
            session.given = job.call.messages
            committed = outcome is not None and outcome.step is not None
            tokens = result.state.tokens_after if committed else result.estimate.total
            session.last_total, session.last_factor = tokens, factor
            outside.sent(session, result.messages, tokens)
            if outcome is not None:
                session.outcome = outcome
                for stage, saved in outcome.saved.items():
                    if stage != "offload":  # counted one by one, as they happen
                        outside.credit(stage, saved)

        session.lane.leave(work, settle)

    # --- waiting, and what follows when it takes too long

    def _watched(self, work: _Led, until: float) -> Waiting[bool]:
        """Waits for the end of a run, or of its time; False when the caller's own time is up first."""
        lane = work.session.lane
        ended = lane.watched(work)
        try:
            while not (yield Wait(ended, min(until, work.until))):
                now = time.monotonic()
                if now >= work.until:
                    self._out_of_time(work)
                    return True
                if now >= until:
                    lane.forsake(work)
                    return False
        except BaseException:  # the caller was cancelled
            lane.forsake(work)
            raise
        return True

    def _out_of_time(self, work: _Led) -> None:
        session = work.session
        if not session.lane.fence(work, out_of_time=True):
            return  # it has ended in this very moment
        limit = self._rescue_timeout_s if work.without_model else self._timeout_s
        message = f"run {work.generation} did not end within {limit:g} s: what still comes of it is discarded"
        details: dict[str, Any] = {"generation": work.generation}
        under_way = work.under_way
        if under_way is None or work.line is None:
            self._outside.emit(session, _timeout(message), details)
            return
        spans = work.line.spans
        before = under_way.before
        details["snapshot"] = _snapshot_id(work, before)
        failure = _timeout(message)
        self._outside.emit(session, failure, details, span=spans.place(failure))
        finished = Finished(
            reason=under_way.decision.reason,
            note=under_way.note,
            outcome="timeout",
            duration_ms=round((self._outside.now() - under_way.started) * 1000, 3),
            tokens_before=before.estimate.total,
            tokens_after=before.estimate.total,
        )
        self._outside.emit(session, finished, details, span=spans.place(finished))

    def _instead(self, job: Job, work: _Led) -> Waiting[Any]:
        """What the caller gets when its run was out of time."""
        under_way = work.under_way
        if under_way is None:
            try:
                return (yield from self._refused(job))
            except ArchiveError:
                if job.without_model:
                    raise
        elif under_way.fits:
            return self._snapshot(work, under_way)
        elif job.without_model:
            return (yield from self._refused(job))
        job.without_model = True
        return (yield from self._answered(job, self._rescue_until(job)))

    def _snapshot(self, work: _Led, under_way: UnderWay) -> Any:
        before = under_way.before
        work.session.outcome = Snapshot(
            rows=under_way.rows,
            tokens_before=before.estimate.total,
            tokens_after=before.estimate.total,
            snapshot_id=_snapshot_id(work, before),
            generation=work.generation,
        )
        return before.messages

    def _refused(self, job: Job) -> Waiting[Any]:
        """The messages as they are, cleaned and counted, without the archive and without holding the lane.

        Raises:
            ArchiveError: they do not fit, or that is not known in time.
        """
        session, line = job.session, job.line(job.session)
        line.verified, line.moved = Verified(), dict(session.moved)

        late = ArchiveError(
            f"compaction did not end within {self._timeout_s:g} s, and the messages do not fit as they are",
            hint="The events before this say what it waited for; policy.timeout_s gives it more time",
            reason="timeout",
        )

        def serve(need: Need) -> None:
            if not isinstance(need, Emit):
                raise late

        # It takes no turns: whoever waits for it has waited long enough.
        done = in_thread(
            lambda: drive(line.run(job.call, session.state), serve), "compact-snapshot", stop=lambda: None
        )
        if not (yield Wait(done, self._rescue_until(job))):
            raise late
        return done.result().messages

    def _rescue_until(self, job: Job) -> float:
        """All that follows a run that was out of time shares one limit, which begins when it is first asked for."""
        if job.rescue_until is None:
            job.rescue_until = time.monotonic() + self._rescue_timeout_s
        return job.rescue_until


def copied(messages: Any) -> list[Any]:
    """A list of the same messages.

    Raises:
        MessageError: it is no list.
    """
    dialects.require_list(messages)
    return list(messages)


def _timeout(message: str) -> Failure:
    return Failure(error_type="TimeoutError", message=message, fallback="snapshot")


def _snapshot_id(work: _Led, before: Result) -> str:
    return f"snapshot-{before.state.step:03d}-{work.generation}"


def is_light(value: Any) -> bool:
    """Whether there is so little text in it that an event loop may count it."""
    return chars_in(value, _LIGHT_CHARS) <= _LIGHT_CHARS


def chars_in(value: Any, limit: int) -> int:
    """Roughly how much text is in messages. It stops looking once it is more than `limit`."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, list | tuple):
        # Numbers cost nothing; what an object holds is not known without reading it.
        return 0 if value is None or isinstance(value, int | float) else limit + 1
    found = 0
    for entry in value:
        found += chars_in(entry, limit - found) + 1
        if found > limit:
            break
    return found
