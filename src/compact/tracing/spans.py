"""Place the events of one run as spans: which lies below which, and how long each took.

A run is one preflight, or one single operation. Its last event is the span of the whole run (`compact.finished`, or the
decision not to act), and all other events lie below it. Each event takes the time since the one before it, so together
they show where the time of the run went. Events about changes to the context are held back until the step is committed: a
pass that failed, or gained nothing, changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from compact.engine.effects import Begin, Commit, Emit, KeepRemoved, Serve, Store
from compact.events import (
    CallsShrunk,
    Finished,
    Offload,
    Properties,
    Recorder,
    Recovery,
    Span,
    Started,
    SummaryCreated,
    Trace,
    TriggerDecision,
    Warned,
)

_CHANGES = (Offload, CallsShrunk, SummaryCreated)
_INSTANTS = (Started, Warned, Recovery)
"""Events that take no time: the time goes to the next event that says what was done."""


@dataclass(slots=True)
class _Open:
    """A span that has not ended yet."""

    trace: Trace
    span_id: str
    started_at: datetime
    below: Trace
    """The place of the events that it leads to."""
    is_pass: bool = False


class Spans:
    """The spans of one run. `root` names another event that ends it, for a single operation."""

    def __init__(self, recorder: Recorder, trace: Trace, root: type[Properties] | None = None) -> None:
        self._recorder = recorder
        self._root = root
        self._mark = recorder.clock()
        self._top = self._open(trace, self._mark)
        self._outer: list[_Open] = []
        self._held: list[Emit] = []

    def around(self, serve: Serve) -> Serve:
        """Wrap `serve`, so that every event has its place, and so have those that the archive records."""

        def serve_placed(effect: Any) -> Any:
            if isinstance(effect, Emit):
                placed = Emit(
                    effect.properties, effect.payload, self.place(effect.properties, effect.is_last)
                )
                if self._top.is_pass and isinstance(effect.properties, _CHANGES):
                    self._held.append(placed)
                    return None
                return serve(placed)
            if isinstance(effect, Store | Commit | KeepRemoved):
                effect = replace(effect, trace=self._top.below)
            answer = serve(effect)
            if isinstance(effect, Begin):
                self._mark = self._recorder.clock()  # storing the transcript has an event of its own
            if isinstance(effect, Commit):
                held, self._held = self._held, []
                for change in held if answer else ():
                    serve(change)
            return answer

        return serve_placed

    def place(self, properties: Properties, is_last: bool = False) -> Span:
        """The place of the next event, also of one from outside the run: that it was out of time."""
        now = self._recorder.clock()
        if isinstance(properties, Started):
            self._begin_pass(now)
        elif is_last or self._ends_span(properties):
            return self._end(properties, now)
        began = now
        if not isinstance(properties, _INSTANTS):
            began, self._mark = self._mark, now
        return Span(self._top.below, self._recorder.ids.span_id(), began, now)

    def _open(self, trace: Trace, now: datetime) -> _Open:
        span_id = self._recorder.ids.span_id()
        return _Open(trace, span_id, now, Trace(trace.trace_id, span_id))

    def _begin_pass(self, now: datetime) -> None:
        if self._top.is_pass:  # a pass that lost a race runs again on what the winner left
            self._outer.append(self._top)
            self._top = self._open(self._top.below, now)
        self._top.is_pass = True

    def _ends_span(self, properties: Properties) -> bool:
        if isinstance(properties, TriggerDecision):
            return not properties.triggered and not self._top.is_pass
        return isinstance(properties, Finished) or type(properties) is self._root

    def _end(self, properties: Properties, now: datetime) -> Span:
        ended, self._mark = self._top, now
        if isinstance(properties, Finished):
            self._held.clear()
        if self._outer:
            self._top = self._outer.pop()
        return Span(ended.trace, ended.span_id, ended.started_at, now)
