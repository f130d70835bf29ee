"""The viewer: its page in a real browser with 10,000 events, and what watching an archive costs."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from bench import Figure, best_of
from compact.archive import LogWatcher, open_archive
from compact.errors import MissingExtra
from compact.events import Ids, Recorder, Started
from compact.redaction import Redactor
from compact.tools.viewer.serving import ViewerServer
from compact.tools.viewer.sessions import trace_key

_MANY, _FEW = 10_000, 200
_SCROLLED = """async () => {
  const box = document.getElementById("trace");
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  for (let n = 0; n < 120; n += 1) {
    const before = performance.now();
    box.scrollTop = (n * 2311) % (box.scrollHeight - box.clientHeight);
    await next();
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  return [times[60], times[118]];
}"""


def bench_page() -> Iterator[Figure]:
    """The page with 10,000 events: opening it, scrolling against 200 events, and one event more."""
    with _page() as (server, page):
        _send(server, "few", _FEW)
        _send(server, "many", _MANY)
        page.goto(f"{server.url}/#s={trace_key('few')}")
        _until(page, _FEW)
        few, _ = page.evaluate(_SCROLLED)
        started = time.perf_counter()
        page.goto(f"{server.url}/#s={trace_key('many')}")
        _until(page, _MANY)
        yield Figure("opened, until all events are there", (time.perf_counter() - started) * 1e3, "ms", 5_000)
        many, slowest = page.evaluate(_SCROLLED)
        yield Figure("a scrolled frame, median", many, "ms", 100)
        yield Figure("a scrolled frame, 99th percentile", slowest, "ms", 300)
        yield Figure("a scrolled frame, against 200 events", many / few, "x", 3)
        started = time.perf_counter()
        _send(server, "many", 1, _MANY)
        _until(page, _MANY + 1)
        yield Figure("one event more, until it is drawn", (time.perf_counter() - started) * 1e3, "ms", 1_000)


def bench_watching() -> Iterator[Figure]:
    """A look at an archive of 200 sessions in which nothing is new; the viewer looks again after a pause."""
    with tempfile.TemporaryDirectory() as root:
        recorder = Recorder(lambda: datetime.now(UTC), Ids("bench"))
        archive = open_archive(Redactor.disabled(), recorder, root=root)
        for n in range(200):
            name = f"session-{n}"
            event = recorder.event(Started(reason="manual", note="bench"), session_id=name, step=0)
            archive.append_events(name, [event])
        logs = LogWatcher(archive)
        logs.look()
        yield Figure("one look at 200 quiet sessions", best_of(5, logs.look) * 1e3, "ms", 75)


@contextmanager
def _page() -> Iterator[tuple[ViewerServer, Any]]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        path = None
    if path is None:
        raise MissingExtra("the page is measured in Chromium through playwright, and one of them is missing")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with ViewerServer(None, port=0) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield server, browser.new_page(viewport={"width": 1440, "height": 900})
        browser.close()


def _until(page: Any, count: int) -> None:
    shown = f"{count:,}"
    deadline = time.monotonic() + 60
    while page.evaluate("document.querySelector('.tile.spare dd')?.textContent") != shown:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the page does not show {shown} events")


def _send(server: ViewerServer, trace: str, count: int, first: int = 0) -> None:
    for start in range(first, first + count, 400):
        stop = min(start + 400, first + count)
        batch = {"batch": [_span(trace, n) for n in range(start, stop)]}
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
        connection.request("POST", "/ingest", json.dumps(batch), {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()


def _span(trace: str, n: int) -> dict[str, Any]:
    return {
        "type": "span",
        "trace_id": trace,
        "span_id": f"{trace}-{n}",
        "name": "compact.token_estimate",
        "started_at": f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.000000Z",
        "ended_at": f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.010000Z",
        "data": {
            "session_id": trace,
            "model": "gpt-4o",
            "t_est": 1000 + n,
            "max_tokens": 128_000,
            "usage_pct": 0.1,
        },
    }
