"""How one call of a host is run: alone in its session, shared with callers that ask for the same, within its time.

    enter     if the session's lane is free, go on. Otherwise wait for the run that holds it, then begin again with the
              state that it left
    here      while the line only records events, it runs on the caller's own thread, so a warm call costs no thread
    thread    from the first slow effect on it runs in a background thread, and the caller waits for it
    snapshot  a run that is out of time is fenced, and the caller gets the messages as they were before it. If they do not
              fit, the stages that need no model are tried once. If those do not end in time either, an error says so

`Conductor.conduct` never blocks. It yields what it waits for, so threads and event loops share every rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from compact.config import CompactConfig
from compact.engine.call import Call, Result
from compact.engine.context import Desk, Stage
from compact.engine.effects import Asking, Begin, Collect, Emit, LastCalled, Load, Paused, drive
from compact.engine.line import Line
from compact.engine.native import NativeRules, no_native
from compact.engine.outcome import Outcome
from compact.errors import ArchiveError, OutOfTime
from compact.events import Failure, Finished, Offload, Started
from compact.messages.dialects import Dialect, require_list
from compact.messages.hygiene.sanitizing import valid_text
from compact.runtime.background import Backgrounds
from compact.runtime.economy.opening import open_economy
from compact.runtime.lanes import NEVER, Fenced, Wait
from compact.runtime.run import Run
from compact.runtime.services import Services
from compact.runtime.session_cache import Prepared, Session, SessionCache
from compact.runtime.threads import in_thread
from compact.tokens import Meter
from compact.tracing.spans import Spans

T = TypeVar("T")

_MAX_ROUNDS = 4
"""How often a list that grew during the work is looked at again."""
_SLOW_S = 1.0
"""An archive that takes this long to fail is away. One that fails at once may be asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Outcome):
    """A pass that was out of time: the messages stand as they were before it."""

    snapshot_id: str = ""
    """Names the step that the messages stand on and the run that was fenced."""
    generation: int = 0
    """The number of the run that was fenced. If its result still comes, it is discarded."""


