"""What serves the engine: archive, events, summarizers, redaction."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypedDict

from compact.archive import Archive, ArchiveRedactor, Backend, Step, backend_archive, open_archive
from compact.config import CompactConfig
from compact.engine.effects import (
    EFFECTS,
    Begin,
    Begun,
    Commit,
    Effect,
    Emit,
    Find,
    KeepRemoved,
    Load,
    Loaded,
    Store,
)
from compact.engine.state import adopt, forget, restore_state
from compact.errors import ArchiveError, CompactError
from compact.events import Event, Failure, Ids, Offload, Properties, Recorder, Span, Warned, timestamp
from compact.messages import Message
from compact.messages.dialects import Dialect, get
from compact.redaction import Redactor, rules_from_config
from compact.runtime.lanes import Fenced
from compact.runtime.run import Run
from compact.runtime.session_cache import Session, SessionCache
from compact.runtime.summarizing import Breaker, Writers
from compact.summaries.request import LEAST_ASKED, Reply, Summarizer, SummaryRequest
from compact.tracing.export_worker import ExportWorker
from compact.tracing.exporters import Exporter, ExporterLike, as_exporter, open_exporter
from compact.tracing.journal import LIMIT, Journal

_STATES = 8
"""How many steps are looked at for the state that a list continues."""


class CompactionStats(TypedDict):
    """What `CompactManager.get_compaction_stats` returns."""

    total_tokens_saved: int
    compaction_events: int
    by_strategy: dict[str, int]
    sent_tokens: int
    unchanged_prefix_tokens: int
    exporters: dict[str, dict[str, int]]


class Statistics:
    """What was saved, by stage. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.operations = 0
        self.saved: dict[str, int] = {}

    def credit_offload(self, tokens: int) -> None:
        """Count a tool result that was moved to the archive, in a pass or when it arrived, and what that saved."""
        with self._lock:
            self._add("offload", tokens)
            self.operations += 1

    def credit_pass(self, saved: Mapping[str, int]) -> None:
        """Count a pass once, however many stages took part. Its offloads are counted one by one, as they happen."""
        stages = {stage: tokens for stage, tokens in saved.items() if stage != "offload"}
        with self._lock:
            for stage, tokens in stages.items():
                self._add(stage, tokens)
            self.operations += bool(stages)

    def _add(self, stage: str, tokens: int) -> None:
        self.saved[stage] = self.saved.get(stage, 0) + tokens


