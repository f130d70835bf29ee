"""The HTTP side of a summarizer's endpoint: which key goes where, and how much of an answer is read.

A key belongs to a host. `COMPACT_SUMMARY_API_KEY` is the summarizer's own and goes to its endpoint, wherever that is.
`OPENAI_API_KEY`, and whatever else the client takes from the environment for OpenAI, goes to OpenAI, or to the host that
`OPENAI_BASE_URL` names; another endpoint is asked without it. No key is sent in clear to another machine.

Both are decided when a request leaves, by where it really goes. An answer is never redirected, and is read up to a limit that
holds after decompression: the client itself would unpack whatever arrives.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from compact.errors import CompactError
from compact.redaction.destinations import Origin, is_loopback

log = logging.getLogger("compact")

OWN_KEY = "COMPACT_SUMMARY_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_URL = "OPENAI_BASE_URL"
DEFAULT_URL = "https://api.openai.com/v1"
MOST_ERROR_BYTES = 50_000
"""Bytes of an answer that reports an error. It is cut there, because its beginning says what is wrong."""

_OPENAI_HOST = "api.openai.com"
_NO_KEY = "none"
"""Given to the client, which requires a key. It is taken out again before anything is sent."""
_PLAIN_HEADERS = frozenset(
    (
        "host",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "connection",
        "user-agent",
        "x-stainless-raw-response",  # the client reads it back, to know what to return
    )
)
"""What a host gets that is not OpenAI's, besides its own key. The client adds more from the environment."""
_AUTHORIZATION = "authorization"
_AUTO_DETECTED = 47
"""For zlib: gzip or deflate, whichever it is."""


def open_client(base_url: str | None, timeout_s: float, most_bytes: int) -> Any:
    """Make the client that asks an endpoint. It follows no redirect, and reads at most `most_bytes` of an answer.

    Proxies of the environment are used, except for this machine itself.
    """
    import openai

    target = Origin.of(_address(base_url, os.environ))
    return openai.AsyncOpenAI(
        api_key=_NO_KEY,
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        default_headers={"Accept-Encoding": "identity"},
        http_client=openai.DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=target is None or not is_loopback(target.host),
            event_hooks={
                "request": [partial(_address_keys, dict(os.environ))],
                "response": [partial(read_bounded, most_bytes)],
            },
        ),
    )


def why_no_key(base_url: str | None, environment: Mapping[str, str]) -> str:
    """Why an endpoint cannot be asked with the keys that there are. Empty if it can, with a key or without."""
    target = Origin.of(_address(base_url, environment))
    if base_url is None and not environment.get(OPENAI_URL) and not _key_for(target, environment)[1]:
        return f"there is no summary.base_url and no key in {OWN_KEY} or {OPENAI_KEY}"
    return _why_exposed(target, environment)


def say_if_withheld(base_url: str | None, environment: Mapping[str, str]) -> None:
    """Log once for each host that OpenAI's key is not sent there."""
    target = Origin.of(_address(base_url, environment))
    if target and environment.get(OPENAI_KEY) and not _key_for(target, environment)[1]:
        _say_withheld(target.host)


@cache
def _say_withheld(host: str) -> None:
    log.warning(
        "%s is not sent to %s, because it belongs to %s; if %s needs a key, set %s",
        OPENAI_KEY,
        host,
        _OPENAI_HOST,
        host,
        OWN_KEY,
    )


def _address(base_url: str | None, environment: Mapping[str, str]) -> str:
    return base_url or environment.get(OPENAI_URL) or DEFAULT_URL


def _is_home(target: Origin | None, environment: Mapping[str, str]) -> bool:
    """Whether OpenAI's key belongs there."""
    if target is None:
        return False
    if target == Origin.of(environment.get(OPENAI_URL, "")):
        return True
    is_openai = target.host == _OPENAI_HOST or target.host.endswith(f".{_OPENAI_HOST}")
    return is_openai and target.scheme == "https"


