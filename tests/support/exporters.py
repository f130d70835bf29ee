"""Events for exporter tests: made up for the rules, and of real runs for the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from support.engine import Item, pair, turns, user

from compact.events import Event, Ids, Properties, Recorder, Started, session_trace
from compact.events.session_key import SessionKey
from compact.tracing.export_worker import ExportWorker
from compact.tracing.exporters import EventDict, Exporter, Sent


def busy_session() -> list[Item]:
    """A session for a window of 16,000 tokens that needs every rung: a huge result, old pairs, many turns."""
    huge = "\n".join(f"row {n} of a very long table" for n in range(3000))
    return [
        {"role": "system", "content": "Be careful."},
        *pair("big", huge, name="query"),
        *turns(30),
        *(message for n in range(30) for message in pair(f"c{n}", f"output {n} " * 90)),
        user("Go on."),
    ]


def event_maker(clock: Any) -> Callable[..., Event]:
    recorder = Recorder(clock, Ids("test"))

    def make(properties: Properties | None = None, session_id: str = "s", **more: Any) -> Event:
        given = properties or Started(reason="manual", note=None)
        return recorder.event(given, session_id=session_id, step=1, trace=session_trace(session_id), **more)

    return make


def line_of(event: Event) -> bytes:
    return json.dumps(event.to_json(), separators=(",", ":")).encode() + b"\n"


class ListLog:
    """A log that is a list of lines for each session, and its cursors."""

    def __init__(self) -> None:
        self.written: dict[str, list[bytes]] = {}
        self.cursors: dict[tuple[str, str], str] = {}

    def write(self, worker: ExportWorker, session_id: str, lines: Sequence[bytes]) -> None:
        self.written.setdefault(session_id, []).extend(line.rstrip(b"\n") for line in lines)
        worker.enqueue(SessionKey(session_id), b"".join(lines))

    def lines(self, session: SessionKey) -> list[bytes]:
        return list(self.written.get(session.session_id, ()))

    def cursor(self, session: SessionKey, exporter: str) -> str | None:
        return self.cursors.get((session.session_id, exporter))

    def set_cursor(self, session: SessionKey, exporter: str, span_id: str) -> None:
        self.cursors[session.session_id, exporter] = span_id


class Gate(Exporter):
    """Keeps what it gets, once it is let through."""

    name = "gate"

    def __init__(self, resumes: bool = False, batch: int = 500) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self.asked = threading.Event()
        self.got: list[EventDict] = []
        self.resumes = resumes
        self.batch = batch

    def export(self, events: Sequence[EventDict]) -> Sent:
        self.asked.set()
        self.open.wait()
        self.got += events
        return Sent(len(events))
