"""A session in one row: what its events add up to, kept up to date event by event."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Source: TypeAlias = Literal["archive", "ingest"]

_CURVE_POINTS = 48


@dataclass(slots=True)
class Digest:
    """What the list of sessions shows. Events may come from anywhere: what has another form is passed over."""

    key: str
    """By which the page asks for it."""
    session_id: str
    source: Source
    events: int = 0
    first_at: str | None = None
    last_at: str | None = None
    model: str | None = None
    window: int = 0
    tokens: int = 0
    """The newest size of the context."""
    calls: int = 0
    """How often the context was counted: once before each model call."""
    steps: int = 0
    saved: int = 0
    errors: int = 0
    warnings: int = 0
    trace_id: str | None = None
    curve: deque[int] = field(default_factory=lambda: deque(maxlen=_CURVE_POINTS))
    """The newest sizes, for a small line in the list."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes one event in."""
        self.events += 1
        properties = event.get("properties")
        facts: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self._time(event.get("started_at"), event.get("ended_at"))
        match event.get("name"):
            case "compact.token_estimate":
                self._estimated(facts)
                self.trace_id = _text(event.get("trace_id")) or self.trace_id
            case "compact.finished":
                self._finished(facts)
            case "compact.error":
                self.errors += 1
            case "compact.warning":
                self.warnings += 1
        self.trace_id = self.trace_id or _text(event.get("trace_id"))

    def to_json(self) -> dict[str, Any]:
        """The row, for the page."""
        return {
            "key": self.key,
            "id": self.session_id,
            "source": self.source,
            "events": self.events,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "model": self.model,
            "window": self.window,
            "tokens": self.tokens,
            "calls": self.calls,
            "steps": self.steps,
            "saved": self.saved,
            "errors": self.errors,
            "warnings": self.warnings,
            "curve": list(self.curve),
        }

    def _time(self, started: Any, ended: Any) -> None:
        if isinstance(started, str):
            self.first_at = min(self.first_at or started, started)
        if isinstance(ended, str):
            self.last_at = max(self.last_at or ended, ended)

    def _estimated(self, facts: Mapping[str, Any]) -> None:
        self.calls += 1
        self.model = _text(facts.get("model")) or self.model
        self.window = _number(facts.get("max_tokens")) or self.window
        self._size(_number(facts.get("t_est")))

    def _finished(self, facts: Mapping[str, Any]) -> None:
        if facts.get("outcome") != "compacted":
            return
        before, after = _number(facts.get("tokens_before")), _number(facts.get("tokens_after"))
        self.steps += 1
        self.saved += max(0, before - after)
        self._size(after)

    def _size(self, tokens: int) -> None:
        self.tokens = tokens
        self.curve.append(tokens)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
