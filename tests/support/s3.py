"""A server in front of a real S3 server that goes wrong on demand: refuses, hangs, is slow, or loses its answer."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal["403", "503", "hang", "slow", "lost"]
"""`lost`: the request is carried out, and the connection dropped instead of answered."""


@dataclass
class Faults:
    """Which requests go wrong, and how."""

    address: str = ""
    chosen: Callable[[str, str], Fault | None] = field(default=lambda method, path: None)
    seen: list[tuple[str, str]] = field(default_factory=list)
    ignored: frozenset[str] = frozenset()
    """Headers, in lower case, that the server behind does not get to see."""

    def always(self, fault: Fault) -> None:
        self.chosen = lambda method, path: fault

    def never(self) -> None:
        self.chosen = lambda method, path: None

    def on(self, method: str, part: str, fault: Fault, times: int = 10**9) -> None:
        """Requests of a method whose path contains `part`."""
        left = [times]

        def choose(asked: str, path: str) -> Fault | None:
            if asked == method and part in path and left[0] > 0:
                left[0] -= 1
                return fault
            return None

        self.chosen = choose


@contextmanager
def faulty_server(behind: str) -> Iterator[Faults]:
    """Passes requests on to the server at `behind`, except those that go wrong."""
    faults = Faults()
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for headers and body: two would wait for each other's acknowledgement
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            faults.seen.append((self.command, self.path))
            fault = faults.chosen(self.command, self.path)
            if fault == "hang":
                stopping.wait()  # a client without a limit would wait until the test's timeout
                self.close_connection = True
                return
            if fault in {"403", "503"}:
                self.answer(
                    int(fault), {"Content-Type": "application/xml"}, b"<Error><Code>Stub</Code></Error>"
                )
                return
            if fault == "slow":
                time.sleep(0.3)
            status, headers, answer = self.pass_on(body)
            if fault == "lost":
                self.close_connection = True
                return
            self.answer(status, headers, answer)

        def pass_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection(urlsplit(behind).netloc, timeout=30)
            try:
                hidden = {"connection", *faults.ignored}
                headers = {name: value for name, value in self.headers.items() if name.lower() not in hidden}
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                kept = {
                    n: v
                    for n, v in response.getheaders()
                    if n.lower() not in {"connection", "transfer-encoding"}
                }
                return response.status, kept, response.read()
            finally:
                connection.close()

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            names = {name.lower() for name in headers}
            for name, value in headers.items():
                self.send_header(name, value)
            if "content-length" not in names:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.handle_any
            raise AttributeError(name)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: object, client_address: object) -> None:
            return  # clients that gave up waiting

    server = Server(("127.0.0.1", 0), Handler)
    faults.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield faults
    finally:
        stopping.set()
        server.shutdown()
        with suppress(OSError):
            server.server_close()
        thread.join(5)