class Services:
    """The parts of one manager that touch the world."""

    def __init__(
        self,
        config: CompactConfig,
        *,
        summarizer: Summarizer | None,
        archive: Archive | Backend | None,
        exporters: Iterable[ExporterLike],
        redactor: ArchiveRedactor | None,
        clock: Callable[[], datetime] | None,
    ) -> None:
        self._config = config
        self._writers = Writers(config, summarizer)
        self._redactor = redactor or _make_redactor(config)
        self._session_redactors: dict[str, ArchiveRedactor] = {}
        self.recorder = _make_recorder(clock)
        self.now: Callable[[], float] = time.perf_counter if clock is None else lambda: clock().timestamp()
        """Seconds, for durations. With the host's own clock, the same run gives the same figures."""
        self.statistics = Statistics()
        recovery = config.recovery
        self._breaker = Breaker(recovery.breaker_failures, recovery.breaker_pause_s, self.recorder.clock)
        workers = [
            ExportWorker(exporter, config.tracing.queue_events, self, self._warn_of_drops)
            for exporter in _make_exporters(config, exporters)
        ]
        self.journal = Journal(
            self.recorder, self._append, workers, report=self._warn_of_gaps, redact=self._redact
        )
        self._archive = None if archive is None else self._take_archive(archive)
        self._opening = threading.Lock()

    @property
    def archive(self) -> Archive:
        """The archive, opened when it is first needed."""
        with self._opening:
            if self._archive is None:
                settings = self._config.archive.model_dump()
                self._archive = open_archive(
                    self._redactor,
                    self.recorder,
                    session_redactor=self.redactor,
                    listener=self.journal.pass_on,
                    **settings,
                )
            return self._archive

    def _take_archive(self, archive: Archive | Backend) -> Archive:
        if isinstance(archive, Archive):
            archive.listen(self.journal.pass_on)
            return archive
        return backend_archive(
            archive,
            self._redactor,
            self.recorder,
            self.journal.pass_on,
            session_redactor=self.redactor,
            timeout_s=self._config.archive.step_timeout_s,
        )

    def redactor(self, session_id: str) -> ArchiveRedactor:
        """The session's redactor. A secret that it has found once is masked at every exit of the session."""
        found = self._session_redactors.get(session_id)
        if found is None:
            found = self._session_redactors.setdefault(session_id, self._redactor.session())
        return found

    def forget(self, session_id: str) -> None:
        """Drop what is kept of a session. Its redactor stays if it has learned a secret."""
        if getattr(self._session_redactors.get(session_id), "has_learned", None) is False:
            self._session_redactors.pop(session_id, None)

    def describe(self, sessions: SessionCache) -> CompactionStats:
        """What was saved and sent so far, and what the exporters did."""
        return {
            "total_tokens_saved": sum(self.statistics.saved.values()),
            "compaction_events": self.statistics.operations,
            "by_strategy": dict(self.statistics.saved),
            "sent_tokens": sessions.sent_tokens,
            "unchanged_prefix_tokens": sessions.repeated_tokens,
            "exporters": self.journal.stats(),
        }

    # --- what the engine asks for

    def serve(self, run: Run, effect: Effect) -> Any:
        """Answer an effect. Everything but events may take its time."""
        session = run.session
        if not isinstance(effect, EFFECTS):
            raise CompactError(
                f"a stage asked for something unknown: {type(effect).__name__}",
                hint="A stage yields the effects of compact.engine.effects",
            )
        if run.was_answered:
            self._judge(run, effect)
        if not isinstance(effect, Emit | SummaryRequest):
            self.journal.flush()  # so that the log has everything in order
        match effect:
            case Emit():
                return self.emit(session, effect.properties, effect.payload, run.step, effect.span)
            case Store():
                stored = self.archive.put_output(
                    session.id,
                    effect.text,
                    tool_name=effect.tool_name,
                    tool_call_id=effect.tool_call_id,
                    trace=effect.trace,
                )
                return stored.path
            case Find():
                return self.archive.find_text(session.id, effect.path)
            case SummaryRequest():
                return self._summarize(run, effect)
            case Begin():
                attempt = self.archive.begin(
                    session.id, effect.items, dialect=effect.dialect, after=effect.after, given=effect.given
                )
                run.attempt = attempt
                return Begun(attempt.step, attempt.history_path, attempt.messages)
            case Commit():
                assert run.attempt is not None
                step = run.attempt.commit(
                    summary=effect.summary,
                    state=effect.state,
                    fingerprints=effect.fingerprints,
                    trace=effect.trace,
                )
                run.committed = isinstance(step, Step)
                return run.committed
            case Load():
                return self._load(session, run.call.messages)
            case KeepRemoved():
                return self.archive.put_removed(session.id, effect.items, trace=effect.trace)

    def _load(self, session: Session, messages: Sequence[Any]) -> Loaded | None:
        """The state of the newest step; of an older one if the host's list continues that, because several agents share
        the session. If the archive remembers nothing, what the list itself says.
        """
        latest = self.archive.latest(session.id)
        if latest is None:
            return adopt(messages) if self.archive.forgets else None
        if self.archive.is_forgotten(session.id, latest.step):
            return forget(latest.step)
        newest = Loaded(latest.step, latest.state, latest.fingerprints)
        is_searched = session.state.step == latest.step and session.state.standing is None
        if is_searched or restore_state(newest, messages) is not None:
            return newest
        for number in reversed(self.archive.steps(session.id)[-_STATES:-1]):
            with suppress(ArchiveError):  # a damaged state, which `verify` reports
                step = self.archive.step(session.id, number)
                older = Loaded(latest.step, step.state, step.fingerprints)
                if restore_state(older, messages) is not None:
                    return older
        return newest

    def rewrite(self, session: Session, message: Message, dialect: Dialect) -> Message:
        """Return a message that compact changed as the host's list will have it: masked, written and read again."""
        masked = self.redactor(session.id).redact_messages([dialect.write(message)])[0]
        return replace(dialect.read(masked), protected=message.protected)

    # --- summaries

    def _summarize(self, run: Run, request: SummaryRequest) -> str | Reply:
        assert run.line is not None
        meter = run.line.meter
        warning = self._writers.unavailable(run.summarizer)
        if warning is not None:
            self.warn_once(run.session, warning)
        if not self._writers.needs_model(request, run.summarizer):
            return self._writers.extract(request, meter)
        silent = self._why_not_asked(run, request)
        if silent:
            if self._config.summary.fallback != "extractive":
                raise CompactError(silent)
            return self._writers.extract(request, meter)
        try:
            reply = self._writers.ask(self._mask(run.session, request), meter, run)
        except Fenced:
            if run.is_out_of_time:
                self._note_failure(run)
            raise
        except Exception:
            self._note_failure(run)
            raise
        run.was_answered = True
        return reply

    def _why_not_asked(self, run: Run, request: SummaryRequest) -> str:
        """Why the summarizer is left alone this time; empty if it is asked."""
        if request.max_tokens < LEAST_ASKED:
            return f"{request.max_tokens} tokens are too few for a summary by a model; it takes {LEAST_ASKED}"
        if run.call.without_model or not self._breaker.allows():
            return "the summarizer is paused after repeated failures"
        return ""

    def _judge(self, run: Run, effect: Effect) -> None:
        """Note whether the last reply was good. A rejected one has an event at once."""
        event = effect.properties if isinstance(effect, Emit) else None
        run.was_answered = False
        if not isinstance(event, Failure) or event.error_type != "SummaryRejected":
            self._breaker.close()
        elif event.fallback != "none":  # otherwise it is asked once more
            self._note_failure(run)

    def _note_failure(self, run: Run) -> None:
        if self._breaker.fail():
            recovery = self._config.recovery
            text = (
                f"the summarizer failed {recovery.breaker_failures} times in a row; it is paused for "
                f"{recovery.breaker_pause_s:g} s, and summaries are made without a model"
            )
            warning = Warned(code="breaker_open", severity="high", message=text)
            self.emit(run.session, warning, step=run.step)

    def _mask(self, session: Session, request: SummaryRequest) -> SummaryRequest:
        """Mask the secrets of a request, because a summarizer is an exit like any other."""
        dialect, redactor = get(request.dialect), self.redactor(session.id)
        items = [dialect.write(message) for message in request.messages]
        masked = tuple(dialect.read(item) for item in redactor.redact_messages(items))
        return replace(request, messages=masked, previous=redactor.redact(request.previous))

    # --- events and statistics

    def emit(
        self,
        session: Session,
        properties: Properties,
        payload: Mapping[str, Any] | None = None,
        step: int | None = None,
        span: Span | None = None,
    ) -> None:
        """Record an event of a session."""
        if isinstance(properties, Offload):
            self.statistics.credit_offload(properties.tokens_before - properties.tokens_after)
        step = session.state.step if step is None else step
        self.journal.emit(session.id, step, Emit(properties, payload or {}, span))

    def warn_once(self, session: Session, warning: Warned) -> None:
        """Record a warning the first time that it applies to a session."""
        if warning.code not in session.warned:
            session.warned.add(warning.code)
            self.emit(session, warning)

    def close(self) -> None:
        """Write what waits and end what runs in the background."""
        self.journal.close(self._config.tracing.flush_timeout_s)
        if self._archive is not None:
            self._archive.close()

    def _append(self, session_id: str, events: Sequence[Event]) -> None:
        self.archive.append_events(session_id, events)

    def _redact(self, session_id: str, text: str) -> str:
        return self.redactor(session_id).redact(text)

    def _warn_of_drops(self, session_id: str, exporter: str, count: int, total: int) -> None:
        message = f"the exporter {exporter} could not keep up and dropped {count:,} events, {total:,} in all; events.jsonl has them"
        self.journal.emit(
            session_id, 0, Emit(Warned(code="exporter_drops", severity="medium", message=message))
        )

    def _warn_of_gaps(self, session_id: str, count: int) -> None:
        message = f"the archive took no events for so long that more than {LIMIT:,} waited; {count:,} of this session were dropped"
        self.journal.emit(
            session_id, 0, Emit(Warned(code="events_dropped", severity="high", message=message))
        )

    # --- the log, as exporters read it

    def lines(self, session_id: str) -> list[bytes]:
        """See `export_worker.Log`."""
        return self.archive.lines(session_id)

    def cursor(self, session_id: str, exporter: str) -> str | None:
        """See `export_worker.Log`."""
        return self.archive.cursor(session_id, exporter)

    def set_cursor(self, session_id: str, exporter: str, span_id: str) -> None:
        """See `export_worker.Log`."""
        self.archive.set_cursor(session_id, exporter, span_id)


def _make_recorder(clock: Callable[[], datetime] | None) -> Recorder:
    """Ids differ between processes, which may work on the same session, but not between runs with the same clock."""
    if clock is None:
        return Recorder(partial(datetime.now, UTC), Ids(os.urandom(16).hex()))
    return Recorder(clock, Ids(timestamp(clock())))


def _make_exporters(config: CompactConfig, given: Iterable[ExporterLike]) -> list[Exporter]:
    """The exporters of the configuration and those of the host, each with a unique name."""
    named = [open_exporter(name, config.tracing) for name in dict.fromkeys(config.tracing.exporters)]
    found = [each for each in named if each is not None] + [as_exporter(each) for each in given]
    taken: dict[str, int] = {}
    for exporter in found:
        count = taken[exporter.name] = taken.get(exporter.name, 0) + 1
        if count > 1:
            exporter.name = f"{exporter.name}-{count}"
    return found


def _make_redactor(config: CompactConfig) -> Redactor:
    if not config.redaction.enabled:
        return Redactor.disabled()
    return Redactor(rules_from_config(config.redaction.rules, config.redaction.extra))
