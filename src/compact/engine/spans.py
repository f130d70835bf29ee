"""The events of one run as spans: which lies below which, how long each took, and which are told at all.

A run is one preflight, or one step. Its last event is the span of the whole run (`compact.finished`, or the decision not
to act), and all its others lie below that one. Each takes the time since the one before it, so together they tell where
the time of the run went. What a pass did to the context is told once its step is committed: a pass that failed, or gained
nothing, changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from compact.engine.effects import Asking, Begin, Commit, Emit, KeepRemoved, Need, Store
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

T = TypeVar("T")

_EFFECTS = (Offload, CallsShrunk, SummaryCreated)
_INSTANTS = (Started, Warned, Recovery)
"""Events that say that something is so; the time goes on to the next one that says what was done."""


@dataclass(slots=True)
class _Open:
    """A span that has not ended yet."""

    trace: Trace
    span_id: str
    started_at: datetime
    below: Trace
    """Where the events belong that it leads to."""
    is_pass: bool = False


class Spans:
    """The spans of one run. `root` names another event that ends it: a single operation is a run of its own."""

    def __init__(self, recorder: Recorder, trace: Trace, root: type[Properties] | None = None) -> None:
        self._recorder = recorder
        self._root = root
        self._mark = recorder.clock()
        self._top = self._opened(trace, self._mark)
        self._outer: list[_Open] = []
        self._held: list[Emit] = []

    def around(self, asking: Asking[T]) -> Asking[T]:
        """The same work, with a place for every event that it tells, and for those that serving its needs will tell."""
        step: Any = asking.send
        value: Any = None
        try:
            while True:
                try:
                    need = step(value)
                except StopIteration as end:
                    result: T = end.value
                    return result
                step, value = asking.send, None
                try:
                    if not isinstance(need, Emit):
                        value = yield from self._served(need)
                    elif (placed := self._placed(need)) is not None:
                        value = yield placed
                except Exception as problem:
                    step, value = asking.throw, problem
        finally:
            asking.close()

    def place(self, properties: Properties, is_last: bool = False) -> Span:
        """The place of the next event, also of one that is told from outside: that a run was out of time."""
        now = self._recorder.clock()
        if isinstance(properties, Started):
            self._begin_pass(now)
        elif is_last or self._ends_span(properties):
            return self._ended(properties, now)
        began = now
        if not isinstance(properties, _INSTANTS):
            began, self._mark = self._mark, now
        return Span(self._top.below, self._recorder.ids.span_id(), began, now)

    def _placed(self, need: Emit) -> Emit | None:
        """The event in its place; None when it is held back until its pass is committed."""
        placed = Emit(need.properties, need.payload, self.place(need.properties, need.is_last))
        if self._top.is_pass and isinstance(need.properties, _EFFECTS):
            self._held.append(placed)
            return None
        return placed

    def _served(self, need: Need) -> Asking[Any]:
        if isinstance(need, Store | Commit | KeepRemoved):
            need = replace(need, trace=self._top.below)
        answer = yield need
        if isinstance(need, Begin):
            self._mark = self._recorder.clock()  # storing the transcript has an event of its own
        if isinstance(need, Commit):
            held, self._held = self._held, []
            for effect in held:
                if answer:
                    yield effect
        return answer

    def _opened(self, trace: Trace, now: datetime) -> _Open:
        span_id = self._recorder.ids.span_id()
        return _Open(trace, span_id, now, Trace(trace.trace_id, span_id))

    def _begin_pass(self, now: datetime) -> None:
        if self._top.is_pass:  # a pass that lost a race runs again on what the winner left
            self._outer.append(self._top)
            self._top = self._opened(self._top.below, now)
        self._top.is_pass = True

    def _ends_span(self, properties: Properties) -> bool:
        if isinstance(properties, TriggerDecision):
            return not properties.triggered and not self._top.is_pass
        return isinstance(properties, Finished) or type(properties) is self._root

    def _ended(self, properties: Properties, now: datetime) -> Span:
        ended, self._mark = self._top, now
        if isinstance(properties, Finished):
            self._held.clear()
        if self._outer:
            self._top = self._outer.pop()
        return Span(ended.trace, ended.span_id, ended.started_at, now)