class Conductor:
    """Runs the calls of one manager."""

    def __init__(
        self,
        services: Services,
        sessions: SessionCache,
        *,
        timeout_s: float,
        rescue_timeout_s: float,
        archive_rest_s: float,
        may_ask: bool = False,
    ) -> None:
        self._services = services
        self._sessions = sessions
        self.backgrounds = Backgrounds(services, self._serve, timeout_s=timeout_s, may_ask=may_ask)
        """The passes that nobody waits for."""
        self._timeout_s = timeout_s
        self._rescue_timeout_s = rescue_timeout_s
        self._archive_rest_s = archive_rest_s
        self._archive_rests_until = 0.0

    def conduct(self, run: Run) -> Asking[Any]:
        """Run the whole call and return the messages to send.

        Raises:
            OutOfTime: it is out of time, and the messages do not fit as they are.
            CompactError: what the line raises.
        """
        run.until = time.monotonic() + self._timeout_s
        for _ in range(_MAX_ROUNDS):
            messages = yield from self._answer(run)
            is_unchanged = messages is run.call.messages
            if len(run.call.given) <= len(run.call.messages) or (grown := run.grow()) is None:
                break
            run = grown
        return run.call.given if is_unchanged and isinstance(run.call.given, list) else messages

    def store(self, session: Session, asking: Asking[T], limit_s: float, *, here: bool = True) -> Asking[T]:
        """Run a piece of work that needs the archive but not the lane.

        It begins on the caller's thread; without `here` all of it happens in another.

        Raises:
            ArchiveError: the archive failed, or did not answer in time.
        """
        run = Run(session, Call(messages=[], given=()))
        serve = Spans(self._services.recorder, session.trace, root=Offload).around(partial(self._serve, run))
        resume = None
        if here:
            try:
                return drive(asking, serve, pause=_is_slow)
            except Paused as paused:
                resume = paused.effect

        def fence() -> None:
            run.is_fenced = True

        done = in_thread(
            lambda: run.drive(asking, serve, resume, takes_turns=not here),
            "compact-store",
            stop=fence,
        )
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

    def work_alone(self, session: Session, work: Callable[[], T], settle: Callable[[T], None]) -> Asking[T]:
        """Do something slow while nobody else works on a session, and `settle` it before the next call enters.

        Raises:
            ArchiveError: the session is not free in time, the archive failed, or it did not answer in time.
        """
        run = Run(session, Call(messages=[], given=()), until=time.monotonic() + self._timeout_s)
        late = ArchiveError(
            f"the session is still in use after {self._timeout_s:g} s",
            hint="Try again when its calls have ended; policy.timeout_s gives it more time",
            reason="timeout",
        )
        while (busy := session.lane.enter(run)) is not None:
            if not (yield from self._watch(busy, run.until)):
                raise late
        try:
            done = in_thread(work, "compact-alone", stop=lambda: None)
            if not (yield Wait(done, run.until)):
                raise late
            found = done.result()
            session.lane.leave(run, lambda: settle(found))
            if session.background is not None:
                session.background.drop("the session was reset")
            return found
        finally:
            session.lane.leave(run)

    # --- the run

    def _answer(self, run: Run) -> Asking[Any]:
        """One round: alone in the lane, or after the run that holds it."""
        lane = run.session.lane
        while True:
            busy = lane.enter(run)
            if busy is None:
                return (yield from self._lead(run))
            if not (yield from self._watch(busy, run.until)):
                message = f"another compaction of this session is still under way after {self._timeout_s:g} s"
                self._services.emit(run.session, _timeout(message))
                return (yield from self._count_only(run))
            run.follow(busy)

    def _lead(self, run: Run) -> Asking[Any]:
        session = run.session
        try:
            assert run.line_for is not None
            line = run.line = run.line_for(session)
            if self.backgrounds.has_model or run.summarizer is not None:
                self.backgrounds.equip(line, run)
            spans = run.spans = Spans(self._services.recorder, session.trace)
            line.called_at = spans.began_at
            asking = line.run(run.call, session.state)
            resume = None
            if run.loop is None or run.is_light:
                emit = partial(self._services.journal.emit, session.key, session.state.step)
                try:
                    result = drive(asking, spans.around(emit), pause=_is_slow)
                    self._settle(run, result)
                    return result.messages
                except Paused as paused:
                    resume = paused.effect
            in_thread(
                partial(self._finish, run, asking, resume),
                "compact-pass",
                stop=partial(session.lane.fence, run, out_of_time=False),
            )
        except BaseException:
            session.lane.leave(run)
            raise
        yield from self._watch(run, NEVER)
        if run.is_fenced:
            return (yield from self._rescue(run))
        if run.problem is not None:
            raise run.problem
        assert run.result is not None
        return run.result.messages

    def _finish(self, run: Run, asking: Asking[Result], resume: Any) -> None:
        """Run the rest of the line, in a separate thread."""
        lane = run.session.lane
        assert run.spans is not None
        serve = run.spans.around(partial(self._serve, run))
        try:
            run.result = run.drive(asking, serve, resume, takes_turns=run.loop is not None)
        except Fenced:
            pass
        except BaseException as problem:
            run.problem = problem
        finally:
            run.end()
        if run.result is None:
            lane.leave(run)
        else:
            self._settle(run, run.result)
        if run.is_fenced and run.committed:
            # The step was being made at the very moment that its time was up. It is whole, and the next call finds it.
            lane.when_free(run.session.ask_again)
        if run.loop is not None:
            # A later pass may begin on the event loop, which must not wait for this. The caller has its answer already.
            import compact.engine.ladder  # noqa: F401

    def _serve(self, run: Run, effect: Any) -> Any:
        run.check()
        if isinstance(effect, Collect):
            return self.backgrounds.collect(run)
        if not isinstance(effect, Load | Begin | LastCalled):
            return self._services.serve(run, effect)
        # An archive that has just failed slowly is not asked again for a while, so that an outage costs one wait, not one per call.
        under_way = run.under_way
        can_wait = under_way is None or (under_way.fits and not run.call.manual)
        began = time.monotonic()
        if can_wait and began < self._archive_rests_until:
            raise ArchiveError(
                "the archive did not answer a moment ago",
                hint=f"It is asked again within {self._archive_rest_s:g} s",
                reason="resting",
            )
        try:
            return self._services.serve(run, effect)
        except ArchiveError:
            now = time.monotonic()
            if now - began > _SLOW_S:
                self._archive_rests_until = now + self._archive_rest_s
            raise

    def _settle(self, run: Run, result: Result) -> None:
        """Leave the lane with the session's new state."""
        session, outcome = run.session, result.outcome
        if outcome is not None and not run.is_fenced:
            # A host that is killed with its new messages in hand leaves a log that explains them.
            self._services.journal.flush()

        behind: list[Callable[[], None]] = []

        def settle() -> None:
            assert run.line is not None
            if result.state.step != session.state.step:
                session.came_to_nothing = 0
            if result.background is not None or session.background is not None:
                behind.extend(self.backgrounds.settle(run, result))
            committed = outcome is not None and outcome.step is not None
            tokens = result.state.tokens_after if committed else result.estimate.total
            session.state = result.state
            session.given = run.call.messages
            session.prepared = Prepared(run.line.meter, result.state.step, result.ours, run.line.rules.window)
            repeated = self._sessions.note_sent(session, result.messages, tokens)
            if run.line.called_at is not None:
                session.cache.note_call(run.line.called_at, repeated)
            if outcome is not None:
                session.outcome = outcome
                if committed:
                    session.tenant.statistics.credit_pass(outcome.saved)

        session.lane.leave(run, settle)
        for each in behind:
            each()

    # --- waiting, and what follows if it takes too long

    def _watch(self, run: Run, until: float) -> Asking[bool]:
        """Wait for the end of a run or of its time. Returns False if the caller's own time is up first."""
        lane = run.session.lane
        ended = lane.watch(run)
        try:
            while not (yield Wait(ended, min(until, run.until))):
                now = time.monotonic()
                if now >= run.until:
                    self.end_by_timeout(run)
                    return True
                if now >= until:
                    lane.forsake(run)
                    return False
        except BaseException:  # the caller was cancelled
            lane.forsake(run)
            raise
        return True

    def end_by_timeout(self, run: Run) -> None:
        """Fence a run that is out of time, and record that."""
        session = run.session
        if not session.lane.fence(run, out_of_time=True):
            return  # it has ended at this very moment
        limit = self._rescue_timeout_s if run.call.without_model else self._timeout_s
        failure = _timeout(
            f"run {run.generation} did not end within {limit:g} s: what still comes of it is discarded"
        )
        details: dict[str, Any] = {"generation": run.generation}
        under_way, spans = run.under_way, run.spans
        if under_way is None or spans is None:
            self._services.emit(session, failure, details)
            return
        tokens = under_way.before.estimate.total
        details["snapshot"] = _snapshot_id(run, under_way.before)
        self._services.emit(session, failure, details, span=spans.place(failure))
        finished = Finished(
            reason=under_way.decision.reason,
            note=under_way.note,
            outcome="timeout",
            duration_ms=round((self._services.now() - under_way.started) * 1000, 3),
            tokens_before=tokens,
            tokens_after=tokens,
        )
        self._services.emit(session, finished, details, span=spans.place(finished))

    def _rescue(self, run: Run) -> Asking[Any]:
        """What the caller gets if its run was out of time."""
        under_way = run.under_way
        if under_way is None:
            try:
                return (yield from self._count_only(run))
            except OutOfTime:
                if run.call.without_model:
                    raise
        elif under_way.fits:
            before, tokens = under_way.before, under_way.before.estimate.total
            run.session.outcome = Snapshot(
                rows=under_way.rows,
                tokens_before=tokens,
                tokens_after=tokens,
                snapshot_id=_snapshot_id(run, before),
                generation=run.generation,
            )
            return before.messages
        elif run.call.without_model:
            return (yield from self._count_only(run))
        until = self._rescue_until(run)
        return (yield from self._answer(run.again(replace(run.call, without_model=True), until=until)))

    def _count_only(self, run: Run) -> Asking[Any]:
        """Return the messages as they are, cleaned and counted, without the archive and without holding the lane.

        Raises:
            OutOfTime: they do not fit, or that is not known in time.
        """
        session = run.session
        assert run.line_for is not None
        line = run.line_for(session)
        line.intake = session.intake.renew()
        late = OutOfTime(
            f"compaction of {len(run.call.messages):,} messages did not end within {self._timeout_s:g} s, and they do not fit "
            "as they are",
            hint="The events before this say what it waited for; policy.timeout_s gives it more time",
            messages=len(run.call.messages),
            timeout_s=self._timeout_s,
        )

        def serve(effect: Any) -> None:
            if not isinstance(effect, Emit):
                raise late

        # It takes no turns: its caller has waited long enough.
        done = in_thread(
            lambda: drive(line.run(run.call, session.state), serve), "compact-snapshot", stop=lambda: None
        )
        if not (yield Wait(done, self._rescue_until(run))):
            raise late
        return done.result().messages

    def _rescue_until(self, run: Run) -> float:
        """One limit for everything that follows a run out of time. It starts when it is first asked for."""
        if run.rescue_until is None:
            run.rescue_until = time.monotonic() + self._rescue_timeout_s
        return run.rescue_until


