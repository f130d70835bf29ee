"""The server of a stand-in: it finds the endpoint of a request, and sends what the provider answers, whole, broken or not at all."""

from __future__ import annotations

import gzip
import json
import select
import socket
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from compact.tools.standins.anthropic_wire import ANTHROPIC
from compact.tools.standins.chat_wire import CHAT
from compact.tools.standins.native_openai import COMPACT
from compact.tools.standins.problems import Item, Problem
from compact.tools.standins.provider import ENDPOINTS, Provider
from compact.tools.standins.script import Endpoint, Fault, Received, Refusal, Reply, Route, Script, Told

_KEYS = frozenset({"x-api-key", "authorization", "x-goog-api-key"})
_NOT_FOUND = Problem("Not Found", status=404, kind="not_found_error")
_LOOK_S = 0.05
"""How often a server that answers nothing looks whether its client is still there."""


@contextmanager
def serving(script: Script, *, port: int = 0, **settings: Any) -> Iterator[Provider]:
    """Run a stand-in on 127.0.0.1 until the block ends. `settings` are the fields of `Provider`.

    Args:
        script: What it answers.
        port: Its port; 0 takes a free one.
        **settings: The window, and what else differs from the defaults.
    """
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}", script, **settings)
    server.provider = provider  # type: ignore[attr-defined]  # how the standard library hands state to handlers
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _find_endpoint(path: str) -> tuple[Endpoint | None, Route]:
    """The endpoint of a path, and what the path says beside that."""
    if path.endswith(COMPACT.path):
        return COMPACT, Route("")
    for endpoint in ENDPOINTS:
        if endpoint.route is not None:
            found = endpoint.route(path)
            if found is not None:
                return endpoint, found
        elif path.endswith(endpoint.path):
            return endpoint, Route("")
        elif endpoint.counting is not None and path.endswith(endpoint.counting):
            return endpoint, Route("", counting=True)
    return None, Route("")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. Connections are not kept, so that none is open when the server stops."""

    protocol_version = "HTTP/1.1"  # a stream that ends too early is an error there, and not its end

    def do_HEAD(self) -> None:
        """Say that the server is there, as some clients ask before they begin."""
        self._send_head(200, {"Content-Length": "0"})

    def do_GET(self) -> None:
        """Refuse: nothing is read from a stand-in."""
        self._send_not_found()

    def do_POST(self) -> None:
        """Judge the request, then answer it."""
        provider = self._provider
        endpoint, route = _find_endpoint(self.path.split("?")[0].rstrip("/"))
        headers = {key.lower(): value for key, value in self.headers.items()}
        raw = self._read_body()
        if endpoint is None:
            self._send_not_found()
            return
        most = endpoint.max_bytes if provider.max_bytes is None else provider.max_bytes
        if not headers.keys() & _KEYS:
            self._send_error(endpoint, endpoint.unauthorized)
        elif raw is None or len(raw) > most:
            self._send_error(endpoint, endpoint.too_large(most))
        else:
            request = provider.take(endpoint, _parse(raw), headers, route.counting, route.model)
            self._respond(endpoint, request, route.streamed)

    @property
    def _provider(self) -> Provider:
        found: Provider = self.server.provider  # type: ignore[attr-defined]
        return found

    def _read_body(self) -> bytes | None:
        """The body as it was before it was packed; None if it is packed in a way that is not known, or damaged."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b"".join(self._read_chunks())
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        packing = self.headers.get("Content-Encoding", "identity").lower()
        try:
            if packing == "gzip":
                return gzip.decompress(raw)
            if packing == "deflate":
                return zlib.decompress(raw)
        except (OSError, EOFError, zlib.error):
            return None
        return raw if packing == "identity" else None

    def _read_chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    # --- what is answered

    def _respond(self, endpoint: Endpoint, request: Received, streamed: bool) -> None:
        provider = self._provider
        key = provider.rules.signing_key or b""
        told = Told(
            Reply(), request.number, request.model, request.tokens, key, request.body, request.looked.billed
        )
        streamed = streamed or request.body.get("stream") is True
        if request.problems:
            late = streamed and request.tokens > 0 and provider.late_refusals
            self._refuse(endpoint, told, request.problems[0], late)
        elif request.counting:
            self._send_json(200, endpoint.counted(request.tokens))
        else:
            self._say(endpoint, told, provider.answer(request), streamed)

    def _say(self, endpoint: Endpoint, told: Told, said: Reply | Refusal | Fault, streamed: bool) -> None:
        if isinstance(said, Refusal):
            kind = said.kind or endpoint.kinds.get(said.status, "invalid_request_error")
            problem = Problem(said.message, said.param, said.code, said.status, kind)
            told = replace(told, reply=Reply(said.behind))
            self._refuse(endpoint, told, problem, streamed and said.late, said.headers)
        elif isinstance(said, Fault):
            self._fail(endpoint, replace(told, reply=said.reply), said, streamed)
        elif streamed:
            self._send_events(endpoint, endpoint.stream(replace(told, reply=said)))
        else:
            self._send_json(200, endpoint.answer(replace(told, reply=said)))

    def _refuse(
        self,
        endpoint: Endpoint,
        told: Told,
        problem: Problem,
        late: bool,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if late:
            self._send_events(endpoint, endpoint.late_error(told, problem))
        else:
            self._send_error(endpoint, problem, headers)

    def _fail(self, endpoint: Endpoint, told: Told, fault: Fault, streamed: bool) -> None:
        if fault.kind == "hang":
            self._hang()
        elif fault.kind != "reset":
            headers = {} if fault.kind == "server_error" else {"Retry-After": str(fault.retry_after_s)}
            self._send_error(endpoint, endpoint.faults[fault.kind], headers)
        elif streamed:
            self._send_events(endpoint, endpoint.stream(told), fault.after_events)
        else:
            data = json.dumps(endpoint.answer(told)).encode()
            self._send_head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            self._cut()

    def _hang(self) -> None:
        """Answer nothing until the client goes away or the stand-in ends."""
        self.close_connection = True
        while not self._provider.ended.wait(_LOOK_S):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return

    def _cut(self) -> None:
        """End the connection as a broken network does, with what was written before it."""
        self.wfile.flush()
        self.close_connection = True
        # The server closes it with a reset instead of an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    # --- how it is sent

    def _send_not_found(self) -> None:
        endpoint = ANTHROPIC if "x-api-key" in self.headers else CHAT
        self._send_json(404, endpoint.error(_NOT_FOUND))

    def _send_error(
        self, endpoint: Endpoint, problem: Problem, headers: Mapping[str, str] | None = None
    ) -> None:
        more = {**endpoint.error_headers(problem), **(headers or {})}
        self._send_json(problem.status, endpoint.error(problem), more)

    def _send_json(self, status: int, body: Item, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        named = {"Content-Type": "application/json", **(headers or {})}
        if self._packs:
            data = gzip.compress(data, mtime=0)
            named["Content-Encoding"] = "gzip"
        self._send_head(status, {**named, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _send_events(
        self, endpoint: Endpoint, events: Iterator[str | bytes], cut_after: int | None = None
    ) -> None:
        headers = {"Content-Type": endpoint.stream_type, "Transfer-Encoding": "chunked"}
        packed = zlib.compressobj(wbits=31) if self._packs else None
        self._send_head(200, {**headers, "Content-Encoding": "gzip"} if packed else headers)
        for place, event in enumerate(events):
            if place == cut_after:
                break
            data = event.encode() if isinstance(event, str) else event
            if packed:
                data = packed.compress(data) + packed.flush(zlib.Z_SYNC_FLUSH)
            self._send_chunk(data)
        if cut_after is not None:
            self._cut()
            return
        if packed:
            self._send_chunk(packed.flush())
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    @property
    def _packs(self) -> bool:
        return self._provider.compresses and "gzip" in self.headers.get("Accept-Encoding", "")

    def log_message(self, *_: Any) -> None:
        """Say nothing: the requests are in `Provider.requests`."""


def _parse(raw: bytes) -> Any:
    """The body, or None if it is not JSON in UTF-8: every endpoint refuses that."""
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
