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
from weakref import WeakValueDictionary

from compact.archive import (
    UNTRUSTED,
    Archive,
    ArchiveRedactor,
    Backend,
    Step,
    backend_archive,
    last_called,
    open_archive,
)
from compact.archive.stores.port import SharedPages
from compact.config import CompactConfig
from compact.engine.corrections import Correction
from compact.engine.effects import (
    EFFECTS,
    Begin,
    Begun,
    Commit,
    Effect,
    Emit,
    Find,
    IsStored,
    KeepRemoved,
    LastCalled,
    Load,
    Loaded,
    LoadPins,
    Store,
)
from compact.engine.state import adopt, forget, restore_state
from compact.errors import ArchiveError, CompactError
from compact.events import Event, Failure, Ids, Offload, Properties, Recorder, Span, Warned, timestamp
from compact.events.session_key import SessionKey
from compact.messages import Message
from compact.messages.dialects import Dialect, get
from compact.redaction import Redactor, as_redactor, rules_from_config
from compact.runtime.lanes import Fenced
from compact.runtime.learned_factors import LearnedFactors
from compact.runtime.run import Run
from compact.runtime.session_cache import Prepared, Session, Statistics
from compact.runtime.summarizing import Writers
from compact.summaries.request import LEAST_ASKED, Reply, Summarizer, SummaryRequest
from compact.tokens import Meter
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
        self._redactor = as_redactor(redactor or make_redactor(config))
        self._session_redactors: WeakValueDictionary[SessionKey, Redactor] = WeakValueDictionary()
        self._making_redactors = threading.Lock()
        self.recorder = _make_recorder(clock)
        self.now: Callable[[], float] = time.perf_counter if clock is None else lambda: clock().timestamp()
        """Seconds, for durations. With the host's own clock, the same run gives the same figures."""
        self.statistics = Statistics()
        """Of all tenants."""
        workers = [
            ExportWorker(exporter, config.tracing.queue_events, self, self._warn_of_drops)
            for exporter in _make_exporters(config, exporters)
        ]
        self.journal = Journal(
            self.recorder,
            self._append,
            workers,
            report=self._warn_of_gaps,
            redact=self._redact,
            label=self._redactor.redact_id,
        )
        self.factors = LearnedFactors(self._redactor.redact_id)
        """What observed usage taught of models."""
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

    @property
    def shares_pages(self) -> bool:
        """Whether the archive's pages lie in a filesystem of the host."""
        return self._archive is not None and isinstance(self._archive.store, SharedPages)

    def archive_of(self, tenant: str | None) -> Archive:
        """The archive of a tenant's sessions; None: of those that belong to no tenant."""
        return self.archive if tenant is None else self.archive.for_tenant(tenant)

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

    def redactor(self, session: SessionKey) -> Redactor:
        """The session's redactor, the same one for everybody who holds it."""
        with self._making_redactors:
            found = self._session_redactors.get(session)
            if found is None:
                found = self._session_redactors[session] = self._redactor.session()
            return found

    def redactor_of(self, session: Session) -> Redactor:
        """The redactor of a session in memory, which lives as long as the session."""
        if session.redactor is None:
            session.redactor = self.redactor(session.key)
        return session.redactor

    def forget(self, session: SessionKey) -> None:
        """Drop what is kept of a session. What its redactor has learned is sealed in the archive."""
        if self._archive is not None:
            self.archive_of(session.tenant).release(session.session_id)

    def describe(self, counted: Statistics) -> CompactionStats:
        """What was saved and sent so far, and what the exporters did."""
        return {
            "total_tokens_saved": sum(counted.saved.values()),
            "compaction_events": counted.operations,
            "by_strategy": dict(counted.saved),
            "sent_tokens": counted.sent_tokens,
            "unchanged_prefix_tokens": counted.repeated_tokens,
            "exporters": self.journal.stats(),
        }

    # --- what the engine asks for

    def serve(self, run: Run, effect: Effect) -> Any:
        """Answer an effect. Everything but events may take its time."""
        session, archive = run.session, partial(self.archive_of, run.session.tenant.name)
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
                stored = archive().put_output(
                    session.id,
                    effect.text,
                    tool_name=effect.tool_name,
                    tool_call_id=effect.tool_call_id,
                    trace=effect.trace,
                    during=run.attempt,
                )
                return stored.path
            case Find():
                return archive().find_text(session.id, effect.path)
            case IsStored():
                return archive().holds_output(session.id, effect.text)
            case SummaryRequest():
                return self._summarize(run, effect)
            case Begin():
                attempt = archive().begin(
                    session.id,
                    effect.items,
                    dialect=effect.dialect,
                    after=effect.after,
                    given=effect.given,
                    own=effect.own,
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
                self._settle_factor(run, archive())
                return run.committed
            case Load():
                loaded = self._load(session, run.call.messages)
                self._settle_factor(run, archive())
                return loaded
            case LastCalled():
                return last_called(archive().lines(session.id))
            case LoadPins():
                return archive().pins(session.id)
            case KeepRemoved():
                return archive().put_removed(session.id, effect.items, trace=effect.trace).path

    # --- counts

    def observe(self, session: Session, request: Prepared, counted: int, *, refused: bool = False) -> None:
        """Take the provider's count of a request of a session."""
        grown = session.observe(request, counted, refused=refused)
        if grown is not None:
            self.factors.note(session.tenant.name, request.meter, *grown)

    def correct(self, session: Session, meter: Meter, ours: int, step: int) -> Correction:
        """What turns our count of a request of a session into its provider's."""
        return session.correction(meter, ours, step, self.factors.rate(session.tenant.name, meter))

    def _settle_factor(self, run: Run, archive: Archive) -> None:
        meter = None if run.line is None else run.line.meter
        damage = None if meter is None or meter.factor == 1.0 else self.factors.settle(archive, meter)
        if damage is not None:
            self.warn_once(run.session, Warned(code="factor_damaged", severity="low", message=damage.message))

    # --- the session's state

    def _load(self, session: Session, messages: Sequence[Any]) -> Loaded | None:
        """The state of the newest step; of an older one if the host's list continues that, because several agents share
        the session. If the archive remembers nothing, what the list itself says.
        """
        archive = self.archive_of(session.tenant.name)
        try:
            latest = archive.latest(session.id)
        except ArchiveError as problem:
            if problem.reason not in UNTRUSTED:
                raise
            message = (
                f"the session goes on without its state, which is not as it was written: {problem.message}"
            )
            self.warn_once(session, Warned(code="state_reset", severity="high", message=message))
            return forget(max(archive.steps(session.id)))
        if latest is None:
            return adopt(messages) if archive.forgets else None
        if archive.is_forgotten(session.id, latest.step):
            return forget(latest.step)
        newest = Loaded(latest.step, latest.state, latest.fingerprints)
        is_searched = session.state.step == latest.step and session.state.standing is None
        if is_searched or restore_state(newest, messages) is not None:
            return newest
        for number in reversed(archive.steps(session.id)[-_STATES:-1]):
            with suppress(ArchiveError):  # a damaged state, which `verify` reports
                step = archive.step(session.id, number)
                older = Loaded(latest.step, step.state, step.fingerprints)
                if restore_state(older, messages) is not None:
                    return older
        return newest

    def rewrite(self, session: Session, message: Message, dialect: Dialect) -> Message:
        """Return a message that compact changed as the host's list will have it: masked, written and read again."""
        masked = self.redactor_of(session).redact_message(dialect.write(message), for_model=True)
        return replace(dialect.read(masked), protected=message.protected)

    # --- summaries

    def asks_model(self, given: Summarizer | None) -> bool:
        """Whether a pass asks a model, or a summarizer of the host such as the one `given` for a call."""
        return self._writers.have_model(given)

    @property
    def asks_provider(self) -> bool:
        """Whether the agent's own provider writes the summaries."""
        return self._writers.is_native

    def _compact_natively(self, run: Run, request: SummaryRequest) -> Reply:
        """What the provider makes of the messages. They go as they are: it has them already."""
        assert run.line is not None
        provider = run.line.native.provider
        assert provider is not None
        if not run.session.tenant.breaker.allows():
            raise CompactError("the provider's compaction is paused after repeated failures")
        try:
            reply = self._writers.ask_provider(request, run.line.meter, provider, run)
        except Fenced:
            if run.is_out_of_time:
                self._note_failure(run)
            raise
        except Exception:
            self._note_failure(run)
            raise
        run.session.tenant.breaker.close()
        return reply

    def _summarize(self, run: Run, request: SummaryRequest) -> str | Reply:
        assert run.line is not None
        meter = run.line.meter
        if request.source == "native":
            return self._compact_natively(run, request)
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
        if run.call.without_model or not run.session.tenant.breaker.allows():
            return "the summarizer is paused after repeated failures"
        return ""

    def _judge(self, run: Run, effect: Effect) -> None:
        """Note whether the last reply was good. A rejected one has an event at once."""
        event = effect.properties if isinstance(effect, Emit) else None
        run.was_answered = False
        if not isinstance(event, Failure) or event.error_type != "SummaryRejected":
            run.session.tenant.breaker.close()
        elif event.fallback != "none":  # otherwise it is asked once more
            self._note_failure(run)

    def _note_failure(self, run: Run) -> None:
        if run.session.tenant.breaker.fail():
            recovery = self._config.recovery
            text = (
                f"the summarizer failed {recovery.breaker_failures} times in a row; it is paused for "
                f"{recovery.breaker_pause_s:g} s, and summaries are made without a model"
            )
            warning = Warned(code="breaker_open", severity="high", message=text)
            self.emit(run.session, warning, step=run.step)

    def _mask(self, session: Session, request: SummaryRequest) -> SummaryRequest:
        """Mask the secrets of a request, because a summarizer is an exit like any other.

        Its messages were masked by the origin of their words when they were archived, so rules are enough here.
        """
        dialect, redactor = get(request.dialect), self.redactor_of(session)
        items = [dialect.write(message) for message in request.messages]
        masked = tuple(dialect.read(item) for item in redactor.redact_messages(items, "compact"))
        previous = redactor.redact(request.previous, "compact")
        return replace(request, messages=masked, previous=previous, kept=(), values=None)

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
            session.tenant.statistics.credit_offload(properties.tokens_before - properties.tokens_after)
        step = session.state.step if step is None else step
        self.journal.emit(session.key, step, Emit(properties, payload or {}, span))

    def warn_once(self, session: Session, warning: Warned) -> None:
        """Record a warning the first time that it applies to a session."""
        if warning.code not in session.warned:
            session.warned.add(warning.code)
            self.emit(session, warning)

    def close(self) -> None:
        """Write what waits and end what runs in the background."""
        self.journal.close(self._config.tracing.flush_timeout_s)
        if self._archive is not None:
            self.factors.settle_all(self.archive_of)
            self._archive.close()

    def _append(self, session: SessionKey, events: Sequence[Event]) -> None:
        self.archive_of(session.tenant).append_events(session.session_id, events)

    def _redact(self, session: SessionKey, text: str) -> str:
        return self.redactor(session).redact(text, "tool")

    def _warn_of_drops(self, session: SessionKey, exporter: str, count: int, total: int) -> None:
        message = f"the exporter {exporter} could not keep up and dropped {count:,} events, {total:,} in all; events.jsonl has them"
        self.journal.emit(session, 0, Emit(Warned(code="exporter_drops", severity="medium", message=message)))

    def _warn_of_gaps(self, session: SessionKey, count: int) -> None:
        message = f"the archive took no events for so long that more than {LIMIT:,} waited; {count:,} of this session were dropped"
        self.journal.emit(session, 0, Emit(Warned(code="events_dropped", severity="high", message=message)))

    # --- the log, as exporters read it

    def lines(self, session: SessionKey) -> list[bytes]:
        """See `export_worker.Log`."""
        return self.archive_of(session.tenant).lines(session.session_id)

    def cursor(self, session: SessionKey, exporter: str) -> str | None:
        """See `export_worker.Log`."""
        return self.archive_of(session.tenant).cursor(session.session_id, exporter)

    def set_cursor(self, session: SessionKey, exporter: str, span_id: str) -> None:
        """See `export_worker.Log`."""
        self.archive_of(session.tenant).set_cursor(session.session_id, exporter, span_id)


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


def make_redactor(config: CompactConfig) -> Redactor:
    """The redactor that the settings describe."""
    if not config.redaction.enabled:
        return Redactor.disabled()
    return Redactor(rules_from_config(config.redaction.rules, config.redaction.extra))
