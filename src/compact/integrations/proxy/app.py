"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from compact.config import ProxyConfig
from compact.errors import MaskingError
from compact.integrations.proxy.codings import TooLarge
from compact.integrations.proxy.conversations import Conversations
from compact.integrations.proxy.editing import Editor
from compact.integrations.proxy.endpoints import Headers, Route, find_route, write_error
from compact.integrations.proxy.exchange import Exchanges, Incoming
from compact.integrations.proxy.measuring import Metrics
from compact.integrations.proxy.upstream import Answer, Unreachable, Upstream
from compact.runtime.manager import CompactManager

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("compact")

TOKEN_HEADER = "x-compact-token"
_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_LAST_WORK_S = 5.0
"""Time for work that goes on when the proxy stops."""


class Gone(Exception):
    """The client has closed its connection."""


class Proxy:
    """Passes requests on to providers, and keeps the sessions in them inside their windows.

    `drop(client)` closes the connection of a client at once. `mount` is another application, with its path.
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        drop: Callable[[Any], None],
        settings: ProxyConfig | None = None,
        mount: tuple[str, App] | None = None,
    ) -> None:
        self.settings = manager.config.proxy if settings is None else settings
        self.metrics = Metrics()
        self._drop = drop
        self._mount = mount
        self._token = None if self.settings.token is None else self.settings.token.get_secret_value()
        deadline_s = self.settings.deadline_ms / 1000
        self._conversations = Conversations(self.settings.max_body_bytes)
        self._editor = Editor(manager, self.metrics, deadline_s)
        self._upstream = Upstream(self.settings)
        self._exchanges = Exchanges(self._editor, self._upstream, self.metrics, self._url_of, deadline_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await (_live if self._mount is None else self._mount[1])(scope, receive, send)
            return
        if self._mount is not None and f"{scope['path']}/".startswith(f"{self._mount[0]}/"):
            await self._mount[1]({**scope, "root_path": self._mount[0]}, receive, send)
            return
        client = _Client(scope, receive, send)
        self.metrics.in_flight += 1
        try:
            await self._serve(client)
        except Gone:
            pass
        except Unreachable as problem:
            self.metrics.count("upstream_failures", kind=str(problem))
            await self._break_off(scope)
        except Exception:
            log.exception("compact proxy: a request failed")
            await self._break_off(scope)
        finally:
            self.metrics.in_flight -= 1

    async def _break_off(self, scope: Scope) -> None:
        """Close a client's connection: what it would see without a proxy. A status of ours would look like the provider's."""
        self._drop(scope.get("client"))
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Close the connections to providers."""
        await self._editor.finish(_LAST_WORK_S)
        await self._upstream.close()

    def _url_of(self, provider: str) -> str:
        url: str = getattr(self.settings, f"{provider}_url")
        return url

    async def _serve(self, client: _Client) -> None:
        headers, path = client.headers, client.path
        if client.method == "GET" and path == "/healthz":
            await client.answer(200, b'{"status":"ok"}')
            return
        if client.method in ("GET", "HEAD") and path == "/":  # Claude Code looks whether anybody is there
            await client.answer(200, b'{"name":"compact proxy"}')
            return
        route = find_route(client.method, path, headers)
        refusal = self._refusal(client)
        if refusal is not None:
            await client.answer(refusal[0], write_error(route.provider, *refusal), closes=True)
        elif client.method == "GET" and path == "/metrics":
            await client.answer(200, self.metrics.text().encode(), kind=_METRICS_TYPE)
        else:
            await self._forward(client, route)

    def _refusal(self, client: _Client) -> tuple[int, str] | None:
        """Why a request is refused before its body is read: the status, and a sentence."""
        headers = client.headers
        if client.header_bytes > self.settings.max_header_bytes:
            return 431, f"the headers have more than {self.settings.max_header_bytes:,} bytes"
        if self._token is not None:
            given = headers.get(TOKEN_HEADER, "")
            if not hmac.compare_digest(given.encode("latin-1", "replace"), self._token.encode()):
                return 401, f"the header {TOKEN_HEADER} is missing or wrong"
        if "websocket" in headers.get("upgrade", "").lower():
            return 426, "WebSocket is not served; use HTTP"
        return None

    async def _forward(self, client: _Client, route: Route) -> None:
        raw: bytes | AsyncIterator[bytes] | None = None
        if route.endpoint is not None or self._editor.manager.live is not None:
            try:
                raw = await client.read(self.settings.max_body_bytes)
            except TooLarge:
                most = f"the body has more than {self.settings.max_body_bytes:,} bytes"
                await client.answer(413, write_error(route.provider, 413, most), closes=True)
                return
        elif client.has_body:
            raw = client.pieces()
        work = asyncio.ensure_future(self._exchange(client, route, raw))
        gone = asyncio.ensure_future(client.wait_until_gone())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()  # the client has gone away: so does its request
            with suppress(asyncio.CancelledError):
                await work
        finally:
            for task in (work, gone):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await gone

    async def _exchange(
        self, client: _Client, route: Route, raw: bytes | AsyncIterator[bytes] | None
    ) -> None:
        incoming = Incoming(
            method=client.method, route=route, query=client.query, headers=client.raw_headers, raw=raw
        )
        name = "other" if route.endpoint is None else route.endpoint.name
        session: str | None = None
        try:
            answer, session = await self._answer(client.headers, incoming)
        except TooLarge:
            most = f"unpacked, the body has more than {self.settings.max_body_bytes:,} bytes"
            await client.answer(413, write_error(route.provider, 413, most))
            return
        except MaskingError as problem:
            self.metrics.count("requests", endpoint=name, status="503")
            await client.answer(503, write_error(route.provider, 503, problem.message))
            return
        self.metrics.count("requests", endpoint=name, status=str(answer.status))
        try:
            await client.pass_on(answer)
        finally:
            await answer.close()
        if answer.reader.tokens is not None and answer.status < 300:
            self.metrics.count("input_tokens", answer.reader.tokens, endpoint=name)
            if session is not None:
                self._editor.manager.observe(session, input_tokens=answer.reader.tokens)

    async def _answer(self, headers: Headers, incoming: Incoming) -> tuple[Answer, str | None]:
        """The provider's answer, and the session that its usage counts for."""
        if incoming.route.endpoint is None or not isinstance(incoming.raw, bytes):
            return await self._pass_through(incoming), None
        started = time.perf_counter()
        try:
            conversation = self._conversations.read(incoming.route, headers, incoming.raw)
        except TooLarge:
            raise
        except Exception as problem:
            # The provider may understand what this cannot read, or it says what is wrong with it.
            self.metrics.count("fallbacks", reason=type(problem).__name__)
            return await self._pass_through(incoming), None
        outgoing = await self._editor.prepare(conversation)
        self.metrics.time((time.perf_counter() - started) * 1000)
        if outgoing.is_changed:
            self.metrics.count("edited", endpoint=conversation.endpoint.name)
        answer = await self._exchanges.send(incoming, outgoing)
        return answer, None if conversation.endpoint.counts else outgoing.session

    async def _pass_through(self, incoming: Incoming) -> Answer:
        if self._editor.manager.live is not None and incoming.raw:
            raise MaskingError(
                "the body is not one that can be masked",
                hint="Set redaction.live to off to let such requests pass",
                reason="unreadable",
            )
        return await self._exchanges.pass_through(incoming)


