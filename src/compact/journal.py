"""Events on their way out: into the archive first, then to whoever listens. Never on the caller's thread."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from compact.errors import CompactError
from compact.events import Event

log = logging.getLogger("compact")

Exporter: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Gets one event as plain values, redacted. Runs on the journal's own thread; what it raises is logged."""

Append: TypeAlias = Callable[[str, Sequence[Event]], None]
"""Writes events of one session into the archive."""

_PAUSE_S = 0.02
"""Events that come close together are written together."""
_QUIET_PAUSES = 50
"""So many pauses without an event, and the thread ends. Starting one again holds up the caller, so not at once."""
_LIMIT = 10_000
"""Events that may wait. Beyond it the oldest are written by the caller itself, so that none is lost."""


class Journal:
    """Writes events in their order, in batches, from a thread of its own that lives while there is something to do."""

    def __init__(self, append: Append, exporters: Iterable[Exporter] = ()) -> None:
        self._append = append
        self._exporters = tuple(exporters)
        self._waiting: deque[Event] = deque()
        self._lines: deque[bytes] = deque()
        self._starting = threading.Lock()
        self._writing = threading.RLock()
        self._working = False
        self._complained = False

    def emit(self, event: Event) -> None:
        """Takes an event. Costs an append to a list."""
        self._waiting.append(event)
        if not self._working:
            try:
                self._start()
            except RuntimeError:  # the interpreter is shutting down and starts no threads any more
                self.flush()
        if len(self._waiting) >= _LIMIT:
            self.flush()

    def heard(self, lines: bytes) -> None:
        """Takes event lines that the archive has just written, for the exporters."""
        if self._exporters:
            self._lines.append(lines)

    def flush(self) -> None:
        """Writes everything that waits. Events that the archive does not take are reported once and given up."""
        with self._writing:
            while self._waiting:
                self._write(self._take())
            while self._lines:
                self._export(self._lines.popleft())

    def close(self) -> None:
        """Flushes. May be called twice, and events may still follow."""
        self.flush()

    def _start(self) -> None:
        with self._starting:
            if not self._working:
                # Not a daemon: a process that ends waits the moment it takes to write the last events.
                threading.Thread(target=self._work, name="compact-journal", daemon=False).start()
                self._working = True

    def _work(self) -> None:
        """Writes until nothing waits. A journal that nobody uses any more has no thread that would keep it."""
        quiet = 0
        while True:
            time.sleep(_PAUSE_S)
            quiet = 0 if self._waiting or self._lines else quiet + 1
            self.flush()
            is_over = quiet > _QUIET_PAUSES or not threading.main_thread().is_alive()
            with self._starting:
                if is_over and not self._waiting and not self._lines:
                    self._working = False
                    return

    def _take(self) -> list[Event]:
        """The next events of one session: a log is written in one piece."""
        batch = [self._waiting.popleft()]
        while self._waiting and self._waiting[0].session_id == batch[0].session_id:
            batch.append(self._waiting.popleft())
        return batch

    def _write(self, batch: list[Event]) -> None:
        try:
            self._append(batch[0].session_id, batch)
            self._complained = False
        except CompactError as problem:
            if not self._complained:
                log.warning("events are not recorded: %s", problem)
                self._complained = True

    def _export(self, lines: bytes) -> None:
        for line in lines.splitlines():
            event = json.loads(line)
            for exporter in self._exporters:
                try:
                    exporter(event)
                except Exception:
                    log.exception("an exporter failed on %s", event.get("name"))
