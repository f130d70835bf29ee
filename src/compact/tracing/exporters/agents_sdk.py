"""Tracing of the OpenAI Agents SDK: a `custom_span` below the agent's own span for each kind of event in a call or pass.

Events arrive on a worker, where no span is current. `notice` therefore records the caller's current span when an event
happens, keyed by the run that the event belongs to. A run is handed to the SDK when it has ended, outermost span first,
because the SDK's processors expect that order. If the host has no trace, each session gets its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from compact.errors import MissingExtra
from compact.events import Event
from compact.tracing.exporters.exporter import EventDict, Exporter, Sent

_MAX_RUNS = 1_000
"""Runs that may be open at once. Beyond that the oldest is handed over, because its end is unlikely to come."""


class AgentsSdkExporter(Exporter):
    """Hands events to the SDK's trace provider, and so to its processors.

    Raises:
        MissingExtra: openai-agents is not installed.
    """

    name = "agents_sdk"

    def __init__(self) -> None:
        try:
            from agents import tracing
        except ImportError as problem:
            raise MissingExtra.named("agents", "the exporter 'agents_sdk'") from problem
        self._sdk: Any = tracing
        self._host_spans: OrderedDict[str, Any] = OrderedDict()
        """The host's span or trace above each run."""
        self._children: OrderedDict[str, list[EventDict]] = OrderedDict()
        """Events of runs that have not ended yet."""
        self._own_traces: dict[str, Any] = {}
        """Traces that were started here, by the session's trace id."""

    def notice(self, event: Event) -> None:
        """Record the caller's span."""
        run = event.parent_id or event.span_id
        if run not in self._host_spans:
            above = self._sdk.get_current_span() or self._sdk.get_current_trace()
            if above is not None:
                self._host_spans[run] = above
                if len(self._host_spans) > 2 * _MAX_RUNS:
                    self._host_spans.popitem(last=False)

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        for event in events:
            if event["parent_id"] is not None:
                self._children.setdefault(str(event["parent_id"]), []).append(event)
                if len(self._children) > _MAX_RUNS:
                    self._hand_over(next(iter(self._children)))
            else:
                above = self._host_spans.pop(str(event["span_id"]), None)
                self._send(event, above or self._own_trace(event))
        return Sent(len(events))

    def close(self) -> None:
        """Hand over runs that have not ended, and finish the traces that were started here."""
        for run in list(self._children):
            self._hand_over(run)
        for trace in self._own_traces.values():
            trace.finish()
        self._own_traces.clear()

    def _own_trace(self, event: EventDict) -> Any:
        key = str(event["trace_id"])
        if key not in self._own_traces:
            group = str(event["session_id"]) or None
            trace = self._sdk.trace("compact", trace_id=f"trace_{key}", group_id=group)
            trace.start()
            self._own_traces[key] = trace
        return self._own_traces[key]

    def _hand_over(self, run: str) -> None:
        """Send the events of a run whose last event never came."""
        above = self._host_spans.pop(run, None)
        for event in _one_of_each(self._children.pop(run)):
            self._send(event, above or self._own_trace(event))

    def _send(self, event: EventDict, above: Any) -> None:
        data = {
            "session_id": event["session_id"],
            "step": event["step"],
            **event["properties"],
            **event["payload"],
            "started_at": event["started_at"],
            "ended_at": event["ended_at"],
        }
        span_id = f"span_{event['span_id']}{str(event['trace_id'])[:8]}"
        span = self._sdk.custom_span(event["name"], data, span_id=span_id, parent=above)
        span.start()
        if event["status"] == "error":
            properties = event["properties"]
            span.set_error({"message": str(properties.get("message", event["name"])), "data": None})
        for child in _one_of_each(self._children.pop(str(event["span_id"]), [])):
            self._send(child, span)
        _backdate(span, "_started_at", event["started_at"])
        span.finish()
        _backdate(span, "_ended_at", event["ended_at"])


def _one_of_each(events: Sequence[EventDict]) -> list[EventDict]:
    """Return one event for each name, in the order of their first ones. `count` says how many events it stands for.

    A pass archives and shortens dozens of results, one event each: events.jsonl has them, a reader of traces wants the sum.
    """
    found: dict[Any, list[EventDict]] = {}
    for event in events:
        found.setdefault((event["name"], event["status"]), []).append(event)
    return [same[0] if len(same) == 1 else _sum_up(same) for same in found.values()]


def _sum_up(events: Sequence[EventDict]) -> EventDict:
    first, properties = events[0], [event["properties"] for event in events]
    totals = {
        key: sum(each[key] for each in properties)
        for key in ("tokens_before", "tokens_after")
        if all(isinstance(each.get(key), int) for each in properties)
    }
    return {
        **first,
        "properties": {"count": len(events), **properties[0], **totals},
        "started_at": min(event["started_at"] for event in events),
        "ended_at": max(event["ended_at"] for event in events),
    }


def _backdate(span: Any, attribute: str, when: Any) -> None:
    """Set a span to the event's own time if the SDK allows it. By default its spans take the time from the clock."""
    if getattr(span, attribute, None) is not None:
        setattr(span, attribute, when)
