"""All sessions that the page can show: those of an archive, and those that arrive at `/ingest`."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from compact.archive import Archive, News
from compact.events.reading import in_current_form
from compact.tools.viewer.ingest import as_event

MAX_INGESTED_EVENTS = 20_000
MAX_INGESTED_BYTES = 64 * 1024 * 1024
_CURVE_POINTS = 48


Origin: TypeAlias = Literal["archive", "ingest"]


@dataclass(slots=True)
class Digest:
    """A row in the list of sessions. Events may come from anywhere: malformed parts are ignored."""

    key: str
    """The key by which the page asks for it."""
    session_id: str
    source: Origin
    events: int = 0
    first_at: str | None = None
    last_at: str | None = None
    model: str | None = None
    window: int = 0
    tokens: int = 0
    """The latest size of the context."""
    calls: int = 0
    """How often the context was counted: once per model call."""
    steps: int = 0
    saved: int = 0
    errors: int = 0
    warnings: int = 0
    trace_id: str | None = None
    curve: deque[int] = field(default_factory=lambda: deque(maxlen=_CURVE_POINTS))
    """The latest sizes, for a sparkline."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Add one event."""
        self.events += 1
        properties = event.get("properties")
        facts: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self._extend_time(event.get("started_at"), event.get("ended_at"))
        match event.get("name"):
            case "compact.token_estimate":
                self._add_estimate(facts)
                self.trace_id = _text(event.get("trace_id")) or self.trace_id
            case "compact.finished":
                self._add_pass(facts)
            case "compact.error":
                self.errors += 1
            case "compact.warning":
                self.warnings += 1
        self.trace_id = self.trace_id or _text(event.get("trace_id"))

    def to_json(self) -> dict[str, Any]:
        """The row as the page expects it."""
        row = asdict(self) | {"id": self.session_id, "curve": list(self.curve)}
        return {key: value for key, value in row.items() if key not in ("session_id", "trace_id")}

    def _extend_time(self, started: Any, ended: Any) -> None:
        if isinstance(started, str):
            self.first_at = min(self.first_at or started, started)
        if isinstance(ended, str):
            self.last_at = max(self.last_at or ended, ended)

    def _add_estimate(self, facts: Mapping[str, Any]) -> None:
        self.calls += 1
        self.model = _text(facts.get("model")) or self.model
        self.window = _number(facts.get("max_tokens")) or self.window
        self._set_size(_number(facts.get("t_est")))

    def _add_pass(self, facts: Mapping[str, Any]) -> None:
        if facts.get("outcome") != "compacted":
            return
        before, after = _number(facts.get("tokens_before")), _number(facts.get("tokens_after"))
        self.steps += 1
        self.saved += max(0, before - after)
        self._set_size(after)

    def _set_size(self, tokens: int) -> None:
        self.tokens = tokens
        self.curve.append(tokens)


@dataclass(slots=True)
class _Trace:
    """A trace that arrived at `/ingest`. If there are too many events, the oldest go; the others keep their numbers."""

    digest: Digest
    events: deque[dict[str, Any]] = field(default_factory=deque)
    first: int = 0
    known: set[tuple[str, Any]] = field(default_factory=set)
    """Known spans. A client that is unsure whether one arrived sends it again."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events of a session, starting at number `first`, and how many it has in all."""

    first: int
    total: int
    events: list[dict[str, Any]]


