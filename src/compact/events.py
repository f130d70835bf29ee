"""The event records: one frozen class per event name, so that a misspelt property is a type error.

An `Event` is one line of `events.jsonl`. What it is about stands in its `properties`, an instance of one of the classes
below; the class gives the event its name. `Event.to_json` writes a line, `parse` reads one back. Time and ids come from
outside (`Recorder`), so that the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from compact.typed_json import build, checked, plain

Clock: TypeAlias = Callable[[], datetime]
"""Gives the present moment, with its timezone."""

Status: TypeAlias = Literal["ok", "error"]
Fallback: TypeAlias = Literal["extractive", "pruning-only", "snapshot", "none"]
RecoveryAction: TypeAlias = Literal["compact", "truncate", "give_up"]
Severity: TypeAlias = Literal["low", "medium", "high"]
WarningCode: TypeAlias = Literal[
    "redaction_disabled",  # the archive and the exporters get what the agent sees, secrets included
    "unknown_model",  # no window is known for the model; a default is used
    "small_window",  # the window is usable, but small
    "summarizer_unavailable",  # a model was named, but it cannot be asked; the extractive summarizer is used
    "ineffective",  # a pass saved too little to be tried again
    "breaker_open",  # the summarizer failed several times in a row; it is left alone for a while
    "spooled",  # the object store did not answer in time; the record waits in the local spool
    "unfinished_step",  # a step is committed, but its file names could not all be set yet
    "exporter_drops",  # an exporter could not keep up and dropped events
    "events_dropped",  # the archive took no events for a long time, and the oldest of those that waited are lost
    "state_reset",  # the session's state does not fit its messages and was started anew
    "pointer_copied",  # a pointer to an archived output stood in text that came from somewhere else
    "server_managed",  # the provider keeps the conversation; there is nothing to compact
    "torn_events",  # a half-written line was cut from the end of events.jsonl
]
WARNING_CODES: tuple[str, ...] = get_args(WarningCode)


class Properties:
    """Base of the property classes. `OPTIONAL` names the properties that are left out when they are None."""

    NAME: ClassVar[str]
    OPTIONAL: ClassVar[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where the tokens of a request are."""

    system: int
    developer: int
    tools_schema: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """The settings that a decision was made with."""

    trigger_pct: float
    hard_cap_buffer: int
    strategy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a plan keeps, whatever happens."""

    pinned: int
    """Messages that always stay."""
    recent_turns: int
    """Newest turns whose words stay."""
    tool_pairs: int
    """Newest calls that stay with their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Messages in each layer of the result."""

    pinned: int
    summary: int
    recent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimate(Properties):
    """The size of a request was counted. Its time is that from the call to the count."""

    NAME: ClassVar[str] = "compact.token_estimate"
    model: str
    t_est: int
    """Tokens of the whole request, tools and system prompt included."""
    max_tokens: int
    """The model's window."""
    usage_pct: float
    """Share of the window, 0 to 1."""
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision(Properties):
    """It was decided whether to act, and why. An idle one ends its preflight and is the span of it."""

    NAME: ClassVar[str] = "compact.trigger_decision"
    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"kept", "pruned_count"})
    triggered: bool
    reason: str
    """Which setting says so (trigger_pct, budget, a threshold), manual, below_threshold, or ineffective."""
    note: str | None
    """What the caller of a manual compaction gave as its reason."""
    policy: PolicyInForce
    kept: Kept | None = None
    """Only when triggered: what the plan keeps."""
    pruned_count: int | None = None
    """Only when triggered: messages that the plan lets go. How many went, compact.pruned_messages says."""

    def __post_init__(self) -> None:
        if self.triggered and (self.kept is None or self.pruned_count is None):
            raise ValueError("a triggered compact.trigger_decision needs 'kept' and 'pruned_count'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archival(Properties):
    """A record was saved."""

    NAME: ClassVar[str] = "compact.archival"
    session_id: str
    step: int
    storage_adapter: str
    file_path: str
    """Its path, or its address in an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload(Properties):
    """A tool's output lies in the archive; a pointer stands in its place."""

    NAME: ClassVar[str] = "compact.offload"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str
    """Where the agent's recovery tools find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsShrunk(Properties):
    """An old tool result, or a long argument of a call, lies in the archive; a short form stands in its place."""

    NAME: ClassVar[str] = "compact.calls_shrunk"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str
    """Where the agent's recovery tools find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCreated(Properties):
    """A summary stands in the context. The payload holds it; its time is that of summarizing."""

    NAME: ClassVar[str] = "compact.summary_created"
    strategy: str
    input_messages: int
    """Messages that it stands for."""
    summary_tokens: int
    compression_ratio: float
    """Tokens of the summary by tokens of what it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedMessages(Properties):
    """Messages left the context: the step is committed."""

    NAME: ClassVar[str] = "compact.pruned_messages"
    layers: Layers
    pruned_count: int
    """Messages that stood in the context before and do not stand in it now, summarized ones included."""
    tokens_before: int
    """Of the messages alone."""
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Properties):
    """A pass began."""

    NAME: ClassVar[str] = "compact.started"
    reason: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Properties):
    """A pass ended. It is the span of the whole preflight, counting included; the pass's other events lie below it."""

    NAME: ClassVar[str] = "compact.finished"
    reason: str
    note: str | None
    outcome: str
    """compacted, unchanged (nothing was gained), adopted (another worker was faster), failed."""
    duration_ms: float
    """Of the pass alone."""
    tokens_before: int
    """Of the whole request."""
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Properties):
    """Something failed. Its status is `error`."""

    NAME: ClassVar[str] = "compact.error"
    error_type: str
    message: str
    fallback: Fallback
    """What was done instead."""

    @classmethod
    def of(cls, problem: Exception, fallback: Fallback) -> Failure:
        """The event that an exception is told as."""
        return cls(error_type=type(problem).__name__, message=str(problem), fallback=fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Properties):
    """Something that an operator should know."""

    NAME: ClassVar[str] = "compact.warning"
    code: WarningCode
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Properties):
    """The provider refused a request as too long."""

    NAME: ClassVar[str] = "compact.recovery"
    attempt: int
    action: RecoveryAction
    learned_limit: int | None
    """The limit that it named, if it did."""


