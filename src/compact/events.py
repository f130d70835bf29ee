"""The event records: one frozen class per event name, so that a misspelt property is a type error.

An `Event` is one line of `events.jsonl`. What it is about stands in its `properties`, an instance of one of the classes
below; the class gives the event its name. `Event.to_json` writes a line, `parse` reads one back. Time and ids come from
outside (`Recorder`), so that the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

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
    """What a plan keeps: pinned messages, recent turns, tool pairs."""

    pinned: int
    recent_turns: int
    tool_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Messages in each layer of the result."""

    pinned: int
    summary: int
    recent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimate(Properties):
    """The size of a request was counted."""

    NAME: ClassVar[str] = "compact.token_estimate"
    model: str
    t_est: int
    max_tokens: int
    usage_pct: float
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision(Properties):
    """It was decided whether to act, and why. When triggered, `kept` and `pruned_count` say what the plan is."""

    NAME: ClassVar[str] = "compact.trigger_decision"
    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"kept", "pruned_count"})
    triggered: bool
    reason: str
    note: str | None
    policy: PolicyInForce
    kept: Kept | None = None
    pruned_count: int | None = None

    def __post_init__(self) -> None:
        if self.triggered and (self.kept is None or self.pruned_count is None):
            raise ValueError("a triggered compact.trigger_decision needs 'kept' and 'pruned_count'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archival(Properties):
    """A record was saved. `file_path` is its path, or its address in an object store."""

    NAME: ClassVar[str] = "compact.archival"
    session_id: str
    step: int
    storage_adapter: str
    file_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload(Properties):
    """A tool's output was put into the archive; a pointer stands in its place."""

    NAME: ClassVar[str] = "compact.offload"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsShrunk(Properties):
    """The arguments of a tool call were put into the archive; a short form stands in their place."""

    NAME: ClassVar[str] = "compact.calls_shrunk"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCreated(Properties):
    """A summary was accepted. The event's payload holds it."""

    NAME: ClassVar[str] = "compact.summary_created"
    strategy: str
    input_messages: int
    summary_tokens: int
    compression_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedMessages(Properties):
    """Messages left the context."""

    NAME: ClassVar[str] = "compact.pruned_messages"
    layers: Layers
    pruned_count: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Properties):
    """A pass began."""

    NAME: ClassVar[str] = "compact.started"
    reason: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Properties):
    """A pass ended; `outcome` says how."""

    NAME: ClassVar[str] = "compact.finished"
    reason: str
    note: str | None
    outcome: str
    duration_ms: float
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Properties):
    """Something failed; `fallback` says what was done instead."""

    NAME: ClassVar[str] = "compact.error"
    error_type: str
    message: str
    fallback: Fallback


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Properties):
    """Something that an operator should know, by a code from a closed list."""

    NAME: ClassVar[str] = "compact.warning"
    code: WarningCode
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Properties):
    """The provider refused a request as too long; `learned_limit` is the limit it named, if it did."""

    NAME: ClassVar[str] = "compact.recovery"
    attempt: int
    action: RecoveryAction
    learned_limit: int | None


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
            "properties": _plain(self.properties),
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
    values = {name: _checked(data, name, hint, kind.NAME) for name, hint in _FIELDS.items()}
    for name in ("started_at", "ended_at"):
        if not _TIME.fullmatch(values[name]):
            raise ValueError(f"{kind.NAME}: {name!r} must be UTC like 2026-01-31T12:00:00.000000Z")
    return Event(
        properties=_build(kind, _checked(data, "properties", Mapping, kind.NAME), kind.NAME), **values
    )


def timestamp(moment: datetime) -> str:
    """A moment in UTC, of fixed width: `2026-01-31T12:00:00.000000Z`.

    Raises:
        ValueError: the moment has no timezone.
    """
    if moment.tzinfo is None:
        raise ValueError(f"a clock must give times with a timezone, got {moment!r}")
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


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
        self._seed = seed
        self._count = 0
        self._lock = threading.Lock()

    def trace_id(self) -> str:
        """A new trace id: 32 hex digits."""
        return self._next(32)

    def span_id(self) -> str:
        """A new span id: 16 hex digits."""
        return self._next(16)

    def _next(self, digits: int) -> str:
        with self._lock:
            self._count += 1
            count = self._count
        return hashlib.sha256(f"{self._seed}:{count}".encode()).hexdigest()[:digits]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where an event belongs: the trace, and the span that caused it."""

    trace_id: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes events: gives each its times and its ids."""

    clock: Clock
    ids: Ids

    def event(
        self,
        properties: Properties,
        *,
        session_id: str,
        step: int,
        trace: Trace | None = None,
        started_at: datetime | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Event:
        """An event that ends now. Without `trace` it starts one of its own; without `started_at` it took no time."""
        now = self.clock()
        ended_at = timestamp(now)
        trace = trace or Trace(self.ids.trace_id())
        return Event(
            properties=properties,
            session_id=session_id,
            step=step,
            trace_id=trace.trace_id,
            span_id=self.ids.span_id(),
            parent_id=trace.parent_id,
            # A clock may be set back between two readings; an event never ends before it began.
            started_at=ended_at if started_at is None else timestamp(min(started_at, now)),
            ended_at=ended_at,
            status="error" if isinstance(properties, Failure) else "ok",
            payload=payload or {},
        )


def _plain(value: Any) -> dict[str, Any]:
    optional: frozenset[str] = getattr(value, "OPTIONAL", frozenset())
    found = {}
    for each in fields(value):
        entry = getattr(value, each.name)
        if entry is None and each.name in optional:
            continue
        found[each.name] = _plain(entry) if hasattr(entry, "__dataclass_fields__") else entry
    return found


@cache
def _hints(kind: Any) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def _build(kind: Any, data: Mapping[str, Any], where: str) -> Any:
    optional: frozenset[str] = getattr(kind, "OPTIONAL", frozenset())
    hints = _hints(kind)
    return kind(
        **{
            name: _checked(data, name, hint, where)
            for name, hint in hints.items()
            if name in data or name not in optional
        }
    )


def _checked(data: Mapping[str, Any], name: str, hint: Any, where: str) -> Any:
    if name not in data:
        raise ValueError(f"{where}: {name!r} is missing")
    value = data[name]
    for choice in _choices(hint):
        if hasattr(choice, "__dataclass_fields__"):
            if isinstance(value, Mapping):
                return _build(choice, value, f"{where}.{name}")
        elif get_origin(choice) is Literal:
            if value in get_args(choice):
                return value
        elif choice is float:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
        elif isinstance(value, choice) and not (choice is int and isinstance(value, bool)):
            return value
    raise ValueError(f"{where}: {name!r} must be {_described(hint)}, got {type(value).__name__}")


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _described(hint: Any) -> str:
    def one(choice: Any) -> str:
        if get_origin(choice) is Literal:
            return "one of " + ", ".join(map(repr, get_args(choice)))
        return "null" if choice is NoneType else str(getattr(choice, "__name__", choice))

    return " or ".join(map(one, _choices(hint)))
