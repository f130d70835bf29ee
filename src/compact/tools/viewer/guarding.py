"""Guard the viewer against pages of other sites and against DNS rebinding.

Every request is checked before anything is read: the token, unless the viewer is open; the name in `Host`, against DNS rebinding;
`Origin` and `Sec-Fetch-Site`, against requests of other pages; the type and size of a body.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compact.tools.viewer.addresses import is_loopback
from compact.tools.viewer.ingest import MAX_BODY_BYTES

COOKIE = "compact_viewer"

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


class BodyTooLarge(Exception):
    """A body is longer than allowed."""


class Guard:
    """Wraps the application in the checks, and adds headers that keep a browser strict."""

    def __init__(self, app: ASGIApp, *, host: str, token: str | None = None) -> None:
        self._app = app
        self._token = token
        self._any_host = not is_loopback(host)  # then the token protects: no other page has it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            app = self._refusal(Request(scope)) or self._app
            await app(scope, _limit(receive), _with_headers(send))
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        headers, method = request.headers, request.method
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._any_host and not _is_local_name(host):
            return _refuse(403, f"the name {host!r:.100} is not this machine's")
        is_visit = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_visit
        if is_foreign or (origin is not None and origin not in (f"http://{host}", f"https://{host}")):
            return _refuse(403, "requests of other pages are refused")
        if method not in ("GET", "HEAD", "POST"):
            return _refuse(405, "only GET and POST are served")
        if method == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return _refuse(415, "the content type must be application/json")
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > MAX_BODY_BYTES:
                return _refuse(413, f"a body may have {MAX_BODY_BYTES:,} bytes")
        return None if self._token is None else self._ask_for_token(request)

    def _ask_for_token(self, request: Request) -> Response | None:
        """Exchange the token in the printed address for a cookie that scripts cannot read."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer" and self._is_token(bearer)
        if is_bearer or self._is_token(request.cookies.get(COOKIE, "")):
            return None
        given = request.query_params.get("token", "")
        home = f"{request.scope.get('root_path', '')}/"
        if request.method == "GET" and request.url.path == home and self._is_token(given):
            entered = RedirectResponse(home, 303)
            entered.set_cookie(COOKIE, given, path=home, httponly=True, samesite="strict")
            return entered
        return _refuse(401, "open the address that `compact view` printed, or send the token as a Bearer")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), (self._token or "").encode())


def _is_local_name(host: str) -> bool:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return is_loopback(name.strip("[]"))


def _limit(receive: Receive) -> Receive:
    """Stop reading a body that is longer than allowed, whatever its length header says."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                raise BodyTooLarge
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _refuse(status: int, why: str) -> Response:
    # The rest of a refused body stays unread, so the connection cannot be reused.
    return JSONResponse({"error": why}, status, {"connection": "close"})
