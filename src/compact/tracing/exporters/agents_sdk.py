"""The tracing of the OpenAI Agents SDK: every event a `custom_span`, below the agent's own span when there is one.

Events arrive on a worker, where no span is current. So the span that is current for the caller is noted when an event
happens, by the id of the run it belongs to. A run is handed to the SDK when it has ended, its outermost span first, as
the SDK's processors expect. Outside of any trace of the host's, each session has one of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from compact.errors import MissingExtra
from compact.events import Event
from compact.tracing.exporters.protocol import Exporter, Sent, Told

_RUNS = 1_000
"""Runs that may be open at once. The oldest is handed over as it is: its end will not come."""


def from_settings(_: object) -> AgentsSdkExporter:
    """The exporter that the configuration describes."""
    return AgentsSdkExporter()


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
        self._above: OrderedDict[str, Any] = OrderedDict()
        """The host's span or trace, by the run that lies below it."""
        self._parts: OrderedDict[str, list[Told]] = OrderedDict()
        """Events of runs that have not ended yet."""
        self._own: dict[str, Any] = {}
        """Traces that were opened here, by the session's trace id."""

    def noticed(self, event: Event) -> None:
        """Notes the caller's span."""
        run = event.parent_id or event.span_id
        if run not in self._above:
            above = self._sdk.get_current_span() or self._sdk.get_current_trace()
            if above is not None:
                self._above[run] = above
                if len(self._above) > 2 * _RUNS:
                    self._above.popitem(last=False)

    def export(self, events: Sequence[Told]) -> Sent:
        """See `Exporter.export`."""
        for event in events:
            if event["parent_id"] is not None:
                self._parts.setdefault(str(event["parent_id"]), []).append(event)
                if len(self._parts) > _RUNS:
                    self._hand_over(next(iter(self._parts)))
            else:
                self._tell(event, self._place(event))
        return Sent(len(events))

    def close(self) -> None:
        """Hands over what has no end, and ends the traces that were opened here."""
        for run in list(self._parts):
            self._hand_over(run)
        for trace in self._own.values():
            trace.finish()
        self._own.clear()

    def _place(self, event: Told) -> Any:
        """What an event without a parent lies below: the host's own span, else a trace for the session."""
        above = self._above.pop(str(event["span_id"]), None)
        return above if above is not None else self._own_trace(event)

    def _own_trace(self, event: Told) -> Any:
        found = self._own.get(str(event["trace_id"]))
        if found is None:
            session_id = str(event["session_id"])
            found = self._sdk.trace(
                "compact", trace_id=f"trace_{event['trace_id']}", group_id=session_id or None
            )
            found.start()
            self._own[str(event["trace_id"])] = found
        return found

    def _hand_over(self, run: str) -> None:
        """The events of a run whose last event never came."""
        for event in self._parts.pop(run):
            above = self._above.get(run)
            self._tell(event, above if above is not None else self._own_trace(event))
        self._above.pop(run, None)

    def _tell(self, event: Told, above: Any) -> None:
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
        for part in self._parts.pop(str(event["span_id"]), ()):
            self._tell(part, span)
        _backdate(span, "_started_at", event["started_at"])
        span.finish()
        _backdate(span, "_ended_at", event["ended_at"])


def _backdate(span: Any, attribute: str, when: Any) -> None:
    """The SDK's spans take their times from the clock. Where they can be set, those of the event are."""
    if getattr(span, attribute, None) is not None:
        setattr(span, attribute, when)
