"""The event contract: one frozen class per event name, so that a misspelt property is a type error.

An `Event` is one line of `events.jsonl`. Its `properties` are an instance of one of the classes below, and that class
gives the event its name. `Event.to_json` writes a line, `parse` reads one back. Times and ids come from outside
(`Recorder`), so that the same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from compact.events.ids import Ids as Ids
from compact.events.ids import Span as Span
from compact.events.ids import Trace as Trace
from compact.events.ids import session_trace as session_trace
from compact.events.times import moment as moment
from compact.events.times import timestamp as timestamp

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current time, with a timezone."""

Status: TypeAlias = Literal["ok", "error"]
Reason: TypeAlias = Literal[
    "below",  # nothing is due
    "trigger",  # policy.trigger_pct
    "tokens",  # policy.token_threshold
    "messages",  # policy.message_threshold
    "turns",  # policy.turn_threshold
    "budget",  # the request does not fit
    "cold_cache",  # the provider's cache is cold anyway, so a smaller context saves money at once
    "background_started",  # a pass begins that the host does not wait for
    "background_swapped",  # what such a pass prepared replaces what it was made from
    "manual",  # the caller asked for it
    "overflow",  # the provider refused the request as too long
    "ineffective",  # due, but the last passes did not help and the session has not grown since
]
"""What decided whether to act."""
PassOutcome: TypeAlias = Literal[
    "compacted",  # a step was committed
    "unchanged",  # nothing was gained
    "adopted",  # another worker was faster; its step is used
    "failed",
    "timeout",  # the pass outlived its timeout; its result is discarded
    "dropped",  # the session outgrew a pass in the background; its result is discarded
]
Fallback: TypeAlias = Literal["extractive", "pruning-only", "snapshot", "none"]
RecoveryAction: TypeAlias = Literal["compact", "truncate", "give_up"]
EntryKind: TypeAlias = Literal["rule", "correction", "preference", "decision", "answer", "fact"]
EntrySource: TypeAlias = Literal["user", "host", "model"]
LedgerAction: TypeAlias = Literal[
    "added",  # read from the user's words, or pinned
    "replaced",  # the user said something else since
    "withdrawn",  # the user or the host took it back
    "left",  # it stands, and the ledger had no room for it
]
Severity: TypeAlias = Literal["low", "medium", "high"]
CacheVerdict: TypeAlias = Literal["warm", "cold", "unknown"]
WarningCode: TypeAlias = Literal[
    "redaction_disabled",  # the archive and the exporters get what the agent sees, secrets included
    "unknown_model",  # no window is known for the model; a default is used
    "small_window",  # the window is usable, but small
    "summarizer_unavailable",  # a model was named but cannot be asked; the extractive summarizer is used
    "ineffective",  # a pass saved too little to be tried again
    "breaker_open",  # the summarizer failed several times in a row and is left alone for a while
    "spooled",  # the object store did not answer in time; the record waits in the local spool
    "unfinished_step",  # a step is committed, but not all of its files have their final names yet
    "exporter_drops",  # an exporter could not keep up and dropped events
    "events_dropped",  # the archive accepted no events for a long time; the oldest waiting events are lost
    "state_reset",  # the session's state does not match its messages and was started anew
    "pointer_copied",  # text from elsewhere contains a pointer to an archived output
    "new_conversation",  # a list without a session id continues no known one and began a session of its own
    "server_managed",  # the provider keeps the conversation; there is nothing to compact
    "torn_events",  # a half-written line was cut from the end of events.jsonl
    "ledger_full",  # the user's standing rules no longer fit their share of the context
    "learned_limit",  # a provider's refusal taught a smaller window
    "clock_unknown",  # the clock stands before the session's last call, so the age of its cache is not known
    "factor_damaged",  # the file with what was learned of a model cannot be read; it is ignored
]
WARNING_CODES: tuple[str, ...] = get_args(WarningCode)


class _Record:
    """Base of everything in an event. Reading is strict: no value is converted to the type of its field."""

    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"strict": True}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        # In strict mode pydantic would accept instances only; a line holds mappings.
        return {**handler(source), "strict": False}