KINDS: dict[str, type[Properties]] = {
    kind.NAME: kind
    for kind in (
        TokenEstimate,
        TriggerDecision,
        Archival,
        Offload,
        CallsShrunk,
        SummaryCreated,
        PrunedMessages,
        Started,
        Finished,
        Failure,
        Warned,
        Recovery,
    )
}
"""Every event name and the class of its properties."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of `events.jsonl`: what happened, when, in which session, as part of what."""

    properties: Properties
    session_id: str
    step: int
    trace_id: str
    span_id: str
    parent_id: str | None
    started_at: str
    ended_at: str
    status: Status = "ok"
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The event's name, for example `compact.archival`."""
        return self.properties.NAME

    def to_json(self) -> dict[str, Any]:
        """The event as plain values, in the form and order of the contract."""
        return {
            "name": self.name,
            "session_id": self.session_id,
            "step": self.step,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_id": self.parent_id,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "status": self.status,
            "properties": plain(self.properties),
            "payload": dict(self.payload),
        }


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_FIELDS = {
    "session_id": str,
    "step": int,
    "trace_id": str,
    "span_id": str,
    "parent_id": str | None,
    "started_at": str,
    "ended_at": str,
    "status": Status,
    "payload": Mapping,
}


def parse(data: Any) -> Event:
    """The event that `Event.to_json` wrote. Properties that this version does not know are passed over.

    Raises:
        ValueError: it is not an event: says which field is missing or wrong.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"an event is an object, got {type(data).__name__}")
    kind = KINDS.get(str(data.get("name")))
    if kind is None:
        raise ValueError(f"unknown event name {data.get('name')!r}; known: {', '.join(KINDS)}")
    values = {name: checked(data, name, hint, kind.NAME) for name, hint in _FIELDS.items()}
    for name in ("started_at", "ended_at"):
        if not _TIME.fullmatch(values[name]):
            raise ValueError(f"{kind.NAME}: {name!r} must be UTC like 2026-01-31T12:00:00.000000Z")
    return Event(properties=build(kind, checked(data, "properties", Mapping, kind.NAME), kind.NAME), **values)


def timestamp(moment: datetime) -> str:
    """A moment in UTC, of fixed width: `2026-01-31T12:00:00.000000Z`.

    Raises:
        ValueError: the moment has no timezone.
    """
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError(f"a clock must give times with a timezone, got {moment!r}")
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat('T', 'microseconds')[:-6]}Z"


def moment(text: str) -> datetime:
    """The moment that `timestamp` wrote.

    Raises:
        ValueError: it is not such a time.
    """
    if not _TIME.fullmatch(text):
        raise ValueError(f"not a time like 2026-01-31T12:00:00.000000Z: {text!r}")
    return datetime.fromisoformat(text)


class Ids:
    """A sequence of ids that depends on its seed and nothing else. Safe to share between threads."""

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(f"{seed}:".encode())
        self._numbers = itertools.count(1)  # the next one is given out in one piece, whoever asks

    def trace_id(self) -> str:
        """A new trace id: 32 hex digits."""
        return self._next(32)

    def span_id(self) -> str:
        """A new span id: 16 hex digits."""
        return self._next(16)

    def _next(self, digits: int) -> str:
        found = self._seed.copy()
        found.update(b"%d" % next(self._numbers))
        return found.hexdigest()[:digits]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where an event belongs: the trace, and the span that caused it."""

    trace_id: str
    parent_id: str | None = None


class Span(NamedTuple):
    """The place of one event that is made later: where it belongs, its own id, and the time that it took."""

    trace: Trace
    span_id: str
    started_at: datetime
    ended_at: datetime


def session_trace(session_id: str) -> Trace:
    """The trace of a session: one for all its processes, made of nothing but its id."""
    return Trace(Ids(f"session:{session_id}").trace_id())


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes events: gives each its times and its ids."""

    clock: Clock
    ids: Ids

    def span_now(self, session_id: str) -> Span:
        """The place of an event that takes no time, directly below its session."""
        now = self.clock()
        return Span(session_trace(session_id), self.ids.span_id(), now, now)

    def event(
        self,
        properties: Properties,
        *,
        session_id: str,
        step: int,
        trace: Trace | None = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
        span: Span | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Event:
        """An event in the place that `span` says; without one it ends now, and took no time unless it says when it began.

        Without a `trace` it belongs to the session's, with no span above it.
        """
        if span is None:
            end = ended_at or self.clock()
            trace = trace or session_trace(session_id)
            span = Span(trace, self.ids.span_id(), started_at or end, end)
        return Event(
            properties=properties,
            session_id=session_id,
            step=step,
            trace_id=span.trace.trace_id,
            span_id=span.span_id,
            parent_id=span.trace.parent_id,
            # A clock may be set back between two readings; an event never ends before it began.
            started_at=timestamp(min(span.started_at, span.ended_at)),
            ended_at=timestamp(span.ended_at),
            status="error" if isinstance(properties, Failure) else "ok",
            payload=payload or {},
        )
