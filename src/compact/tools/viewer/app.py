"""The viewer's application: the page, what it asks for, and Ariadne's three endpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse as PlainJSONResponse
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from compact.archive import Archive
from compact.errors import ArchiveError, CompactError
from compact.events import timestamp
from compact.tools.viewer.digests import Digest
from compact.tools.viewer.guarding import BodyTooLarge, Guard
from compact.tools.viewer.ingest import MAX_BODY_BYTES, Refused, accepted
from compact.tools.viewer.live import ChangeStream, EventStream, Stream, Streams, Watch
from compact.tools.viewer.sessions import MAX_INGESTED_EVENTS, Sessions, light
from compact.tools.viewer.steps import Steps

MAX_EVENTS_PER_ANSWER = 2_000
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class JSONResponse(PlainJSONResponse):
    """JSON in ASCII: half a character, which archives of other hands may hold, cannot be written as UTF-8."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class Viewer:
    """The viewer's parts, and its endpoints. `guarded` is the application to serve."""

    def __init__(self, archive: Archive | None, *, host: str = "127.0.0.1", token: str | None = None) -> None:
        self.streams = Streams()
        self.sessions = Sessions(archive, self.streams.changed)
        self.watch = Watch(self.sessions)
        self._steps = None if archive is None else Steps(archive)
        self._page = _page_files()
        self.guarded = Guard(self._app(), host=host, token=token)  # type: ignore[arg-type]

    def _app(self) -> Starlette:
        routes = [
            Route("/", self._index),
            Route("/page/{name}", self._static),
            Route("/api/sessions", self._list),
            Route("/api/sessions/{key}/events", self._events),
            Route("/api/sessions/{key}/events/{number:int}", self._event),
            Route("/api/sessions/{key}/steps", self._list_steps),
            Route("/api/sessions/{key}/steps/{step:int}", self._step),
            Route("/api/sessions/{key}/steps/{step:int}/summary", self._summary),
            Route("/api/sessions/{key}/steps/{step:int}/{side}/{place:int}", self._message),
            Route("/api/sessions/{key}/file", self._file),
            Route("/api/live", self._live),
            Route("/ingest", self._ingest, methods=["POST"]),
            Route("/events", self._ariadne_events),
            Route("/healthz", self._health),
        ]
        handlers = {ArchiveError: _archive_problem, CompactError: _archive_problem, BodyTooLarge: _too_large}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.streams.attach()
        self.watch.start()
        yield
        self.watch.stop()

    # --- the page. Plain functions run on a thread of their own, so reading an archive holds nobody up.

    async def _index(self, _: Request) -> Response:
        return self._file_of_page("index.html")

    async def _static(self, request: Request) -> Response:
        return self._file_of_page(request.path_params["name"])

    def _file_of_page(self, name: str) -> Response:
        data = self._page.get(name)
        if data is None:
            return _missing(f"the page has no file {name!r:.60}")
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(data, media_type=kind)

    # --- what the page asks for

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
        first = _whole_number(request.query_params.get("from", "0"))
        page = self.sessions.events(request.path_params["key"], first, MAX_EVENTS_PER_ANSWER)
        if page is None:
            return _no_session()
        events = [light(event, page.first + n) for n, event in enumerate(page.events)]
        return JSONResponse({"from": page.first, "total": page.total, "events": events})

    def _event(self, request: Request) -> Response:
        number = request.path_params["number"]
        page = self.sessions.events(request.path_params["key"], number, 1)
        if page is None:
            return _no_session()
        if page.first != number or not page.events:
            return _missing(f"the session has no event {number} any more")
        return JSONResponse(page.events[0])

    def _list_steps(self, request: Request) -> Response:
        digest = self._digest(request)
        if digest is None:
            return _no_session()
        if self._steps is None or digest.source != "archive":
            return JSONResponse({"steps": [], "archived": False})
        return JSONResponse({"steps": self._steps.listed(digest.key), "archived": True})

    def _step(self, request: Request) -> Response:
        return self._of_step(
            request, lambda steps, key, step, model: steps.compared(key, step, model).to_json()
        )

    def _summary(self, request: Request) -> Response:
        return self._of_step(
            request, lambda steps, key, step, model: {"summaries": steps.summaries(key, step, model)}
        )

    def _message(self, request: Request) -> Response:
        side, place = request.path_params["side"], request.path_params["place"]
        if side not in ("before", "after"):
            return _missing("a message stands before or after a step")
        return self._of_step(
            request, lambda steps, key, step, model: steps.message(key, step, model, side, place)
        )

    def _file(self, request: Request) -> Response:
        digest = self._digest(request)
        if digest is None or self._steps is None or digest.source != "archive":
            return _no_session()
        return JSONResponse(self._steps.file(digest.key, request.query_params.get("path", "")))

    def _digest(self, request: Request) -> Digest | None:
        """The session of a request. Only keys that the archive itself listed lead anywhere."""
        return self.sessions.digest(request.path_params["key"])

    def _of_step(
        self, request: Request, answer: Callable[[Steps, str, int, str | None], Mapping[str, Any]]
    ) -> Response:
        digest = self._digest(request)
        if digest is None or self._steps is None or digest.source != "archive":
            return _no_session()
        return JSONResponse(answer(self._steps, digest.key, request.path_params["step"], digest.model))

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
        if self.streams.is_full():
            return JSONResponse({"error": "too many streams are open; close a page"}, 503)
        return StreamingResponse(self.streams.read(stream), media_type="text/event-stream")

    # --- Ariadne's endpoints

    async def _ingest(self, request: Request) -> Response:
        try:
            events = accepted(await request.body())
        except Refused as refused:
            details = [{"path": fault.path, "message": fault.message} for fault in refused.faults]
            return JSONResponse({"error": "Validation failed", "details": details}, 400)
        self.sessions.add_ingested(events)
        self.streams.arrived(events)
        return JSONResponse({"success": True, "count": len(events)})

    async def _health(self, _: Request) -> Response:
        return JSONResponse(
            {
                "status": "ok",
                "timestamp": timestamp(datetime.now(UTC)),
                "events": {
                    "count": self.sessions.ingested,
                    "capacity": MAX_INGESTED_EVENTS,
                    "dropped": self.sessions.dropped,
                },
            }
        )


def _page_files() -> dict[str, bytes]:
    """The files of the page by name: what is not in here cannot be asked for."""
    folder = files("compact.tools.viewer") / "page"
    return {
        item.name: item.read_bytes() for item in folder.iterdir() if item.name.rpartition(".")[2] in _TYPES
    }


def _whole_number(text: str) -> int:
    return min(int(text), 1 << 53) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _no_session() -> Response:
    return _missing("there is no such session, or it has no archive")


def _missing(why: str) -> Response:
    return JSONResponse({"error": why}, 404)


def _archive_problem(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "reason": getattr(error, "details", {}).get("reason")}, 404)


def _too_large(_: Request, __: Exception) -> Response:
    return Response(
        json.dumps({"error": f"a body may have {MAX_BODY_BYTES:,} bytes"}),
        413,
        {"connection": "close"},
        "application/json",
    )