async def _live(_: Scope, receive: Receive, send: Send) -> None:
    """Nothing has to be started or stopped on the server's side."""
    for said in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{said}.complete"})


class _Client:
    """The client's side of one request."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.raw_headers: list[tuple[bytes, bytes]] = [
            (name.lower(), value) for name, value in scope["headers"]
        ]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.raw_headers}
        self._receive = receive
        self._send = send
        self._is_read = asyncio.Event()

    @property
    def header_bytes(self) -> int:
        """How long the headers are."""
        return sum(len(name) + len(value) + 4 for name, value in self.raw_headers)

    @property
    def has_body(self) -> bool:
        """Whether the client sends one."""
        return self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers

    async def read(self, most: int) -> bytes:
        """Read the whole body.

        Raises:
            Gone: the client has gone away.
            TooLarge: it is longer than `most` bytes.
        """
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise TooLarge
        pieces, size = [], 0
        async for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise TooLarge
            pieces.append(piece)
        return b"".join(pieces)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises Gone."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._is_read.set()
                raise Gone
            yield message.get("body", b"")
            if not message.get("more_body", False):
                self._is_read.set()
                return

    async def wait_until_gone(self) -> None:
        """Return when the client has closed its connection."""
        if self.has_body:
            await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(
        self, status: int, body: bytes, *, kind: bytes = b"application/json", closes: bool = False
    ) -> None:
        """Answer with a body of ours. After a body that was not read the connection closes."""
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        if closes:
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def pass_on(self, answer: Answer) -> None:
        """Pass a provider's answer on, piece by piece. A slow reader slows the provider down.

        Raises:
            Unreachable: it did not arrive to its end.
        """
        start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        await self._send(start)
        async for piece in answer.pieces():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})
