"""The exporter interface. Each exporter runs on its own worker, off the caller's thread, and receives redacted events."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from compact.errors import ConfigError
from compact.events import Event

EventDict: TypeAlias = Mapping[str, Any]
"""An event as `events.jsonl` stores it."""


class Sent(NamedTuple):
    """How many of the offered events an exporter has dealt with, counted from the first."""

    taken: int
    refused: int = 0
    """Events among `taken` that were refused for good."""


class Unavailable(Exception):
    """The receiver cannot be reached at the moment. The same events are offered again later."""


class Exporter:
    """Base class of exporters. Subclasses must implement `export`."""

    name = "exporter"
    """Name in statistics and warnings."""
    batch = 500
    """Maximum number of events per call of `export`."""
    resumes = False
    """Whether events that were not delivered, after a crash or for lack of room, are read again from the log."""

    def export(self, events: Sequence[EventDict]) -> Sent:
        """Deliver events of one session, starting with the first. Some may be left for the next call.

        Raises:
            Unavailable: no event could be delivered now. Any other exception counts all of them as refused.
        """
        raise NotImplementedError

    def notice(self, event: Event) -> None:
        """See an event on the thread that caused it, before it is written. Must be cheap."""

    def close(self) -> None:
        """Send everything that is still held back. More events may follow."""


ExporterLike: TypeAlias = Exporter | Callable[[EventDict], Any]
"""What a host may pass as an exporter."""


class CallableExporter(Exporter):
    """Passes each event to a callable. If the call raises, the event is refused and the next one is still offered."""

    batch = 1

    def __init__(self, call: Callable[[EventDict], Any]) -> None:
        self._call = call
        self.name = str(getattr(call, "__name__", type(call).__name__))

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        self._call(events[0])
        return Sent(1)


def as_exporter(given: ExporterLike) -> Exporter:
    """Turn what a host passed into an exporter.

    Raises:
        ConfigError: it is neither an exporter nor callable, or it is a coroutine function, which nobody would await.
    """
    if _is_async(given.export if isinstance(given, Exporter) else given):
        raise ConfigError(
            f"the exporter {getattr(given, '__name__', type(given).__name__)} is a coroutine function, but its worker is "
            "a thread without an event loop, so no event would reach it",
            hint="Pass a plain function; asyncio.run_coroutine_threadsafe hands an event to your own loop",
            path="exporters",
        )
    if isinstance(given, Exporter):
        return given
    if callable(given):
        return CallableExporter(given)
    raise ConfigError(
        f"exporters must be callables or exporters, got {type(given).__name__}",
        hint="Pass a function that takes an event as a dict, or name one of the choices in tracing.exporters",
        path="exporters",
    )


def _is_async(call: object) -> bool:
    calls = (call, getattr(call, "__call__", None))  # noqa: B004 - needs the method itself
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in calls)
