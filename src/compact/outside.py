"""The outside of the engine: archive, events, summarizer, redaction. It serves what the engine asks for."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from compact.archive import Archive, Attempt, Step, open_archive
from compact.archive.backend import Backend, backend_archive
from compact.config import CompactConfig
from compact.dialects import Dialect, get
from compact.events import Event, Ids, Offload, Properties, Recorder, Span, Trace, Warned, timestamp
from compact.exporters import Exporter, Given, as_exporter, open_exporter
from compact.follower import Follower
from compact.hygiene.verified import Verified
from compact.journal import Journal
from compact.messages import Message
from compact.passes import Outcome
from compact.redaction import Redactor, rules_from_config
from compact.sessions import SessionState
from compact.stages.base import (
    Begin,
    Begun,
    Commit,
    Emit,
    KeepRemoved,
    Load,
    Loaded,
    Need,
    Store,
    SummaryRequest,
)
from compact.tokens import Meter
from compact.writers import Summarizer as Summarizer
from compact.writers import Writers


@dataclass(slots=True)
class Session:
    """What is kept of one session in this process, behind one lock."""

    id: str
    trace: Trace
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: SessionState = field(default_factory=SessionState)
    verified: Verified = field(default_factory=Verified)
    moved: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    attempt: Attempt | None = None
    outcome: Outcome | None = None
    warned: set[str] = field(default_factory=set)
    last_total: int = 0
    sent: list[Any] = field(default_factory=list)
    """What the last call returned, and what it cost: the next one should begin with it."""
    sent_tokens: int = 0
    correction: float = 1.0

    @contextmanager
    def attempting(self) -> Any:
        """An attempt that was not committed leaves no trace, whatever ended the pass."""
        try:
            yield
        finally:
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
        followers = [
            Follower(exporter, config.tracing.queue_events, self, self._dropped)
            for exporter in _exporters_of(config, exporters)
        ]
        self._journal = Journal(self._append, followers)
        self._archive = None if archive is None else self._given(archive)
        self._lock = threading.Lock()
        self._operations = 0
        self._saved: dict[str, int] = {}
        self._prefix_tokens = self._sent_tokens = 0

    @property
    def archive(self) -> Archive:
        """The archive, opened when it is first needed."""
        with self._lock:
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

    # --- what the engine asks for

    def serve(self, session: Session, need: Need, meter: Meter) -> Any:
        """The answer to a need, on the caller's thread."""
        if not isinstance(need, Emit | SummaryRequest):
            self._journal.flush()  # the log tells things in the order in which they happened
        match need:
            case Emit():
                return self.emit(session, need.properties, need.payload, need.span)
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
                self._warn_if_unavailable(session)
                return self._writers.write(need, lambda: self._masked(session, need), meter)
            case Begin():
                session.attempt = self.archive.begin(
                    session.id, need.items, dialect=need.dialect, after=need.after
                )
                return Begun(session.attempt.step, session.attempt.history_path, session.attempt.messages)
            case Commit():
                assert session.attempt is not None
                step = session.attempt.commit(
                    summary=need.summary,
                    state=need.state,
                    fingerprints=need.fingerprints,
                    trace=need.trace,
                )
                return isinstance(step, Step)
            case Load():
                latest = self.archive.latest(session.id)
                return None if latest is None else Loaded(latest.step, latest.state, latest.fingerprints)
            case KeepRemoved():
                return self.archive.put_removed(session.id, need.items, trace=need.trace)

    async def aserve(self, session: Session, need: Need, meter: Meter, summarizer: Summarizer | None) -> Any:
        """The answer to a need, off the event loop; a summarizer that is a coroutine runs on it."""
        if not isinstance(need, SummaryRequest):
            return await asyncio.to_thread(self.serve, session, need, meter)
        self._warn_if_unavailable(session, summarizer)
        return await self._writers.awrite(need, lambda: self._masked(session, need), meter, summarizer)

    def rewritten(self, session: Session, message: Message, dialect: Dialect) -> Message:
        """A message that compact changed, as it will stand in the host's list: masked, written, read again."""
        masked = self.redactor(session.id).redact_messages([dialect.write(message)])[0]
        return replace(dialect.read(masked), protected=message.protected)

    def _warn_if_unavailable(self, session: Session, summarizer: Summarizer | None = None) -> None:
        warning = self._writers.unavailable(summarizer)
        if warning is not None:
            self.warn_once(session, warning)

    def _masked(self, session: Session, request: SummaryRequest) -> SummaryRequest:
        """The request without secrets: a summarizer is an exit like any other."""
        dialect, redactor = get(request.dialect), self.redactor(session.id)
        items = [dialect.write(message) for message in request.messages]
        masked = [dialect.read(item) for item in redactor.redact_messages(items)]
        return replace(request, messages=masked, previous=redactor.redact(request.previous))

    # --- events and statistics

    def emit(
        self,
        session: Session,
        properties: Properties,
        payload: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        """Records an event of a session."""
        if isinstance(properties, Offload):
            self.credit("offload", properties.tokens_before - properties.tokens_after)
        event = self.recorder.event(
            properties,
            session_id=session.id,
            step=session.state.step if session.attempt is None else session.attempt.step,
            trace=session.trace,
            span=span,
            payload=payload or None,
        )
        self._journal.emit(event)

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
        before = len(session.sent)
        with self._lock:
            self._sent_tokens += tokens
            if before and list(messages[:before]) == session.sent:
                self._prefix_tokens += session.sent_tokens
        session.sent, session.sent_tokens = list(messages), tokens

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
