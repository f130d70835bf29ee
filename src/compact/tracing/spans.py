"""Arrange the events of one run as spans: what is nested below what, and how long each took.

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
    LedgerChanged,
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
_INSTANTS = (Started, Warned, Recovery, LedgerChanged)
"""Events that take no time: the time goes to the next event that says what was done."""


@dataclass(slots=True)
class _Open:
    """A span that has not ended yet. Ids are numbers, see `Span`."""

    parent: int | None
    number: int
    started_at: datetime
    is_pass: bool = False


class Spans:
    """The spans of one run. `root` names another event that ends it, for a single operation."""

    def __init__(self, recorder: Recorder, trace: Trace, root: type[Properties] | None = None) -> None:
        self._recorder = recorder
        self._trace_id = trace.trace_id
        self._root = root
        self.began_at = self._mark = recorder.clock()
        """When the run began."""
        self._top = _Open(None, recorder.ids.next_number(), self._mark)
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
                below = Trace(self._trace_id, self._recorder.ids.span_id(self._top.number))
                effect = replace(effect, trace=below)
            answer = serve(effect)
            if isinstance(effect, Begin):
                self._mark = self._recorder.clock()  # storing the transcript has its own event
            if isinstance(effect, Commit):
                held, self._held = self._held, []
                for change in held if answer else ():
                    serve(change)
            return answer

        return serve_placed

    def take_over(self, other: Spans) -> None:
        """Place what follows below the pass of another run, until that pass is finished."""
        self._outer.append(self._top)
        self._top, self._held, self._mark = other._top, other._held, self._recorder.clock()

    def place(self, properties: Properties, is_last: bool = False) -> Span:
        """The place of the next event, also of one from outside the run: that it was out of time."""
        now, top = self._recorder.clock(), self._top
        if isinstance(properties, TriggerDecision):
            if properties.reason == "background_started":  # which ends the call; the pass goes on
                call, self._mark = self._outer.pop(), now
                return Span(self._trace_id, call.parent, call.number, call.started_at, now)
            ends_span = not top.is_pass and (
                not properties.triggered or properties.reason == "background_swapped"
            )
        else:
            ends_span = is_last or isinstance(properties, Finished) or type(properties) is self._root
        if ends_span:
            self._mark = now
            if isinstance(properties, Finished):
                self._held.clear()
            if self._outer:
                self._top = self._outer.pop()
            elif isinstance(properties, TriggerDecision) and properties.triggered:
                self._top = _Open(
                    None, self._recorder.ids.next_number(), now
                )  # the pass in the background follows
            return Span(self._trace_id, top.parent, top.number, top.started_at, now)
        number = self._recorder.ids.next_number
        if isinstance(properties, Started):
            is_aside = properties.reason == "background_started"
            if is_aside or top.is_pass:  # a pass that lost a race runs again on what the winner left
                self._outer.append(top)
                top = self._top = _Open(None if is_aside else top.number, number(), now)
            top.is_pass = True
        began = now
        if not isinstance(properties, _INSTANTS):
            began, self._mark = self._mark, now
        return Span(self._trace_id, top.number, number(), began, now)
