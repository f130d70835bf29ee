"""Real archives for the viewer's tests, and a server on a free port."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from compact import CompactConfig, CompactManager
from compact.archive import Archive, open_archive
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.tools.cli.demo import demo_session, relive
from compact.tools.viewer.serving import ViewerServer

WINDOW = 32_000
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
BREAKOUT = "</pre></textarea></script><svg/onload=window.hacked=1>"


def manager_on(root: Path, window: int = WINDOW, model: str = "gpt-4o", **settings: Any) -> CompactManager:
    """A manager whose archive lies in a folder."""
    archive = {"adapter": "fs", "root": str(root)}
    return CompactManager(CompactConfig(model=model, max_context_tokens=window, archive=archive, **settings))


def fill_with_demo(root: Path) -> None:
    """The demo's session, lived through call by call in a window that makes many steps necessary."""
    with manager_on(root) as manager:
        relive(manager, demo_session())


def fill_with_demo_by_hand(root: Path) -> None:
    """What `compact demo` does: one large preflight, then a manual compaction."""
    with manager_on(root, 128_000) as manager:
        session = replace(demo_session(), id="demo-by-hand")
        standing = manager.preflight(session.id, session.messages)
        manager.manual_compact(session.id, standing, "by hand")


def fill_with_hostile(root: Path) -> None:
    """A session whose every word tries to become markup: ids, roles' texts, tool names, arguments, outputs."""
    with manager_on(root) as manager:
        messages: list[Any] = []
        for n in range(40):
            call_id = f"call_{n}"
            function = {"name": f"read{n % 3}", "arguments": json.dumps({"path": f"{HOSTILE}{n}"})}
            messages += [
                {"role": "user", "content": f"{n} {HOSTILE} {BREAKOUT}"},
                {
                    "role": "assistant",
                    "content": f"{BREAKOUT} {n}",
                    "tool_calls": [{"id": call_id, "type": "function", "function": function}],
                },
                {"role": "tool", "tool_call_id": call_id, "content": f"{HOSTILE}\n{BREAKOUT} " * 12},
            ]
        manager.manual_compact(f"hostile {HOSTILE}", messages, note=HOSTILE)


def opened(root: Path) -> Archive:
    """An archive for reading."""
    recorder = Recorder(lambda: datetime.now(UTC), Ids("viewer tests"))
    return open_archive(Redactor(), recorder, adapter="fs", root=root)


@contextmanager
def serving(root: Path | None, **options: Any) -> Iterator[ViewerServer]:
    """A viewer on a free port, without a token unless one is given."""
    options.setdefault("port", 0)
    options.setdefault("is_open", "token" not in options)
    archive = None if root is None else opened(root)
    with ViewerServer(archive, **options) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    server: ViewerServer,
    path: str,
    body: Any = None,
    *,
    method: str | None = None,
    raw: bytes | None = None,
    **headers: Any,
) -> Answer:
    """One request, with any headers; `_` in a header's name stands for `-`."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        given.setdefault("content-type", "application/json")
    connection.putrequest(method or ("GET" if data is None else "POST"), path, skip_host="host" in given)
    for name, value in given.items():
        connection.putheader(name, value)
    if data is not None and "content-length" not in given and "transfer-encoding" not in given:
        connection.putheader("content-length", str(len(data)))
    connection.endheaders(data)
    try:
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def span(n: int, trace: str = "t1", **more: Any) -> dict[str, Any]:
    """A span that Ariadne would take."""
    return {
        "type": "span",
        "trace_id": trace,
        "span_id": f"{trace}-{n}",
        "name": "compact.token_estimate",
        "started_at": "2026-01-01T00:00:00.000000Z",
        "ended_at": "2026-01-01T00:00:00.250000Z",
        "data": {
            "session_id": f"live-{trace}",
            "step": 0,
            "model": "gpt-4o",
            "t_est": 1000 + n,
            "max_tokens": 8000,
        },
        **more,
    }