class Properties(_Record):
    """Base of the property classes."""

    NAME: ClassVar[str]
    OPTIONAL: ClassVar[frozenset[str]] = frozenset()
    """The properties that are left out of the line when they are None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown(_Record):
    """How the tokens of a request are divided."""

    system: int
    developer: int
    tools_schema: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce(_Record):
    """The policy settings that a decision was based on."""

    trigger_pct: float
    hard_cap_buffer: int
    strategy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(_Record):
    """What stays of a session."""

    pinned: int
    """Messages that are never pruned."""
    recent_turns: int
    """Newest turns whose text stays."""
    tool_pairs: int
    """Newest tool calls that stay whole, with their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(_Record):
    """What a pass is going to do. compact.pruned_messages says what it did."""

    kept: Kept
    """What the pass means to keep in any case."""
    pruned_count: int
    """Messages that the pass may remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Economics(_Record):
    """What a pass costs and saves, by the prices of the model and the state of its prompt cache. See docs/ECONOMY.md."""

    cache: CacheVerdict
    """What the provider's cache holds of the session."""
    worth: bool
    """Whether the pass repays at once."""
    calls_to_repay: float | None
    """After how many later calls it repays. None: never."""
    cost: float
    """Dollars that the pass adds to this call. Negative: it saves that much at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers(_Record):
    """Number of messages in each layer of the result."""

    pinned: int
    summary: int
    recent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimate(Properties):
    """The size of a request was counted. Its span runs from the call to the count."""

    NAME: ClassVar[str] = "compact.token_estimate"
    model: str
    t_est: int
    """Tokens of the whole request, including tools and system prompt."""
    max_tokens: int
    """The model's window."""
    usage_pct: float
    """Share of the window that is used, from 0 to 1."""
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision(Properties):
    """The trigger decided whether to act. If not, this event ends the preflight and is its span.

    So it does for a call that begins a pass in the background, and for one that swaps it in.
    """

    NAME: ClassVar[str] = "compact.trigger_decision"
    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"planned", "economy"})
    triggered: bool
    reason: Reason
    """What decided."""
    note: str | None
    """The note that the caller of a manual compaction gave."""
    policy: PolicyInForce
    planned: Planned | None = None
    """If triggered: the plan. compact.pruned_messages says what was done."""
    economy: Economics | None = None
    """What the pass costs, whether it is made or not. Left out if `policy.economy` is off, the model has no price, or the
    session is smaller than `economy.min_tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archival(Properties):
    """A record was saved in the archive."""

    NAME: ClassVar[str] = "compact.archival"
    session_id: str
    step: int
    storage_adapter: str
    file_path: str
    """The path of the record, or its address in an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload(Properties):
    """A tool's output was moved to the archive and replaced by a pointer."""

    NAME: ClassVar[str] = "compact.offload"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str
    """The path under which the agent's recall tools find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsShrunk(Properties):
    """An old tool result, or a long argument of a call, was moved to the archive and replaced by a short form."""

    NAME: ClassVar[str] = "compact.calls_shrunk"
    tool_name: str
    tool_call_id: str
    tokens_before: int
    tokens_after: int
    file_path: str
    """The path under which the agent's recall tools find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCreated(Properties):
    """A summary was put into the context. The payload holds its text; the span covers the summarizing."""

    NAME: ClassVar[str] = "compact.summary_created"
    strategy: str
    input_messages: int
    """Messages that it replaces."""
    summary_tokens: int
    compression_ratio: float
    """Tokens of the summary divided by the tokens of what it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedMessages(Properties):
    """Messages left the context; the step is committed."""

    NAME: ClassVar[str] = "compact.pruned_messages"
    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"kept"})
    layers: Layers
    pruned_count: int
    """Messages that left the context, including those that were summarized."""
    tokens_before: int
    """Tokens of the messages, without system prompt and tools."""
    tokens_after: int
    kept: Kept | None = None
    """What was really kept. Logs of earlier versions do not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Properties):
    """A pass started."""

    NAME: ClassVar[str] = "compact.started"
    reason: Reason
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Properties):
    """A pass ended. Its span is the whole preflight, including counting, and is the parent of the pass's other events.

    A pass in the background has a span of its own, from its start to its swap.
    """

    NAME: ClassVar[str] = "compact.finished"
    reason: Reason
    note: str | None
    outcome: PassOutcome
    """How the pass ended: adopted means that another worker was faster, unchanged that nothing was gained, timeout that
    the pass outlived its timeout and its result is discarded, dropped that the session outgrew a pass in the background.
    The payload then says why."""
    duration_ms: float
    """Duration of the pass alone, without the time that a result waited for the next call."""
    tokens_before: int
    """Tokens of the whole request."""
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Properties):
    """Something failed. The status of the event is `error`."""

    NAME: ClassVar[str] = "compact.error"
    error_type: str
    message: str
    fallback: Fallback
    """What was used instead."""

    @classmethod
    def of(cls, problem: Exception, fallback: Fallback) -> Failure:
        """The event that reports an exception."""
        return cls(error_type=type(problem).__name__, message=str(problem), fallback=fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Properties):
    """Something that an operator should know about."""

    NAME: ClassVar[str] = "compact.warning"
    code: WarningCode
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Properties):
    """The provider refused a request as too long, and recovery acted."""

    NAME: ClassVar[str] = "compact.recovery"
    attempt: int
    action: RecoveryAction
    learned_limit: int | None
    """The limit that the provider named, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChanged(Properties):
    """An entry of the ledger of the user's words changed with a step. The payload holds its text."""

    NAME: ClassVar[str] = "compact.ledger"
    action: LedgerAction
    """What happened to it. `left`: it stands, and this step's ledger had no room for it."""
    entry_id: str
    """The same for the same words at the same place."""
    kind: EntryKind
    """What was said."""
    source: EntrySource
    """Who added it: read from the user's words, pinned by the host, or proposed by a model."""


