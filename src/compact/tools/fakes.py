"""Fakes for tests of agents that use compact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compact.archive import Archive, MemoryStore
from compact.errors import ArchiveError
from compact.events import Recorder
from compact.redaction import Redactor
from compact.summaries.request import SummaryRequest

__all__ = ["CapturingExporter", "FailingArchive", "ScriptedSummarizer"]


class ScriptedSummarizer:
    """Returns the given texts in turn, and repeats the last one. An exception among them is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = answers or ("a summary",)
        self.requests: list[SummaryRequest] = []
        """The requests so far, in order."""

    def __call__(self, request: SummaryRequest) -> str:
        """Give the next answer."""
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


class CapturingExporter:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Keep an event."""
        self.events.append(event)

    def named(self, name: str) -> list[Mapping[str, Any]]:
        """Select the events of one name, with or without the prefix `compact.`."""
        full = name if name.startswith("compact.") else f"compact.{name}"
        return [event for event in self.events if event["name"] == full]


class FailingArchive(Archive):
    """An archive in memory. A write fails if `fails` returns true for the name of the operation."""

    def __init__(self, recorder: Recorder, fails: Callable[[str], bool]) -> None:
        super().__init__(MemoryStore(recorder.clock), Redactor(), recorder)
        self._fails = fails

    def begin(self, session_id: str, messages: Sequence[Any], **named: Any) -> Any:
        """See `Archive.begin`."""
        self._maybe_fail("begin")
        return super().begin(session_id, messages, **named)

    def put_output(self, session_id: str, text: str, **named: Any) -> Any:
        """See `Archive.put_output`."""
        self._maybe_fail("put_output")
        return super().put_output(session_id, text, **named)

    def append_events(self, session_id: str, events: Any) -> None:
        """See `Archive.append_events`."""
        self._maybe_fail("append_events")
        super().append_events(session_id, events)

    def _maybe_fail(self, operation: str) -> None:
        if self._fails(operation):
            raise ArchiveError(f"{operation} failed, as the test wanted", key=operation)
