"""How the page learns that something is new: a thread that looks at the archive, and streams of small notices."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from compact.archive import Archive, LogWatcher
from compact.errors import ArchiveError
from compact.tools.viewer.sessions import Sessions

_LOCAL_PAUSE_S = 0.15
_REMOTE_PAUSE_S = 3.0
"""Between two looks at an object store: each costs a listing for every session."""
_REST = 9
"""For each second of looking so many of rest."""
HEARTBEAT_S = 15.0
MAX_STREAMS = 32
MAX_WAITING = 5_000
"""Events that wait for a slow reader of `/events`; then the oldest are skipped, and the reader is told."""


def pause_between_looks(archive: Archive) -> float:
    """How long to wait before looking again for what is new in an archive, in seconds."""
    return _LOCAL_PAUSE_S if archive.adapter in ("fs", "memory") else _REMOTE_PAUSE_S


class Watch:
    """Looks for news in the archive from a thread of its own. `problem` says why it cannot, when it cannot."""

    def __init__(self, sessions: Sessions, pause_s: float | None = None) -> None:
        self._sessions = sessions
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        archive = sessions.archive
        self._pause_s = pause_s or (_LOCAL_PAUSE_S if archive is None else pause_between_looks(archive))
        self._logs = None if archive is None else LogWatcher(archive)
        self.problem: str | None = None
        self.ready = archive is None
        """Whether everything that was there at the start has been read."""

    def start(self) -> None:
        """Begins to look."""
        if self._logs is not None:
            self._thread = threading.Thread(target=self._work, name="compact-viewer-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends it; returns when the thread is gone or busy for too long."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _work(self) -> None:
        while not self._stop.is_set():
            started = time.monotonic()
            self.look()
            # However many sessions there are, most of the time is left to others.
            self._stop.wait(max(self._pause_s, _REST * (time.monotonic() - started)))

    def look(self) -> None:
        """One look."""
        assert self._logs is not None
        try:
            for news in self._logs.look():
                self._sessions.add_news(news)
            self.problem = None
        except ArchiveError as error:
            self.problem = str(error)
        self.ready = True


class Streams:
    """Open streams of server-sent events. May be told things from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[Stream] = set()
        self.closing = False

    def attach(self) -> None:
        """The event loop that serves the streams is the one that runs now."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Ends all streams."""
        self.closing = True
        self._tell(lambda _: None)

    def is_full(self) -> bool:
        """Whether no further stream may be opened."""
        return len(self._open) >= MAX_STREAMS

    def changed(self, key: str) -> None:
        """A session has something new."""
        self._tell(lambda stream: stream.changed(key))

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """Events were accepted at `/ingest`."""
        self._tell(lambda stream: stream.arrived(events))

    async def read(self, stream: Stream) -> AsyncIterator[bytes]:
        """What a stream sends, until its reader leaves or the server stops."""
        self._open.add(stream)
        try:
            yield stream.opening()
            while not self.closing:
                yield await stream.next_piece()
        finally:
            self._open.discard(stream)

    def _tell(self, what: Callable[[Stream], None]) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return

        def tell() -> None:
            for stream in self._open:
                what(stream)
                stream.wake.set()

        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # it was closed just now
            return


class Stream:
    """One reader. What it has not been told yet is bounded, however slow it is."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()

    def opening(self) -> bytes:
        """What is sent first."""
        return b"retry: 1000\n\n"

    def changed(self, key: str) -> None:
        """A session has something new."""

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """Events were accepted at `/ingest`."""

    def pending(self) -> bytes:
        """What the reader has not been told yet."""
        raise NotImplementedError

    async def next_piece(self) -> bytes:
        """Waits for something to tell; after a while without anything, a sign of life."""
        try:
            await asyncio.wait_for(self.wake.wait(), HEARTBEAT_S)
        except TimeoutError:
            return b": still here\n\n"
        self.wake.clear()
        return self.pending()


class ChangeStream(Stream):
    """For the page: the keys of sessions that have something new. A key that waits is not added twice."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}

    def changed(self, key: str) -> None:
        """See `Stream.changed`."""
        self._keys[key] = None

    def pending(self) -> bytes:
        """See `Stream.pending`."""
        keys, self._keys = list(self._keys), {}
        return message({"changed": keys}) if keys else b""


class EventStream(Stream):
    """Ariadne's `/events`: everything that `/ingest` accepts, as it was accepted, of those that `wanted` lets pass."""

    def __init__(self, opened_at: str, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__()
        self._opened_at = opened_at
        self._wanted = wanted
        self._waiting: deque[dict[str, Any]] = deque()
        self._skipped = 0

    def opening(self) -> bytes:
        """See `Stream.opening`."""
        return message({"type": "connected", "timestamp": self._opened_at})

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """See `Stream.arrived`."""
        for event in filter(self._wanted, events):
            if len(self._waiting) >= MAX_WAITING:
                self._waiting.popleft()
                self._skipped += 1
            self._waiting.append(event)

    def pending(self) -> bytes:
        """See `Stream.pending`."""
        skipped = f": warning: {self._skipped} events skipped\n\n".encode() if self._skipped else b""
        pieces = [message(event) for event in self._waiting]
        self._waiting.clear()
        self._skipped = 0
        return skipped + b"".join(pieces)


def message(value: Any) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(value)}\n\n".encode()
