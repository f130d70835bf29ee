"""Requests to providers. Bytes go out and come back as they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeAlias

import httpx

from compact.config import ProxyConfig
from compact.integrations.proxy.replies import ReplyReader

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS = b"x-compact-"
_REPLACED = frozenset({b"host", b"content-length", b"expect"})
_IDLE_S = 20.0
"""Idle connections are closed before providers close them."""
_IDLE_CONNECTIONS = 100
_TRIES = 2
"""A connection that could not be made has sent nothing, so it is tried once more."""


class Unreachable(Exception):
    """A provider did not answer, or not to the end. The client sees what it would see without a proxy."""


def forwarded(headers: RawHeaders, *, drop: Iterable[bytes] = ()) -> list[tuple[bytes, bytes]]:
    """The headers of a request that go on: all but those of its connection, and compact's own."""
    listed = b",".join(value for name, value in headers if name == b"connection")
    gone = {each.strip().lower() for each in listed.split(b",")} | _HOP_BY_HOP | _REPLACED | {*drop}
    return [(name, value) for name, value in headers if name not in gone and not name.startswith(_OURS)]


class Answer:
    """A provider's answer that has begun to arrive. Close it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.coding = response.headers.get("content-encoding", "")
        self.reader = ReplyReader(response.headers.get("content-type", ""), self.coding)
        self._raw = response.aiter_raw()
        self._waiting: asyncio.Task[bytes | None] | None = None
        self._head: list[bytes] = []

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers for the client."""
        raw = self._response.headers.raw
        return [(name.lower(), value) for name, value in raw if name.lower() not in _HOP_BY_HOP]

    async def read_all(self, most: int) -> bytes | None:
        """Read the whole body, which `pieces` gives again. None: it is longer than `most` bytes."""
        size = 0
        while (piece := await self._next()) is not None:
            self._head.append(piece)
            size += len(piece)
            if size > most:
                return None
        return b"".join(self._head)

    async def hold(self, longest_s: float) -> None:
        """Read on until the model has said something or the provider has refused, but no longer than this."""
        deadline = asyncio.get_running_loop().time() + longest_s
        while not self.reader.has_begun:
            self._waiting = self._waiting or asyncio.ensure_future(self._next())
            left = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({self._waiting}, timeout=max(0.0, left))
            if not done:
                return
            task, self._waiting = self._waiting, None
            try:
                piece = task.result()
            except Unreachable:
                self._waiting = task  # the client meets it where it reads
                return
            if piece is None:
                return
            self._head.append(piece)
            self.reader.feed(piece)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives, from its beginning. Raises Unreachable."""
        held = len(self._head)
        for number in range(held):
            yield self._head[number]
        self._head.clear()
        while True:
            if self._waiting is not None:
                task, self._waiting = self._waiting, None
                piece = await task
            else:
                piece = await self._next()
            if piece is None:
                break
            yield piece
            self.reader.feed(piece)
        self.reader.finish()

    async def close(self) -> None:
        """Give the connection back, or close it if the answer has not ended."""
        if self._waiting is not None:
            self._waiting.cancel()
            with suppress(asyncio.CancelledError, Unreachable):
                await self._waiting
        with suppress(httpx.HTTPError, RuntimeError):
            await self._response.aclose()

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._raw, None)
        except (httpx.HTTPError, httpx.StreamError) as problem:
            raise Unreachable(type(problem).__name__) from problem


class Upstream:
    """Connections to all providers."""

    def __init__(self, settings: ProxyConfig) -> None:
        silence = settings.silence_timeout_s
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(silence, connect=settings.connect_timeout_s, pool=None),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS, keepalive_expiry=_IDLE_S
            ),
            cookies=CookieJar(
                DefaultCookiePolicy(allowed_domains=[])
            ),  # one client's cookies are not another's
            follow_redirects=False,
        )

    async def open(
        self, method: str, url: str, headers: RawHeaders, content: bytes | AsyncIterator[bytes] | None
    ) -> Answer:
        """Send a request and wait for the beginning of its answer.

        Raises:
            Unreachable: there is none.
        """
        for left in reversed(range(_TRIES)):
            request = httpx.Request(method, url, headers=list(headers), content=content)
            try:
                return Answer(await self._client.send(request, stream=True, auth=None))
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                if not left:
                    raise Unreachable(type(problem).__name__) from problem
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as problem:
                raise Unreachable(type(problem).__name__) from problem
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
