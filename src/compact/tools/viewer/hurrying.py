"""Connections that do not get on are closed: a request that never arrives whole, an answer that nobody reads."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0
"""Time for a request to arrive whole. uvicorn itself waits for ever."""
READING_S = 30.0
"""Time for a reader to take what waits in its connection's buffer."""
_ARRIVED = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


class HurriedProtocol(H11Protocol):
    """uvicorn's protocol, with a limit on the time that a client may keep a connection busy."""

    _arriving: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request of the same connection."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The reader is slower than the answer."""
        super().pause_writing()
        self._reading = self._reading or self.loop.call_later(READING_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The reader has caught up."""
        super().resume_writing()
        self._stop_reading_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop_arriving_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state in _ARRIVED or self.transport.is_closing():
            self._stop_arriving_timer()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _stop_arriving_timer(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