KINDS: dict[str, type[Properties]] = {
    kind.NAME: kind
    for kind in (
        TokenEstimate, TriggerDecision, Archival, Offload, CallsShrunk, SummaryCreated, PrunedMessages, Started, Finished,
        Failure, Warned, Recovery, LedgerChanged,
    )
}  # fmt: skip
"""The class of properties for every event name."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of `events.jsonl`."""

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
        """Return the event as plain JSON values, in the form and order of the contract."""
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
            "properties": _to_plain(self.properties),
            "payload": dict(self.payload),
        }


def _to_plain(value: Any) -> dict[str, Any]:
    # Called for every event of every preflight: several times faster than `dataclasses.asdict`.
    optional: frozenset[str] = getattr(value, "OPTIONAL", frozenset())
    return {
        each.name: _to_plain(entry) if isinstance(entry, _Record) else entry
        for each in fields(value)
        if (entry := getattr(value, each.name)) is not None or each.name not in optional
    }


def parse(data: Any) -> Event:
    """Read back what `Event.to_json` wrote, in this version or an earlier one.

    Properties that this version does not know are ignored.

    Raises:
        ValueError: it is not an event; the message names the field that is missing or wrong.
    """
    # It needs pydantic, which a process that only writes events never loads.
    from compact.events.reading import read

    return read(data)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes events and gives them their times and ids."""

    clock: Clock
    ids: Ids

    def span_now(self, session_id: str, tenant: str | None = None) -> Span:
        """The place of an event that takes no time, directly below its session."""
        now = self.clock()
        return Span(session_trace(session_id, tenant).trace_id, None, self.ids.next_number(), now, now)

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
        """Make an event. With a `span`, times and ids come from it.

        Otherwise the event ends at `ended_at` (default: now), starts at `started_at` (default: its end), and belongs to
        `trace` (default: the session's trace, without a parent).
        """
        if span is not None:
            parent = None if span.parent is None else self.ids.span_id(span.parent)
            trace, number = Trace(span.trace_id, parent), span.number
            started_at, ended_at = span.started_at, span.ended_at
        else:
            trace, number = trace or session_trace(session_id), self.ids.next_number()
            ended_at = ended_at or self.clock()
        return Event(
            properties=properties,
            session_id=session_id,
            step=step,
            trace_id=trace.trace_id,
            span_id=self.ids.span_id(number),
            parent_id=trace.parent_id,
            # The clock may be set back between two readings; an event never ends before it started.
            started_at=timestamp(min(started_at or ended_at, ended_at)),
            ended_at=timestamp(ended_at),
            status="error" if isinstance(properties, Failure) else "ok",
            payload=payload or {},
        )