@dataclass(frozen=True, slots=True)
class Lines:
    """Makes what the calls of one manager work with: lines for sessions and models, desks for the stages."""

    config: CompactConfig
    services: Services
    stages: tuple[Stage, ...] | None
    """The host's ladder; None: the default one."""

    def line(self, session: Session, model: str | None) -> Line:
        """The line of a call with this model. Warnings about the model are recorded once for each session.

        Raises:
            WindowTooSmall: the model's window cannot hold a working session.
        """
        models = session.tenant.models
        known = models.known.get(model or self.config.model)
        if known is None or known.version != models.learned.version:
            known = models.look_up(model)
        for warning in known.warnings:
            self.services.warn_once(session, warning)
        if session.economy is None or session.economy[0] is not known:
            session.economy = known, open_economy(session, known, self.config.economy, self.services)
        asks = self.services.asks_provider
        if asks and known.provider is None:
            self.services.warn_once(session, no_native(known.name))
        rules, meter = known.rules, known.meter
        if known.version:
            rules = models.rules_for_session(known, session)
        # An exact count needs no correction until the provider was seen to count otherwise.
        corrects = meter.factor != 1.0 or bool(session.observed)
        return Line(
            meter=meter,
            rules=rules,
            stages=self.stages,
            desk=lambda dialect: self.desk(session, dialect, meter),
            intake=session.intake,
            now=self.services.now,
            written=session.written,
            correct=partial(self.services.correct, session, meter) if corrects else None,
            thinking=known.thinking,
            native=NativeRules(known.provider, asks),
            request=known.request,
            sent=session.sent,
            economy=session.economy[1],
            moves_arriving=session.reads_archive,
        )

    def desk(self, session: Session, dialect: Dialect, meter: Meter) -> Desk:
        """The desk for messages of this dialect, counted by this meter."""
        services, offload = self.services, self.config.offload
        redactor = services.redactor_of(session)
        return Desk(
            dialect=dialect,
            count=lambda message: meter.count_item(dialect.write(message), dialect),
            count_text=meter.count_text,
            gauge_text=meter.gauge_text,
            scale=meter.scale,
            redact=partial(redactor.redact, origin="compact"),
            redact_output=partial(redactor.redact, origin="tool"),
            rewrite=lambda message: services.rewrite(session, message, dialect),
            large_result_tokens=offload.large_result_tokens,
            preview_lines=offload.preview_lines,
            preview_tokens=offload.preview_tokens,
            excerpt_share=offload.excerpt_share,
            write_tools=frozenset(offload.write_tools),
            fallback=self.config.summary.fallback,
            written=session.written,
        )


def _is_slow(effect: Any) -> bool:
    """Whether serving an effect may take time, or announces a pass that does."""
    return not isinstance(effect, Emit) or isinstance(effect.properties, Started)


def _timeout(message: str) -> Failure:
    return Failure(error_type="TimeoutError", message=message, fallback="snapshot")


def _snapshot_id(run: Run, before: Result) -> str:
    return f"snapshot-{before.state.step:03d}-{run.generation}"


def make_call(messages: Sequence[Any], *, note: str | None = None, **more: Any) -> Call:
    """A call with a copy of the host's list.

    Raises:
        MessageError: it is not a list.
    """
    if type(messages) is not list:
        require_list(messages)
    # A note goes into events as it is, and not every reader of those can take a lone surrogate.
    said = valid_text(note) if isinstance(note, str) else note
    return Call(messages=list(messages), given=messages, note=said, **more)
