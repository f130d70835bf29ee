"""Guard the viewer against pages of other sites and against DNS rebinding.

Every request is checked before anything is read: the token, if there is one; the name in `Host`, against DNS rebinding;
`Origin` and `Sec-Fetch-Site`, against requests of other pages; the type and size of a body.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from compact.errors import ConfigError
from compact.tools.viewer.ingest import MAX_BODY_BYTES

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "compact_viewer"
MIN_TOKEN_CHARS = 16

SAFE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, token: str | None) -> None:
    """Check that an address is safe to listen on.

    Raises:
        ConfigError: other machines can reach it and there is no token, or the token is too weak.
    """
    if token is not None and (len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"the token has {len(token)} characters; it needs {MIN_TOKEN_CHARS} or more, printable ASCII",
            hint="Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and transcripts are private",
            hint="Leave --host out to listen on 127.0.0.1, or set a token in COMPACT_VIEW_TOKEN",
        )


class Guard:
    """Wraps the application in the checks, and adds headers that keep a browser strict."""

    def __init__(self, app: App, *, host: str, token: str | None = None) -> None:
        check_address(host, token)
        self._app = app
        self._token = token
        self._any_host = not is_loopback(host)  # then the token protects: no other page has it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
        elif self._token is not None and not self._knows_token(headers):
            await self._ask_for_token(scope, send)
        else:
            await self._app(scope, _limit(receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._any_host and not _is_local_name(host):
            return 403, f"the name {host!r:.100} is not this machine's"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "requests of other pages are refused"
        is_visit = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_visit:
            return 403, "requests of other pages are refused"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET and POST are served"
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "the content type must be application/json"
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > MAX_BODY_BYTES:
                return 413, f"a body may have {MAX_BODY_BYTES:,} bytes"
        return None

    def _knows_token(self, headers: dict[str, str]) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        return self._is_token(given) or (cookie is not None and self._is_token(cookie.value))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), (self._token or "").encode())

    async def _ask_for_token(self, scope: Scope, send: Send) -> None:
        """Exchange the token in the printed address for a cookie that scripts cannot read."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and self._is_token(given):
            cookie = f"{COOKIE}={given}; HttpOnly; SameSite=Strict; Path=/"
            headers = [
                (b"location", b"/"),
                (b"set-cookie", cookie.encode("latin-1")),
                (b"content-length", b"0"),
            ]
            await _with_headers(send)({"type": "http.response.start", "status": 303, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await _refuse(
            send, 401, "open the address that `compact view` printed, or send the token as a Bearer"
        )


def _is_local_name(host: str) -> bool:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return is_loopback(name.strip("[]"))


def _limit(receive: Receive) -> Receive:
    """Stop reading a body that is longer than allowed, whatever its length header says."""
    taken = 0

    async def limited() -> dict[str, Any]:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                raise BodyTooLarge
        return message

    return limited


class BodyTooLarge(Exception):
    """A body is longer than allowed."""


def _with_headers(send: Send) -> Send:
    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            held = list(message.get("headers", []))
            names = {name.lower() for name, _ in held}
            held += [(k.encode(), v.encode()) for k, v in SAFE_HEADERS.items() if k.encode() not in names]
            message = {**message, "headers": held}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    # The rest of a refused body stays unread, so the connection cannot be reused.
    headers.append((b"connection", b"close"))
    await _with_headers(send)({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
