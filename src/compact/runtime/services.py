"""The outside of the engine: archive, events, summarizer, redaction. It serves what the engine asks for."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from compact.archive import Archive, Attempt, Backend, Step, backend_archive, open_archive
from compact.config import CompactConfig
from compact.engine.effects import Begin, Begun, Commit, Emit, KeepRemoved, Load, Loaded, Need, Store
from compact.errors import CompactError
from compact.events import Event, Failure, Ids, Offload, Properties, Recorder, Span, Warned, timestamp
from compact.messages import Message
from compact.messages.dialects import Dialect, get
from compact.messages.hygiene.verified import Verified
from compact.redaction import Redactor, rules_from_config
from compact.runtime.breaker import Breaker
from compact.runtime.lanes import Fenced, Run
from compact.runtime.session_cache import Session
from compact.runtime.summarizing import Summarizer as Summarizer
from compact.runtime.summarizing import Writers
from compact.summaries.request import Reply, SummaryRequest
from compact.tokens import Meter
from compact.tracing.export_worker import Follower
from compact.tracing.exporters import Exporter, Given, as_exporter, open_exporter
from compact.tracing.journal import LIMIT, Journal
from compact.tracing.log_lines import LOGGED, log_event


class Work(Run):
    """One run over a session."""

    attempt: Attempt | None = None
    committed: bool = False
    answered: bool = False
    """A summarizer has replied; whether that was good shows in what the engine does next."""

    def __init__(
        self,
        session: Session,
        *,
        until: float = float("inf"),
        summarizer: Summarizer | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        without_model: bool = False,
    ) -> None:
        super().__init__(until)
        self.session = session
        self.summarizer = summarizer
        """For this call only, instead of the manager's."""
        self.loop = loop
        """Where a summarizer that is a coroutine runs; None: on a loop of its own."""
        self.without_model = without_model

    @property
    def step(self) -> int:
        """The step that the work is about."""
        return self.session.state.step if self.attempt is None else self.attempt.step

    def lost(self) -> None:
        """It may still be using these: it keeps them, and the next run has its own."""
        self.session.verified, self.session.moved = Verified(), dict(self.session.moved)

    def interrupted(self) -> None:
        """The run was fenced: it may not commit, and it need not wait."""
        if self.attempt is not None:
            self.attempt.revoke()
        super().interrupted()

    def end(self) -> None:
        """An attempt that was not committed leaves no trace, whatever ended the run."""
        if self.attempt is not None:
            self.attempt.abandon()
            self.attempt = None


