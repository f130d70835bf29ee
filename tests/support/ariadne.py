"""A strict stand-in for the Ariadne trace viewer: the rules of its `/ingest`, and the ways in which it can be away."""

from __future__ import annotations

import json
import re
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

MAX_BYTES = 256 * 1024
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_ANY = "2026-01-01T00:00:00Z"
_TEXTS = {
    "trace": {"name", "group_id"},
    "span": {"parent_id", "kind", "name"},
}
_KNOWN = {
    "trace": {"type", "trace_id", "name", "group_id", "started_at", "ended_at", "metadata"},
    "span": {
        "type", "trace_id", "span_id", "parent_id", "kind", "name", "started_at", "ended_at", "data", "status",
    },
}  # fmt: skip

Mood = Literal["up", "erroring", "slow", "redirecting"]


def refusal(event: Any) -> str | None:
    """Why Ariadne would answer 400 to an event; None when it takes it."""
    if not isinstance(event, dict) or event.get("type") not in _KNOWN:
        return "not a trace or a span"
    kind = event["type"]
    for name in ("trace_id", "span_id") if kind == "span" else ("trace_id",):
        if not isinstance(event.get(name), str) or not event[name]:
            return f"{name} must be a text that is not empty"
    for name in _TEXTS[kind] & event.keys():
        if not isinstance(event[name], str):
            return f"{name} must be a text, or absent: null is neither"
    for name in {"started_at", "ended_at"} & event.keys():
        if not _is_time(event[name]):
            return f"{name} must be UTC and end in Z, got {event[name]!r}"
    began, ended = (datetime.fromisoformat(event.get(name) or _ANY) for name in ("started_at", "ended_at"))
    if "started_at" in event and "ended_at" in event and began > ended:
        return "ended_at must be >= started_at"
    if kind == "span":
        if not isinstance(event.get("data", {}), dict):
            return "data must be an object"
        if event.get("status", "ok") not in ("ok", "error"):
            return "status must be ok or error"
    elif not _is_text_map(event.get("metadata", {})):
        return "metadata must be an object of texts"
    return None


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())


class Ariadne:
    """A server on a free port of this machine. What it took is in `events`, what it refused in `refusals`."""

    def __init__(self) -> None:
        self.mood: Mood = "up"
        self.delay_s = 0.0
        self.poison: str | None = None
        """A text: an event that holds it is refused."""
        self.events: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.statuses: list[int] = []
        self.sizes: list[int] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == "span"]

    @property
    def traces(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == "trace"]

    def start(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str, body: bytes) -> int:
        """The status of a request, as Ariadne decides it."""
        if self.mood == "slow":
            time.sleep(self.delay_s)
        if self.mood == "erroring":
            return 500
        if self.mood == "redirecting":
            return 302
        if path != "/ingest":
            return 404
        if len(body) > MAX_BYTES:
            return 413
        sent = json.loads(body)
        batch = sent["batch"] if isinstance(sent, dict) and "batch" in sent else [sent]
        refusals = [why for event in batch if (why := refusal(event) or self._poisoned(event))]
        if refusals or not isinstance(batch, list):
            self.refusals += refusals
            return 400
        with self._lock:
            for event in batch:
                self.events.append({key: event[key] for key in event if key in _KNOWN[event["type"]]})
        return 200

    def _poisoned(self, event: Any) -> str | None:
        return "poisoned" if self.poison is not None and self.poison in json.dumps(event) else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def _handler(ariadne: Ariadne) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            ariadne.paths.append(self.path)
            ariadne.sizes.append(len(body))
            status = ariadne.answer(self.path, body)
            ariadne.statuses.append(status)
            try:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{ariadne.url}/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
            except OSError:
                pass  # the client did not wait

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
