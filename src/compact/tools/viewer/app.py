"""The viewer's application: the page, its API, and Ariadne's three endpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse as PlainJSONResponse
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from compact.archive import Archive
from compact.errors import CompactError
from compact.events import timestamp
from compact.tools.viewer.addresses import check_address
from compact.tools.viewer.guarding import BodyTooLarge, Guard
from compact.tools.viewer.ingest import MAX_BODY_BYTES, BodyRefused, accept
from compact.tools.viewer.live import ChangeStream, EventStream, Stream, Streams, Watch
from compact.tools.viewer.sessions import MAX_INGESTED_EVENTS, Digest, EventPage, Sessions, light
from compact.tools.viewer.steps import Side, StepReader

MAX_EVENTS_PER_ANSWER = 2_000
_NO_SESSION = "there is no such session, or it has no archive"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class JSONResponse(PlainJSONResponse):
    """JSON in ASCII: archives may contain lone surrogates, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        """Encode the body."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class Viewer:
    """The parts of the viewer, and its endpoints. `guarded` is the application to serve."""

    def __init__(self, archive: Archive | None, *, host: str = "127.0.0.1", token: str | None = None) -> None:
        check_address(host, token)
        self.streams = Streams()
        self.sessions = Sessions(archive, self.streams.changed)
        self.watch = Watch(self.sessions)
        self._steps = None if archive is None else StepReader(archive)
        self._page = _page_files()
        self.guarded = Guard(self._app(), host=host, token=token)

    def _app(self) -> Starlette:
        routes = [
            Route("/", self._static),
            Route("/page/{name}", self._static),
            Route("/api/sessions", self._list),
            Route("/api/sessions/{key}/events", self._events),
            Route("/api/sessions/{key}/events/{number:int}", self._event),
            Route("/api/sessions/{key}/steps", self._list_steps),
            Route("/api/sessions/{key}/steps/{step:int}", self._step),
            Route("/api/sessions/{key}/steps/{step:int}/summary", self._summary),
            Route("/api/sessions/{key}/steps/{step:int}/{side}/{place:int}", self._message),
            Route("/api/sessions/{key}/ledger", self._ledger),
            Route("/api/sessions/{key}/ledger/{entry}", self._entry),
            Route("/api/sessions/{key}/file", self._file),
            Route("/api/live", self._live),
            Route("/ingest", self._ingest, methods=["POST"]),
            Route("/events", self._ariadne_events),
            Route("/healthz", self._health),
        ]
        handlers = {
            CompactError: _explain_archive_error,
            BodyTooLarge: _explain_size,
            HTTPException: _explain,
        }
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.streams.attach()
        self.watch.start()
        yield
        self.watch.stop()

    # --- the page. Endpoints that read the archive are plain functions: starlette runs those on a thread.

    async def _static(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._page:
            raise HTTPException(404, f"the page has no file {name!r:.60}")
        return Response(self._page[name], media_type=_TYPES[name.rpartition(".")[2]])

    # --- the page's API

    def _list(self, _: Request) -> Response:
        archive = self.sessions.archive
        return JSONResponse(
            {
                "sessions": self.sessions.rows(),
                "archive": None if archive is None else archive.address(),
                "problem": self.watch.problem,
                "ready": self.watch.ready,
                "dropped": self.sessions.dropped,
            }
        )

    def _events(self, request: Request) -> Response:
        page = self._page_of_events(request, _whole_number(request.query_params.get("from", "0")))
        events = [light(event, page.first + n) for n, event in enumerate(page.events)]
        return JSONResponse({"from": page.first, "total": page.total, "events": events})

    def _event(self, request: Request) -> Response:
        number = request.path_params["number"]
        page = self._page_of_events(request, number, 1)
        if page.first != number or not page.events:
            raise HTTPException(404, f"the session has no event {number} any more")
        return JSONResponse(page.events[0])

    def _page_of_events(self, request: Request, first: int, limit: int = MAX_EVENTS_PER_ANSWER) -> EventPage:
        page = self.sessions.events(request.path_params["key"], first, limit)
        if page is None:
            raise HTTPException(404, _NO_SESSION)
        return page

    def _list_steps(self, request: Request) -> Response:
        digest = self._digest(request)
        archived = self._steps is not None and digest.source == "archive"
        steps = self._steps.rows(digest.key) if self._steps is not None and archived else []
        return JSONResponse({"steps": steps, "archived": archived})

    def _step(self, request: Request) -> Response:
        steps, where = self._step_of(request)
        return JSONResponse(steps.compare(*where).to_json())

    def _summary(self, request: Request) -> Response:
        steps, where = self._step_of(request)
        return JSONResponse({"summaries": steps.summaries(*where)})

    def _message(self, request: Request) -> Response:
        side: Side = request.path_params["side"]
        if side not in ("before", "after"):
            raise HTTPException(404, "a message stands before or after a step")
        steps, where = self._step_of(request)
        return JSONResponse(steps.message(*where, side, request.path_params["place"]))

    def _ledger(self, request: Request) -> Response:
        digest = self._digest(request)
        is_archived = self._steps is not None and digest.source == "archive"
        entries = self._steps.ledger(digest.key) if self._steps is not None and is_archived else []
        return JSONResponse({"entries": entries, "archived": is_archived})

    def _entry(self, request: Request) -> Response:
        steps, digest = self._archived(request)
        return JSONResponse(steps.entry(digest.key, request.path_params["entry"]))

    def _file(self, request: Request) -> Response:
        steps, digest = self._archived(request)
        return JSONResponse(steps.file(digest.key, request.query_params.get("path", "")))

    def _digest(self, request: Request) -> Digest:
        """Find the session of a request. Only keys that the archive itself listed lead anywhere."""
        digest = self.sessions.digest(request.path_params["key"])
        if digest is None:
            raise HTTPException(404, _NO_SESSION)
        return digest

    def _archived(self, request: Request) -> tuple[StepReader, Digest]:
        digest = self._digest(request)
        if self._steps is None or digest.source != "archive":
            raise HTTPException(404, _NO_SESSION)
        return self._steps, digest

    def _step_of(self, request: Request) -> tuple[StepReader, tuple[str, int, str | None]]:
        steps, digest = self._archived(request)
        return steps, (digest.key, request.path_params["step"], digest.model)

    # --- streams

    async def _live(self, _: Request) -> Response:
        return self._streamed(ChangeStream())

    async def _ariadne_events(self, request: Request) -> Response:
        query = request.query_params
        kinds = {kind.strip() for kind in query["kinds"].split(",")} if "kinds" in query else None
        since = query.get("since", "")

        def wanted(event: Mapping[str, Any]) -> bool:
            if "traceId" in query and event["trace_id"] != query["traceId"]:
                return False
            if event["type"] != "span":
                return True
            return (kinds is None or event.get("kind") in kinds) and event.get("started_at", since) >= since

        return self._streamed(EventStream(timestamp(datetime.now(UTC)), wanted))

    def _streamed(self, stream: Stream) -> Response:
        if not self.streams.open(stream):
            return JSONResponse({"error": "too many streams are open; close a page"}, 503)
        return _OpenStream(self.streams, stream)

    # --- Ariadne's endpoints

    async def _ingest(self, request: Request) -> Response:
        try:
            events = accept(await request.body())
        except BodyRefused as refused:
            details = [{"path": fault.path, "message": fault.message} for fault in refused.faults]
            return JSONResponse({"error": "Validation failed", "details": details}, 400)
        self.sessions.add_ingested(events)
        self.streams.arrived(events)
        return JSONResponse({"success": True, "count": len(events)})

    async def _health(self, _: Request) -> Response:
        held = {
            "count": self.sessions.ingested,
            "capacity": MAX_INGESTED_EVENTS,
            "dropped": self.sessions.dropped,
        }
        return JSONResponse({"status": "ok", "timestamp": timestamp(datetime.now(UTC)), "events": held})


class _OpenStream(StreamingResponse):
    """Sends a stream until its reader leaves, and then makes room for another, also if nothing was ever read."""

    def __init__(self, streams: Streams, stream: Stream) -> None:
        super().__init__(streams.read(stream), media_type="text/event-stream")
        self._leave = partial(streams.close_one, stream)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _page_files() -> dict[str, bytes]:
    """Read the files of the page. Nothing else can be requested."""
    folder = files("compact.tools.viewer") / "page"
    return {
        item.name: item.read_bytes() for item in folder.iterdir() if item.name.rpartition(".")[2] in _TYPES
    }


def _whole_number(text: str) -> int:
    return min(int(text), 1 << 53) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _explain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def _explain_archive_error(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "reason": getattr(error, "details", {}).get("reason")}, 404)


def _explain_size(_: Request, __: Exception) -> Response:
    error = {"error": f"a body may have {MAX_BODY_BYTES:,} bytes"}
    return JSONResponse(error, 413, {"connection": "close"})
