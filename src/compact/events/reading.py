"""Read the lines of an event log, also those that earlier versions wrote."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from compact.events import KINDS, Event, TriggerDecision, moment

_FORMER_REASONS = {
    "below_threshold": "below",
    "trigger_pct": "trigger",
    "token_threshold": "tokens",
    "message_threshold": "messages",
    "turn_threshold": "turns",
}
_FORMER_PLAN = ("kept", "pruned_count")
"""Properties of a decision that are now under `planned`."""


def read(data: Any) -> Event:
    """See `compact.events.parse`."""
    if not isinstance(data, Mapping):
        raise ValueError(f"an event is an object, got {type(data).__name__}")
    kind = KINDS.get(str(data.get("name")))
    if kind is None:
        raise ValueError(f"unknown event name {data.get('name')!r}; known: {', '.join(KINDS)}")
    try:
        line = _line_model(kind.NAME).model_validate(in_current_form(data))
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{kind.NAME}: {'.'.join(map(str, first['loc']))!r}: {first['msg']}") from None
    made = line.properties
    if isinstance(made, TriggerDecision) and made.triggered and made.planned is None:
        raise ValueError("a triggered compact.trigger_decision needs 'planned'")
    for name in ("started_at", "ended_at"):
        try:
            moment(getattr(line, name))
        except ValueError:
            raise ValueError(f"{kind.NAME}: {name!r} must be UTC like 2026-01-31T12:00:00.000000Z") from None
    return Event(**dict(line))


def in_current_form(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line of an earlier version as this version writes it. Any other line is returned as it is."""
    properties = data.get("properties")
    if not isinstance(properties, Mapping):
        return data
    current = dict(properties)
    if isinstance(reason := current.get("reason"), str):
        current["reason"] = _FORMER_REASONS.get(reason, reason)
    if data.get("name") == TriggerDecision.NAME and "planned" not in current:
        plan = {key: current.pop(key) for key in _FORMER_PLAN if key in current}
        if plan:
            current["planned"] = plan
    return data if current == properties else {**data, "properties": current}


@cache
def _line_model(name: str) -> Any:
    """The pydantic model of a line with this event name."""
    types: dict[str, Any] = {**get_type_hints(Event), "properties": KINDS[name]}
    required: dict[str, Any] = {field_name: (hint, ...) for field_name, hint in types.items()}
    return create_model("Line", __config__=ConfigDict(strict=True), **required)
