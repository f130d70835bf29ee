"""How the page learns of news: a thread that polls the archive, and streams of small notices."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any

from compact.archive import Archive, LogWatcher
from compact.errors import ArchiveError
from compact.tools.viewer.sessions import Sessions

_LOCAL_PAUSE_S = 0.15
_REMOTE_PAUSE_S = 3.0
"""Pause between two scans of an object store: each scan costs a listing per session."""
_REST = 9
"""Idle for `_REST` times as long as the last scan took, so that watching stays under 10% of a core."""
HEARTBEAT_S = 15.0
MAX_STREAMS = 32
MAX_WAITING_BYTES = 4_000_000
"""What waits for a slow reader of `/events`. Beyond that the oldest events are skipped, and the reader is told."""


def pause_between_looks(archive: Archive) -> float:
    """Seconds to wait between two scans of an archive."""
    return _LOCAL_PAUSE_S if archive.adapter in ("fs", "memory") else _REMOTE_PAUSE_S


class Watch:
    """Scans the archive for news on its own thread. `problem` says why the last scan failed, if it did."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        archive = sessions.archive
        self._pause_s = _LOCAL_PAUSE_S if archive is None else pause_between_looks(archive)
        self._logs = None if archive is None else LogWatcher(archive)
        self.problem: str | None = None
        self.ready = archive is None
        """Whether the first scan is done."""

    def start(self) -> None:
        """Start the thread."""
        if self._logs is not None:
            self._thread = threading.Thread(target=self._work, name="compact-viewer-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait up to five seconds for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _work(self) -> None:
        while not self._stop.is_set():
            started = time.monotonic()
            self.look()
            self._stop.wait(max(self._pause_s, _REST * (time.monotonic() - started)))

    def look(self) -> None:
        """Scan once."""
        assert self._logs is not None
        try:
            for news in self._logs.look():
                self._sessions.add_news(news)
            self.problem = None
        except ArchiveError as error:
            self.problem = str(error)
        self.ready = True


class Streams:
    """The open streams of server-sent events. Thread-safe."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[Stream] = set()
        self.closing = False

    def attach(self) -> None:
        """Use the running event loop to serve the streams."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """End all streams."""
        self.closing = True
        self._tell(lambda _: None)

    def open(self, stream: Stream) -> bool:
        """Count a stream as open, until `close_one`. False: there are too many already."""
        if len(self._open) >= MAX_STREAMS:
            return False
        self._open.add(stream)
        return True

    def close_one(self, stream: Stream) -> None:
        """Forget a stream whose reader left."""
        self._open.discard(stream)

    def changed(self, key: str) -> None:
        """A session has news."""
        self._tell(lambda stream: stream.changed(key))

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """Events were accepted at `/ingest`."""
        self._tell(lambda stream: stream.arrived(events))

    async def read(self, stream: Stream) -> AsyncIterator[bytes]:
        """Yield what a stream sends, until its reader leaves or the server stops."""
        yield stream.opening
        while not self.closing:
            yield await stream.next_piece()

    def _tell(self, what: Callable[[Stream], None]) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return

        def tell() -> None:
            for stream in self._open:
                what(stream)
                stream.wake.set()

        with suppress(RuntimeError):  # the loop may have been closed just now
            loop.call_soon_threadsafe(tell)


class Stream:
    """One reader. What waits for it is bounded, however slow it is."""

    opening = b"retry: 1000\n\n"
    """What to send first."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()

    def changed(self, key: str) -> None:
        """A session has news."""

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """Events were accepted at `/ingest`."""

    def pending(self) -> bytes:
        """Take what waits for the reader."""
        raise NotImplementedError

    async def next_piece(self) -> bytes:
        """Wait for news; send a heartbeat if there is none for a while."""
        try:
            await asyncio.wait_for(self.wake.wait(), HEARTBEAT_S)
        except TimeoutError:
            return b": still here\n\n"
        self.wake.clear()
        return self.pending()


class ChangeStream(Stream):
    """The keys of sessions with news, for the page. A waiting key is not added twice."""

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
    """Ariadne's `/events`: every event that `/ingest` accepts and `wanted` selects."""

    def __init__(self, opened_at: str, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__()
        self.opening = message({"type": "connected", "timestamp": opened_at})
        self._wanted = wanted
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._skipped = 0

    def arrived(self, events: list[dict[str, Any]]) -> None:
        """See `Stream.arrived`."""
        for event in filter(self._wanted, events):
            self._waiting.append(message(event))
            self._bytes += len(self._waiting[-1])
            while self._bytes > MAX_WAITING_BYTES:
                self._bytes -= len(self._waiting.popleft())
                self._skipped += 1

    def pending(self) -> bytes:
        """See `Stream.pending`."""
        skipped = f": warning: {self._skipped} events skipped\n\n".encode() if self._skipped else b""
        pieces = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = self._skipped = 0
        return skipped + pieces


def message(value: Any) -> bytes:
    """Encode one server-sent event."""
    return f"data: {json.dumps(value)}\n\n".encode()