def _key_for(target: Origin | None, environment: Mapping[str, str]) -> tuple[str, str]:
    """The name and the value of the key that belongs to a host; both empty if there is none."""
    for name in (OWN_KEY, OPENAI_KEY):
        key = environment.get(name)
        if key and (name == OWN_KEY or _is_home(target, environment)):
            return name, key
    return "", ""


def _why_exposed(target: Origin | None, environment: Mapping[str, str]) -> str:
    name, key = _key_for(target, environment)
    if not key or (target is not None and target.is_private):
        return ""
    where = "an address that is no address" if target is None else target.host
    return f"{name} would go to {where} unencrypted; use https, or an endpoint on this machine"


async def _address_keys(environment: Mapping[str, str], request: Any) -> None:
    """Give a request the key of the host that it goes to, and take out what belongs to another one."""
    url = request.url
    target = Origin.made_of(url.scheme, url.host, url.port)
    problem = _why_exposed(target, environment)
    if problem:
        raise CompactError(problem)
    given = request.headers.pop(_AUTHORIZATION, "")
    if not _is_home(target, environment):
        for name in {each.lower() for each in request.headers} - _PLAIN_HEADERS:
            del request.headers[name]
    _, key = _key_for(target, environment)
    if key:
        request.headers[_AUTHORIZATION] = f"Bearer {key}"
    elif url.userinfo and given.startswith("Basic "):  # the address has a name and a password of its own
        request.headers[_AUTHORIZATION] = given


async def read_bounded(most_bytes: int, response: Any) -> None:
    """Put the bounded, unpacked body of an answer into the place of its stream.

    Raises:
        CompactError: the answer is a redirect, too large, or packed in a way that was not asked for.
    """
    if 300 <= response.status_code < 400:
        raise CompactError(
            f"the summarizer's endpoint redirects ({response.status_code}), which is not followed"
        )
    is_error = response.status_code >= 400
    limit = min(most_bytes, MOST_ERROR_BYTES) if is_error else most_bytes
    body = _Body(response.headers.get("content-encoding", ""), limit)
    async for chunk in response.stream:
        if not body.takes(chunk):
            break
    if body.is_too_large and not is_error:
        raise CompactError(
            f"the summarizer's answer has more than {limit:,} bytes",
            hint="If such answers are right, raise summary.max_reply_bytes",
        )
    await response.stream.aclose()
    response.headers.pop("content-encoding", None)
    # JSON is UTF-8. Some of the encodings that an answer could name take quadratic time.
    response.headers["content-type"] = response.headers.get("content-type", "").partition(";")[0]
    response.stream = type(response)(response.status_code, content=bytes(body.data[:limit])).stream


class _Body:
    """The body of an answer, unpacked as it arrives, up to a limit.

    Raises:
        CompactError: it is packed in a way that was not asked for.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise CompactError(
                f"the summarizer's answer is packed as {encoding[:40]!r}, which was not asked for"
            )
        self._unpacking = None if name in ("", "identity") else zlib.decompressobj(_AUTO_DETECTED)
        self._limit = limit
        self._arrived = 0
        self.data = bytearray()

    @property
    def is_too_large(self) -> bool:
        """Whether it has more than the limit, as it arrived or unpacked."""
        return max(self._arrived, len(self.data)) > self._limit

    def takes(self, chunk: bytes) -> bool:
        """Take a piece. Returns False if nothing after it matters.

        Raises:
            CompactError: it is not packed as it says.
        """
        self._arrived += len(chunk)
        room = self._limit + 1 - len(self.data)
        if self._unpacking is None:
            self.data += chunk[:room]
            return not self.is_too_large
        try:
            self.data += self._unpacking.decompress(chunk, room)
        except zlib.error as error:
            raise CompactError(f"the summarizer's answer is not packed as it says: {error}") from error
        # Whatever follows the end would be collected by the unpacker.
        return not self.is_too_large and not self._unpacking.eof