class Sessions:
    """The sessions by key. Thread-safe. `changed` is called with the key of a session that has news."""

    def __init__(
        self,
        archive: Archive | None,
        changed: Callable[[str], None] = lambda _: None,
        *,
        max_events: int = MAX_INGESTED_EVENTS,
        max_bytes: int = MAX_INGESTED_BYTES,
    ) -> None:
        self.archive = archive
        self._changed = changed
        self._max_events, self._max_bytes = max_events, max_bytes
        self._lock = threading.Lock()
        self._archived: dict[str, Digest] = {}
        self._traces: dict[str, _Trace] = {}
        self._order: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self.dropped = 0

    # --- reading

    def rows(self) -> list[dict[str, Any]]:
        """List the sessions, the one with the newest event first."""
        with self._lock:
            known = {digest.trace_id for digest in self._archived.values()}
            # A session that also sends its events here is shown once, from its archive, which knows more.
            arrived = [trace.digest for trace in self._traces.values() if trace.digest.trace_id not in known]
            digests = [digest.to_json() for digest in (*self._archived.values(), *arrived)]
        return sorted(digests, key=lambda row: (row["last_at"] or "", row["id"]), reverse=True)

    def digest(self, key: str) -> Digest | None:
        """Find the row of a session; None if there is none."""
        with self._lock:
            trace = self._traces.get(key)
            return trace.digest if trace else self._archived.get(key)

    def events(self, key: str, first: int, limit: int) -> EventPage | None:
        """Read events of a session in the order of its log; None if there is no such session.

        Raises:
            ArchiveError: the log cannot be read.
        """
        with self._lock:
            trace = self._traces.get(key)
            if trace is not None:
                start = max(first, trace.first)
                chosen = list(trace.events)[start - trace.first :][:limit]
                return EventPage(start, trace.first + len(trace.events), chosen)
            is_known = key in self._archived
        if not is_known or self.archive is None:
            return None
        lines = self.archive.event_lines(key)
        return EventPage(first, len(lines), [read_line(line) for line in lines[first : first + limit]])

    @property
    def ingested(self) -> int:
        """Number of events from `/ingest` in memory."""
        return len(self._order)

    # --- adding

    def add_news(self, news: News) -> None:
        """Add what is new in an archive's log."""
        with self._lock:
            digest = self._archived.get(news.folder)
            if digest is None or news.first == 0:
                digest = self._archived[news.folder] = Digest(news.folder, news.session_id, "archive")
            for line in news.lines:
                digest.add(read_line(line))
        self._changed(news.folder)

    def add_ingested(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add what `/ingest` accepted."""
        touched: dict[str, None] = {}
        with self._lock:
            for event in events:
                key = trace_key(event["trace_id"])
                touched[key] = None
                if event["type"] == "trace":
                    self._name(key, event)
                else:
                    self._put(key, dict(in_current_form(as_event(event))))
            self._thin_out()
        for key in touched:
            self._changed(key)

    def _name(self, key: str, event: Mapping[str, Any]) -> None:
        digest = self._trace(key, event["trace_id"]).digest
        name = event.get("group_id") or event.get("name")
        if name and digest.session_id == digest.trace_id:
            digest.session_id = name
        for moment in ("started_at", "ended_at"):
            if event.get(moment):
                digest.first_at = digest.first_at or event[moment]
                digest.last_at = max(digest.last_at or "", event[moment])

    def _put(self, key: str, event: dict[str, Any]) -> None:
        trace = self._trace(key, event["trace_id"])
        if _span_of(event) in trace.known:
            return
        trace.known.add(_span_of(event))
        if event["session_id"]:
            trace.digest.session_id = event["session_id"]
        trace.events.append(event)
        trace.digest.add(event)
        size = len(json.dumps(event, ensure_ascii=False))
        self._order.append((key, size))
        self._bytes += size

    def _trace(self, key: str, trace_id: str) -> _Trace:
        trace = self._traces.get(key)
        if trace is None:
            trace = self._traces[key] = _Trace(Digest(key, trace_id, "ingest", trace_id=trace_id))
        return trace

    def _thin_out(self) -> None:
        while len(self._order) > self._max_events or self._bytes > self._max_bytes:
            key, size = self._order.popleft()
            trace = self._traces[key]
            trace.known.discard(_span_of(trace.events.popleft()))
            trace.first += 1
            self._bytes -= size
            self.dropped += 1
        # Traces that only ever sent their name must not accumulate either.
        while len(self._traces) > self._max_events:
            del self._traces[next(key for key, trace in self._traces.items() if not trace.events)]


def _span_of(event: Mapping[str, Any]) -> tuple[str, Any]:
    return event["span_id"], event["ended_at"]


def trace_key(trace_id: str) -> str:
    """Make the key of an ingested trace. Folders of an archive have no colon, so the two never collide."""
    return f"trace:{hashlib.sha256(trace_id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def read_line(line: bytes) -> dict[str, Any]:
    """Parse a line of a log. A line that is not an event is shown as it is."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and isinstance(data.get("name"), str):
        return dict(in_current_form(data))
    return {
        "name": "unreadable",
        "status": "error",
        "properties": {"line": line[:200].decode("utf-8", "replace")},
    }


def light(event: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Strip the payload from an event: it is content, which the page requests only on demand."""
    payload = event.get("payload")
    held = json.dumps(payload, ensure_ascii=False) if payload else ""
    return {**{k: v for k, v in event.items() if k != "payload"}, "n": number, "payload_chars": len(held)}


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
