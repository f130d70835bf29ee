"""A server that speaks HTTP byte by byte: it keeps what it received as it came, and sends what a test tells it to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class WireRequest:
    """One request, as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Wire:
    """One connection, seen by a handler."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def read_request(self) -> WireRequest | None:
        line = self._file.readline().decode("latin-1").strip()
        if not line:
            return None
        headers: list[tuple[str, str]] = []
        while said := self._file.readline().decode("latin-1").strip():
            name, _, value = said.partition(":")
            headers.append((name, value.strip()))
        known = {name.lower(): value for name, value in headers}
        if known.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._file.readline(), 16):
                body += self._file.read(size)
                self._file.readline()
            self._file.readline()
        else:
            body = self._file.read(int(known.get("content-length", 0)))
        return WireRequest(line, headers, body)

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def answer(self, body: bytes, *, status: str = "200 OK", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode() + body)

    def begin_chunks(self, kind: str = "text/event-stream") -> None:
        self.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end_chunks(self) -> None:
        self.send(b"0\r\n\r\n")

    def connection_timeout(self, longest_s: float) -> None:
        """Let `send` fail with TimeoutError if nobody reads for so long."""
        self._connection.settimeout(longest_s)

    def reset(self) -> None:
        """Close so that the other side sees a reset."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._file.close()
        self._connection.close()

    def wait_until_closed(self) -> None:
        """Return when the other side has closed the connection."""
        with suppress(OSError):
            while self._file.read(1):
                pass


@dataclass
class WireServer:
    url: str
    requests: list[WireRequest] = field(default_factory=list)


@contextmanager
def wired(handle: Callable[[Wire, WireRequest], None]) -> Iterator[WireServer]:
    """Serve on a free port of 127.0.0.1. `handle(wire, request)` answers each request."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = WireServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    open_connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            wire = Wire(connection)
            while (request := wire.read_request()) is not None:
                server.requests.append(request)
                handle(wire, request)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in open_connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