class Outside:
    """The parts of one manager that touch the world."""

    def __init__(
        self,
        config: CompactConfig,
        *,
        summarizer: Summarizer | None,
        archive: Archive | Backend | None,
        exporters: Iterable[Given],
        redactor: Any,
        clock: Callable[[], datetime] | None,
    ) -> None:
        self._config = config
        self._writers = Writers(config, summarizer)
        self._redactor = redactor or _redactor_of(config)
        self._session_redactors: dict[str, Any] = {}
        self.recorder = _recorder(clock)
        self.now: Callable[[], float] = time.perf_counter if clock is None else lambda: clock().timestamp()
        """Seconds, for durations. With a clock of the host's own, the same run gives the same figures."""
        recovery = config.recovery
        self._breaker = Breaker(recovery.breaker_failures, recovery.breaker_pause_s, self.recorder.clock)
        followers = [
            Follower(exporter, config.tracing.queue_events, self, self._dropped)
            for exporter in _exporters_of(config, exporters)
        ]
        self._journal = Journal(self._append, followers, self._not_recorded)
        self._archive = None if archive is None else self._given(archive)
        self._opening = threading.Lock()
        self._lock = threading.Lock()
        """Held for a moment only: event loops wait for it too."""
        self._operations = 0
        self._saved: dict[str, int] = {}
        self._prefix_tokens = self._sent_tokens = 0

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
                    listener=self._journal.heard,
                    **settings,
                )
            return self._archive

    def _given(self, archive: Archive | Backend) -> Archive:
        if isinstance(archive, Archive):
            archive.listen(self._journal.heard)
            return archive
        return backend_archive(archive, self._redactor, self.recorder, self._journal.heard)

    def redactor(self, session_id: str) -> Any:
        """The session's redactor: what it once found it masks everywhere, at every exit of this session."""
        found = self._session_redactors.get(session_id)
        if found is None:
            found = self._session_redactors.setdefault(session_id, self._redactor.session())
        return found

    def forget(self, session_id: str) -> None:
        """A session is not kept at hand any more. Its redactor stays if it has learned what is secret there."""
        if getattr(self._session_redactors.get(session_id), "has_learned", None) is False:
            self._session_redactors.pop(session_id, None)

    # --- what the engine asks for

    def serve(self, work: Work, need: Need, meter: Meter) -> Any:
        """The answer to a need. It may take its time: only events are served on a thread that must not wait."""
        session = work.session
        if work.answered:
            self._judge(work, need)
        if not isinstance(need, Emit | SummaryRequest):
            self._journal.flush()  # the log tells things in the order in which they happened
        match need:
            case Emit():
                return self.emit(session, need.properties, need.payload, work.step, need.span)
            case Store():
                stored = self.archive.put_output(
                    session.id,
                    need.text,
                    tool_name=need.tool_name,
                    tool_call_id=need.tool_call_id,
                    trace=need.trace,
                )
                return stored.path
            case SummaryRequest():
                return self._summary(work, need, meter)
            case Begin():
                attempt = self.archive.begin(session.id, need.items, dialect=need.dialect, after=need.after)
                work.attempt = attempt
                return Begun(attempt.step, attempt.history_path, attempt.messages)
            case Commit():
                assert work.attempt is not None
                step = work.attempt.commit(
                    summary=need.summary,
                    state=need.state,
                    fingerprints=need.fingerprints,
                    trace=need.trace,
                )
                work.committed = isinstance(step, Step)
                return work.committed
            case Load():
                latest = self.archive.latest(session.id)
                return None if latest is None else Loaded(latest.step, latest.state, latest.fingerprints)
            case KeepRemoved():
                return self.archive.put_removed(session.id, need.items, trace=need.trace)

    def rewritten(self, session: Session, message: Message, dialect: Dialect) -> Message:
        """A message that compact changed, as it will stand in the host's list: masked, written, read again."""
        masked = self.redactor(session.id).redact_messages([dialect.write(message)])[0]
        return replace(dialect.read(masked), protected=message.protected)

    # --- summaries

    def _summary(self, work: Work, request: SummaryRequest, meter: Meter) -> str | Reply:
        warning = self._writers.unavailable(work.summarizer)
        if warning is not None:
            self.warn_once(work.session, warning)
        if not self._writers.needs_model(request, work.summarizer):
            return self._writers.extracted(request, meter)
        if work.without_model or not self._breaker.allows():
            if self._config.summary.fallback != "extractive":
                raise CompactError("the summarizer is left alone for now")
            return self._writers.extracted(request, meter)
        try:
            masked = self._masked(work.session, request)
            reply = self._writers.ask(masked, meter, work, work.summarizer, work.loop)
        except Fenced:
            if work.out_of_time:
                self._summarizer_failed(work)
            raise
        except Exception:
            self._summarizer_failed(work)
            raise
        work.answered = True
        return reply

    def _judge(self, work: Work, need: Need) -> None:
        """Whether the last reply was good: a rejected one is told of at once."""
        told = need.properties if isinstance(need, Emit) else None
        work.answered = False
        if not isinstance(told, Failure) or told.error_type != "SummaryRejected":
            self._breaker.succeeded()
        elif told.fallback != "none":  # else it is asked once more
            self._summarizer_failed(work)

    def _summarizer_failed(self, work: Work) -> None:
        if self._breaker.failed():
            recovery = self._config.recovery
            text = (
                f"the summarizer failed {recovery.breaker_failures} times in a row: it is left alone for "
                f"{recovery.breaker_pause_s:g} s, and summaries are made without a model"
            )
            warning = Warned(code="breaker_open", severity="high", message=text)
            self.emit(work.session, warning, step=work.step)

    def _masked(self, session: Session, request: SummaryRequest) -> SummaryRequest:
        """The request without secrets: a summarizer is an exit like any other."""
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
        """Records an event of a session, and a line in the log where people look first."""
        if isinstance(properties, Offload):
            self.credit("offload", properties.tokens_before - properties.tokens_after)
        event = self.recorder.event(
            properties,
            session_id=session.id,
            step=session.state.step if step is None else step,
            trace=session.trace,
            span=span,
            payload=payload or None,
        )
        self._journal.emit(event)
        if isinstance(properties, LOGGED):
            log_event(session.id, properties, self.redactor(session.id).redact)

    def warn_once(self, session: Session, warning: Warned) -> None:
        """Records a warning, the first time it applies to a session."""
        if warning.code not in session.warned:
            session.warned.add(warning.code)
            self.emit(session, warning)

    def credit(self, stage: str, tokens: int) -> None:
        """Counts an operation and what it saved."""
        with self._lock:
            self._operations += 1
            self._saved[stage] = self._saved.get(stage, 0) + tokens

    def sent(self, session: Session, messages: Sequence[Any], tokens: int) -> None:
        """Counts how much of a request begins like the one before: what a provider's prompt cache can use again."""
        before = session.sent
        repeats = bool(before) and messages[: len(before)] == before
        with self._lock:
            self._sent_tokens += tokens
            if repeats:
                self._prefix_tokens += session.sent_tokens
        # The list that the host's was copied to belongs to us; any other is the host's now.
        session.sent = session.given if messages is session.given else list(messages)
        session.sent_tokens = tokens

    def stats(self) -> dict[str, Any]:
        """Tokens saved in all, how many operations, how much each kind saved, and how stable requests were."""
        with self._lock:
            return {
                "total_tokens_saved": sum(self._saved.values()),
                "compaction_events": self._operations,
                "by_strategy": dict(self._saved),
                "sent_tokens": self._sent_tokens,
                "unchanged_prefix_tokens": self._prefix_tokens,
                "exporters": self._journal.stats(),
            }

    def flush(self) -> None:
        """Writes every event that waits."""
        self._journal.flush()

    def close(self) -> None:
        """Writes what waits and ends what runs in the background."""
        self._journal.close(self._config.tracing.flush_timeout_s)
        if self._archive is not None:
            self._archive.close()

    def _append(self, session_id: str, events: Sequence[Event]) -> None:
        self.archive.append_events(session_id, events)

    def _dropped(self, session_id: str, exporter: str, count: int, total: int) -> None:
        message = f"the exporter {exporter} could not keep up and dropped {count:,} events, {total:,} in all; events.jsonl has them"
        warning = Warned(code="exporter_drops", severity="medium", message=message)
        self._journal.emit(self.recorder.event(warning, session_id=session_id, step=0))

    def _not_recorded(self, session_id: str, count: int) -> None:
        message = f"the archive took no events for so long that more than {LIMIT:,} waited; {count:,} of this session were dropped"
        warning = Warned(code="events_dropped", severity="high", message=message)
        self._journal.emit(self.recorder.event(warning, session_id=session_id, step=0))

    # --- the log, as exporters read it

    def lines(self, session_id: str) -> list[bytes]:
        """See `follower.Log`."""
        return self.archive.lines(session_id)

    def cursor(self, session_id: str, exporter: str) -> str | None:
        """See `follower.Log`."""
        return self.archive.cursor(session_id, exporter)

    def set_cursor(self, session_id: str, exporter: str, span_id: str) -> None:
        """See `follower.Log`."""
        self.archive.set_cursor(session_id, exporter, span_id)


def _recorder(clock: Callable[[], datetime] | None) -> Recorder:
    """Ids differ between processes, which may work on the same session, but not between runs by the same clock."""
    if clock is None:
        return Recorder(_utc_now, Ids(os.urandom(16).hex()))
    return Recorder(clock, Ids(timestamp(clock())))


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _exporters_of(config: CompactConfig, given: Iterable[Given]) -> list[Exporter]:
    """Those that the configuration names and those that the host passed, each with a name of its own."""
    named = [open_exporter(name, config.tracing) for name in dict.fromkeys(config.tracing.exporters)]
    found = [each for each in named if each is not None] + [as_exporter(each) for each in given]
    taken: dict[str, int] = {}
    for exporter in found:
        count = taken[exporter.name] = taken.get(exporter.name, 0) + 1
        if count > 1:
            exporter.name = f"{exporter.name}-{count}"
    return found


def _redactor_of(config: CompactConfig) -> Redactor:
    if not config.redaction.enabled:
        return Redactor.disabled()
    return Redactor(rules_from_config(config.redaction.rules, config.redaction.extra))
