"""What an exporter is. Each runs on a worker of its own, off the caller's thread, and is given redacted events."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from compact.errors import ConfigError
from compact.events import Event

Told: TypeAlias = Mapping[str, Any]
"""An event as it stands in events.jsonl."""


class Sent(NamedTuple):
    """How far an export came: so many events from the front are dealt with, of which so many were refused for good."""

    taken: int
    refused: int = 0


class Unavailable(Exception):
    """The other side is not there at present. The same events are offered again later."""


class Exporter:
    """Where events go. `export` is the one method that has to be written."""

    name = "exporter"
    """What statistics and warnings call it."""
    batch = 500
    """The most events that `export` is given at once."""
    resumes = False
    """Whether events that it did not get are read again from the log: after a crash, and when too many waited."""

    def export(self, events: Sequence[Told]) -> Sent:
        """Delivers events of one session, from the front, as many as it likes.

        Raises:
            Unavailable: none could be delivered now. Anything else that it raises counts all of them as refused.
        """
        raise NotImplementedError

    def noticed(self, event: Event) -> None:
        """Sees an event on the thread that caused it, before it is written. It must cost next to nothing."""

    def close(self) -> None:
        """Lets go of what it holds back. More events may follow."""


Given: TypeAlias = Exporter | Callable[[Told], Any]
"""What a host may pass as an exporter."""


class Calling(Exporter):
    """Any callable that takes one event. An event that it raises on is refused; the next is offered all the same."""

    batch = 1

    def __init__(self, call: Callable[[Told], Any]) -> None:
        self._call = call
        self.name = str(getattr(call, "__name__", type(call).__name__))

    def export(self, events: Sequence[Told]) -> Sent:
        """See `Exporter.export`."""
        self._call(events[0])
        return Sent(1)


def as_exporter(given: Given) -> Exporter:
    """An exporter from what a host passed.

    Raises:
        ConfigError: it is neither an exporter nor callable, or a coroutine function: nobody would await it.
    """
    if _is_async(given.export if isinstance(given, Exporter) else given):
        raise ConfigError(
            f"the exporter {getattr(given, '__name__', type(given).__name__)} is a coroutine function, and its worker "
            "is a thread without an event loop: no event would reach it",
            hint="Pass a plain function; asyncio.run_coroutine_threadsafe hands an event to your own loop",
            path="exporters",
        )
    if isinstance(given, Exporter):
        return given
    if callable(given):
        return Calling(given)
    raise ConfigError(
        f"exporters must be callables or exporters, got {type(given).__name__}",
        hint="Pass a function that takes an event as a dict, or name one of the choices in tracing.exporters",
        path="exporters",
    )


def _is_async(call: object) -> bool:
    calls = (call, getattr(call, "__call__", None))  # noqa: B004 - the method itself, not whether there is one
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in calls)
