"""The Ariadne trace viewer: `POST {url}/ingest` in batches. Each span is sent once, when it is complete.

Ariadne refuses a whole batch for one bad event, so a refused batch is split until the bad event is alone. Problems are
reported on standard error with the prefix `[Ariadne]`.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from compact.errors import ConfigError
from compact.redaction.destinations import Origin
from compact.tracing.exporters.exporter import EventDict, Exporter, Sent, Unavailable

DEFAULT_URL = "http://localhost:5175"
TIMEOUT_S = 2.0
BATCH_BYTES = 199_000
"""Ariadne refuses a body of more than 256 KiB."""
_TEXT_CHARS = 50_000
"""Ariadne itself cuts texts at twice this length."""
_REFUSALS = (400, 413, 422)
"""Bad request, too large, unprocessable: sending the same events again would not help."""

_UNAUTHORIZED = 401


class AriadneExporter(Exporter):
    """Sends events to Ariadne, with a bearer `token` if one is given. Follows no redirects and uses no proxy.

    Only the status of an answer is read.

    Raises:
        ConfigError: the token would go to another machine unencrypted.
    """

    name = "ariadne"
    resumes = True

    def __init__(
        self, url: str | None = None, timeout_s: float | None = None, token: SecretStr | None = None
    ) -> None:
        parts = urlsplit(url or DEFAULT_URL)
        origin = Origin.of(url or DEFAULT_URL)
        if token is not None and (origin is None or not origin.is_private):
            raise ConfigError(
                f"tracing.ariadne_token would go to {parts.hostname} unencrypted",
                hint="Use https in tracing.ariadne_url, or an address on this machine",
                path="tracing.ariadne_token",
            )
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or "localhost"
        self._port = parts.port
        self._path = f"{parts.path.rstrip('/')}/ingest"
        self._timeout_s = TIMEOUT_S if timeout_s is None else timeout_s
        self._token = token
        self._traces: dict[str, dict[str, Any]] = {}
        """Traces that Ariadne knows, each with the end of its newest span."""
        self._is_down = False

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        batch: list[bytes] = []
        size = 0
        for event in events:
            piece = _encode(_span(event))
            if batch and size + len(piece) > BATCH_BYTES:
                break
            batch.append(piece)
            size += len(piece) + 1
        self._announce(events[0])
        sent = self._deliver(batch)
        for event in events[: sent.taken]:
            trace = self._traces.setdefault(str(event["trace_id"]), {})
            trace["ended_at"] = max(str(trace.get("ended_at", "")), str(event["ended_at"]))
        return sent

    def close(self) -> None:
        """Send the traces again, with the time at which they ended so far."""
        for trace in self._traces.values():
            if "trace_id" in trace:
                self._deliver([_encode(trace)])

    def _announce(self, event: EventDict) -> None:
        """Send the session's trace before its first span."""
        key = str(event["trace_id"])
        if key not in self._traces:
            trace = _trace(event)
            self._deliver([_encode(trace)])
            self._traces[key] = trace

    def _deliver(self, batch: list[bytes]) -> Sent:
        parts = [batch]
        taken = refused = 0
        while parts:
            part = parts.pop(0)
            cause: Exception | None = None
            try:
                status = self._post(b'{"batch":[' + b",".join(part) + b"]}")
                problem = self._in_words(status)
            except (OSError, http.client.HTTPException) as error:
                status, cause, problem = 0, error, f"{type(error).__name__}: {error}"
            if 200 <= status < 300:
                taken += len(part)
            elif status in _REFUSALS and len(part) > 1:
                middle = len(part) // 2
                parts[:0] = [part[:middle], part[middle:]]
            elif status in _REFUSALS:
                _complain(f"refused an event with status {status}: {part[0][:200].decode()}")
                taken, refused = taken + 1, refused + 1
            else:
                self._note_outage(problem)
                if not taken:
                    raise Unavailable(problem) from cause
                break  # the rest is offered again
        if taken and self._is_down:
            self._is_down = False
            _complain(f"{self._address()} takes events again; those that waited follow")
        return Sent(taken, refused)

    def _post(self, body: bytes) -> int:
        give_up = time.monotonic() + self._timeout_s
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout_s)
        try:
            connection.connect()
            connection.sock.settimeout(max(0.001, give_up - time.monotonic()))
            connection.request("POST", self._path, body, self._headers())
            connection.sock.settimeout(max(0.001, give_up - time.monotonic()))
            return connection.getresponse().status
        finally:
            connection.close()

    def _in_words(self, status: int) -> str:
        if status != _UNAUTHORIZED:
            return f"status {status}"
        todo = "set tracing.ariadne_token" if self._token is None else "it refuses tracing.ariadne_token"
        return f"status {status}: {todo}"

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        return headers

    def _note_outage(self, why: str) -> None:
        """Report an outage once. Forget the traces, because a restarted Ariadne may not know them any more."""
        self._traces.clear()
        if not self._is_down:
            self._is_down = True
            _complain(f"{self._address()} does not take events ({why}); they wait, and events.jsonl has them")

    def _address(self) -> str:
        return self._host if self._port is None else f"{self._host}:{self._port}"


def _complain(text: str) -> None:
    sys.stderr.write(f"[Ariadne] {text}\n")


def _trace(event: EventDict) -> dict[str, Any]:
    session_id = str(event["session_id"])
    return {
        "type": "trace",
        "trace_id": event["trace_id"],
        "name": f"compact {session_id}",
        "group_id": session_id,
        "started_at": event["started_at"],
        "metadata": {"source": "compact", "session_id": session_id},
    }


def _span(event: EventDict) -> dict[str, Any]:
    payload = dict(event["payload"])
    data = {"session_id": event["session_id"], "step": event["step"], **event["properties"]}
    if "summary" in payload:
        data["output_text"] = payload.pop("summary")
    if payload:
        data["payload"] = payload
    span = {
        "type": "span",
        "trace_id": event["trace_id"],
        "span_id": event["span_id"],
        "kind": "compact",
        "name": event["name"],
        "started_at": event["started_at"],
        "ended_at": event["ended_at"],
        "status": event["status"],
        "data": data,
    }
    if event["parent_id"] is not None:  # Ariadne refuses null
        span["parent_id"] = event["parent_id"]
    return span


def _encode(piece: dict[str, Any]) -> bytes:
    """Encode a piece as JSON. If it alone exceeds a batch, its texts are cut and its numbers stay."""
    encoded = json.dumps(piece).encode()
    limit = _TEXT_CHARS
    while len(encoded) > BATCH_BYTES and limit:
        limit //= 4
        encoded = json.dumps({**piece, "data": _shorten(piece["data"], limit)}).encode()
    return encoded


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]} [cut; the whole is in events.jsonl]"
    if isinstance(value, dict):
        return {key: _shorten(entry, limit) for key, entry in value.items()}
    if isinstance(value, list):
        return [_shorten(entry, limit) for entry in value[:limit]]
    return value
