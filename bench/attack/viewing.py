"""The viewer serves nobody without the token, and stays up for those who have it."""

from __future__ import annotations

import http.client
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from urllib.parse import urlsplit

from bench.attack import Attack, Trial
from compact import CompactConfig, CompactManager
from compact.archive import open_archive
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.tools.viewer import hurrying
from compact.tools.viewer.live import MAX_STREAMS
from compact.tools.viewer.serving import ViewerServer

CANARY = "heron-4711"
SESSION = "watched"
PATHS = (
    "/",
    "/page/main.js",
    "/api/sessions",
    f"/api/sessions/{SESSION}/events",
    f"/api/sessions/{SESSION}/steps/1",
    f"/api/sessions/{SESSION}/steps/1/before/0",
    f"/api/sessions/{SESSION}/file?path=/conversation_history",
    "/api/live",
    "/events",
    "/healthz",
)
_PATIENCE_S = 30
_HURRIED_S = 0.5


@contextmanager
def _served() -> Iterator[ViewerServer]:
    """A viewer with a token of its own, on an archive with one session."""
    with tempfile.TemporaryDirectory() as root:
        config = CompactConfig(model="gpt-4o", archive={"root": root})
        with CompactManager(config) as manager:
            words = [{"role": "user", "content": CANARY}, {"role": "assistant", "content": "noted " * 50}]
            manager.manual_compact(SESSION, [*words, {"role": "user", "content": "go on"}])
        recorder = Recorder(lambda: datetime.now(UTC), Ids("viewing"))
        archive = open_archive(Redactor(), recorder, adapter="fs", root=Path(root))
        with ViewerServer(archive, port=0) as server:
            yield server


def _near(draw: Random, token: str) -> str:
    """Something that is almost the token."""
    place = draw.randrange(len(token))
    other = draw.choice([sign for sign in ascii_letters + digits if sign != token[place]])
    return draw.choice(
        (
            token[:place],
            token[:place] + other + token[place + 1 :],
            token + other,
            token.swapcase() if token != token.swapcase() else token[::-1],
            "".join(draw.choices(ascii_letters + digits, k=len(token))),
            "",
            "None",
            "null",
        )
    )


def _ask(
    server: ViewerServer, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_PATIENCE_S)
    try:
        connection.request("POST" if body else "GET", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read() if answer.status != 200 else answer.read(2_000)
    finally:
        connection.close()


def _owner(server: ViewerServer) -> dict[str, str]:
    return {"authorization": f"Bearer {server.token}"}


def enter_without_the_token(draw: Random, size: int) -> Iterator[Trial]:
    """Near misses of the token in every place where a client may send it."""
    with _served() as server:
        assert server.token is not None
        status, _ = _ask(server, "/api/sessions", _owner(server))
        yield Trial("with the token", status == 200)
        for _ in range(size):
            wrong, path = _near(draw, server.token), draw.choice(PATHS)
            headers: dict[str, str] = {}
            way = draw.choice(("bearer", "cookie", "query", "basic", "nothing"))
            if way == "bearer":
                headers["authorization"] = f"{draw.choice(('Bearer ', 'bearer ', 'Bearer  ', ''))}{wrong}"
            elif way == "cookie":
                headers["cookie"] = f"{draw.choice(('compact_viewer', 'token'))}={wrong}"
            elif way == "query":
                path += f"{'&' if '?' in path else '?'}token={wrong}"
            elif way == "basic":
                headers["authorization"] = f"Basic {wrong}"
            if draw.random() < 0.3:
                headers["x-forwarded-for"] = headers["x-real-ip"] = "127.0.0.1"
            body = b'{"batch":[]}' if draw.random() < 0.2 else None
            if body:
                headers["content-type"] = "application/json"
            status, answer = _ask(server, path, headers, body)
            yield Trial(
                f"{way} at {path.partition('token=')[0]}", status >= 400 and CANARY.encode() not in answer
            )


def hold_connections(draw: Random, size: int) -> Iterator[Trial]:
    """Requests that never end do not keep others out, and are closed."""
    before, hurrying.REQUEST_S = hurrying.REQUEST_S, _HURRIED_S
    try:
        with _served() as server, ExitStack() as held:
            address = urlsplit(server.url)
            pieces = (
                b"",
                b"GET",
                b"GET /api/sessions HTTP/1.1\r\nhost: localhost\r\nx: ",
                b"POST /ingest HTTP/1.1\r\n",
            )
            waiting = []
            for _ in range(min(size, 100)):
                one = held.enter_context(
                    socket.create_connection((address.hostname, address.port), _PATIENCE_S)
                )
                one.sendall(draw.choice(pieces))
                waiting.append(one)
            status, _ = _ask(server, "/api/sessions", _owner(server))
            yield Trial("the owner is served beside half-sent requests", status == 200)
            for one in waiting:
                yield Trial("a half-sent request is closed", _is_closed(one))
    finally:
        hurrying.REQUEST_S = before


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def open_streams(_draw: Random, size: int) -> Iterator[Trial]:
    """No more streams than allowed, however many are asked for, and the page is served beside them."""
    with _served() as server, ExitStack() as held:
        address = urlsplit(server.url)
        opened = 0
        for _ in range(MAX_STREAMS + min(size, 20)):
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_PATIENCE_S)
            held.callback(connection.close)
            connection.request("GET", "/api/live", headers=_owner(server))
            opened += connection.getresponse().status == 200
        yield Trial(f"{opened} streams are open", opened == MAX_STREAMS)
        status, _ = _ask(server, "/api/sessions", _owner(server))
        yield Trial("the page is served beside them", status == 200)


ATTACKS: tuple[Attack, ...] = (
    Attack("tokens", "nothing is served to a client without the token", enter_without_the_token),
    Attack("half-sent", "requests that never end are closed and keep nobody out", hold_connections),
    Attack("streams", "the number of open streams is bounded", open_streams),
)
