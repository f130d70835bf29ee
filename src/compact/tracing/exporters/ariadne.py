"""The Ariadne trace viewer: `POST {url}/ingest`, in batches, each span once and completed.

One bad event makes Ariadne refuse its whole batch, so a refused batch is split until the bad one stands alone. Whatever goes
wrong is told on standard error, with `[Ariadne]` in front, and never raised.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from compact.tracing.exporters.protocol import Exporter, Sent, Told, Unavailable

DEFAULT_URL = "http://localhost:5175"
TIMEOUT_S = 2.0
BATCH_BYTES = 199_000
"""Ariadne refuses a body of more than 256 KiB."""
_TEXT_CHARS = 50_000
"""It cuts texts at twice this length itself."""
_BAD_REQUEST, _TOO_LARGE, _UNPROCESSABLE = 400, 413, 422


class Settings(Protocol):
    """What is read of the section `tracing`."""

    @property
    def ariadne_url(self) -> str | None:
        """Where Ariadne listens; None: its default on this machine."""
        ...

    @property
    def ariadne_token(self) -> SecretStr | None:
        """What it asks of everybody who connects; None: nothing."""
        ...


def from_settings(settings: Settings) -> AriadneExporter:
    """The exporter that the configuration describes."""
    return AriadneExporter(settings.ariadne_url or DEFAULT_URL, TIMEOUT_S, settings.ariadne_token)


class AriadneExporter(Exporter):
    """Sends events to Ariadne, with a bearer `token` if there is one. Follows no redirect and uses no proxy."""

    name = "ariadne"
    resumes = True

    def __init__(
        self, url: str = DEFAULT_URL, timeout_s: float = TIMEOUT_S, token: SecretStr | None = None
    ) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or "localhost"
        self._port = parts.port
        self._path = f"{parts.path.rstrip('/')}/ingest"
        self._timeout_s = timeout_s
        self._token = token
        self._traces: dict[str, dict[str, Any]] = {}
        """The traces that Ariadne knows, with the time of their newest span."""
        self._is_down = False

    def export(self, events: Sequence[Told]) -> Sent:
        """See `Exporter.export`."""
        batch: list[bytes] = []
        size = 0
        for event in events:
            piece = _encoded(_span(event))
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
        """Tells when the traces ended, so far."""
        for trace in self._traces.values():
            if "trace_id" in trace:
                self._deliver([_encoded(trace)])

    def _announce(self, event: Told) -> None:
        """Sends the session's trace, before its first span."""
        known = self._traces.get(str(event["trace_id"]))
        if known is None:
            trace = _trace(event)
            self._deliver([_encoded(trace)])
            self._traces[str(event["trace_id"])] = trace

    def _deliver(self, batch: list[bytes]) -> Sent:
        parts = [batch]
        taken = refused = 0
        while parts:
            part = parts.pop(0)
            try:
                status = self._post(b'{"batch":[' + b",".join(part) + b"]}")
            except (OSError, http.client.HTTPException) as problem:
                self._failed(f"{type(problem).__name__}: {problem}")
                if not taken:
                    raise Unavailable(str(problem)) from problem
                break  # the rest is offered again
            if 200 <= status < 300:
                taken += len(part)
            elif status in (_BAD_REQUEST, _TOO_LARGE, _UNPROCESSABLE) and len(part) > 1:
                parts[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
            elif status in (_BAD_REQUEST, _TOO_LARGE, _UNPROCESSABLE):
                _complain(f"refused an event with status {status}: {part[0][:200].decode()}")
                taken, refused = taken + 1, refused + 1
            else:
                self._failed(f"status {status}")
                if not taken:
                    raise Unavailable(f"status {status}")
                break
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

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        return headers

    def _failed(self, why: str) -> None:
        """Told once for each outage. Who comes back may have forgotten the traces, so they are told again."""
        self._traces.clear()
        if not self._is_down:
            self._is_down = True
            _complain(f"{self._address()} does not take events ({why}); they wait, and events.jsonl has them")

    def _address(self) -> str:
        return self._host if self._port is None else f"{self._host}:{self._port}"


def _complain(text: str) -> None:
    sys.stderr.write(f"[Ariadne] {text}\n")


def _trace(event: Told) -> dict[str, Any]:
    session_id = str(event["session_id"])
    return {
        "type": "trace",
        "trace_id": event["trace_id"],
        "name": f"compact {session_id}",
        "group_id": session_id,
        "started_at": event["started_at"],
        "metadata": {"source": "compact", "session_id": session_id},
    }


def _span(event: Told) -> dict[str, Any]:
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
    if event["parent_id"] is not None:  # a null is refused
        span["parent_id"] = event["parent_id"]
    return span


def _encoded(piece: dict[str, Any]) -> bytes:
    """The piece as JSON. One that alone would be too large keeps its numbers and loses the end of its texts."""
    encoded = json.dumps(piece).encode()
    limit = _TEXT_CHARS
    while len(encoded) > BATCH_BYTES and limit:
        limit //= 4
        encoded = json.dumps({**piece, "data": _shortened(piece["data"], limit)}).encode()
    return encoded


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]} [cut; the whole is in events.jsonl]"
    if isinstance(value, dict):
        return {key: _shortened(entry, limit) for key, entry in value.items()}
    if isinstance(value, list):
        return [_shortened(entry, limit) for entry in value[:limit]]
    return value
