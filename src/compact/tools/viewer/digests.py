"""A session in one row: the sums of its events, updated event by event."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Origin: TypeAlias = Literal["archive", "ingest"]

_CURVE_POINTS = 48


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


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
