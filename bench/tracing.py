"""What tracing costs an agent: each preflight with exporters in every kind of trouble, and a whole long run."""

from __future__ import annotations

import io
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from bench import Figure
from bench.engine import conversation
from compact import CompactConfig, CompactManager
from compact.testing import CapturingExporter

_BLOCKS, _ROUNDS = 5, 150
"""The median of several blocks counts, because on a shared machine a single 99th percentile says more about other programs."""
_THINKING_S = 0.004
"""The pause between two preflights. An agent's model takes far longer."""
_TURNS, _MODEL_S, _WINDOW = 1_000, 0.02, 100_000

_SERVER = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
status, delay = int(sys.argv[1]), float(sys.argv[2])
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(delay)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def bench_preflight_with_an_exporter() -> Iterator[Figure]:
    """What Ariadne adds to the 99th percentile of a preflight, against no exporter, in turn with it."""
    for label, status, delay in (
        ("up", 200, 0.0),
        ("slow, 10 s for each request", 200, 10.0),
        ("erroring", 500, 0.0),
    ):
        with _server(status, delay) as url:
            yield Figure(f"ms added while it is {label}", _added_ms(url), "ms", 1.0)
    yield Figure("ms added while it is down", _added_ms(_nobody()), "ms", 1.0)


def bench_whole_run() -> Iterator[Figure]:
    """All of compact's time in a run of 1,000 turns, 5 compactions and a model that takes 20 ms, exporters on."""
    with _server(200, 0.0) as url, tempfile.TemporaryDirectory() as root:
        made = CompactManager(
            CompactConfig(
                model="gpt-4o",
                max_context_tokens=_WINDOW,
                archive={"adapter": "fs", "root": root},
                tracing={"exporters": ["ariadne"], "ariadne_url": url},
            ),
            exporters=[CapturingExporter()],
        )
        share, rounds = _run(made)
        made.close()
        events = made.get_compaction_stats()["exporters"]["ariadne"]
    yield Figure(
        f"% of the wall ({rounds} compactions, {events['delivered']:,} events)", share * 100, "%", 10
    )
    yield Figure("compactions", rounds, "x", 5, at_least=True)
    yield Figure("events that did not arrive", events["dropped"] + events["waiting"], "x", 0)


def bench_visible() -> Figure:
    """How long it takes until an event of a running session has arrived at Ariadne, at the 99th percentile."""
    with _server(200, 0.0) as url:
        made = _manager(tracing={"exporters": ["ariadne"], "ariadne_url": url})
        found = []
        arrived = 0
        for _ in range(_ROUNDS):
            time.sleep(_THINKING_S)
            made.preflight("s", [{"role": "user", "content": "hi"}])
            began = time.perf_counter()
            while (now := made.get_compaction_stats()["exporters"]["ariadne"]["delivered"]) == arrived:
                time.sleep(0.0005)
            found.append(time.perf_counter() - began)
            arrived = now
        made.close()
    return Figure("ms until an event is visible", sorted(found)[int(_ROUNDS * 0.99)] * 1000, "ms", 200)


def _added_ms(url: str) -> float:
    session = conversation(1_000)
    tracing = {"exporters": ["ariadne"], "ariadne_url": url, "flush_timeout_s": 0.1}
    with redirect_stderr(io.StringIO()):
        managers = [_manager(), _manager(tracing=tracing)]
        for made in managers:
            made.preflight("s", session)
        blocks = [_one_block(managers, session) for _ in range(_BLOCKS)]
        for made in managers:
            made.close()
    return statistics.median(beside - without for without, beside in blocks) * 1000


def _one_block(managers: list[CompactManager], session: list[Any]) -> list[float]:
    """The 99th percentile of each manager's preflights, in seconds."""
    times: list[list[float]] = [[] for _ in managers]
    for _ in range(_ROUNDS):
        for made, found in zip(managers, times, strict=True):
            time.sleep(_THINKING_S)
            began = time.perf_counter()
            made.preflight("s", session)
            found.append(time.perf_counter() - began)
    return [sorted(found)[int(_ROUNDS * 0.99)] for found in times]


def _run(made: CompactManager) -> tuple[float, int]:
    """The share of the time that compact took, and the number of compactions."""
    items = conversation(2 * _TURNS)
    context: list[Any] = []
    ours, rounds = 0.0, 0
    began = time.perf_counter()
    for turn in range(_TURNS):
        context = [*context, items[2 * turn]]
        entered = time.perf_counter()
        sent = made.preflight("run", context)
        ours += time.perf_counter() - entered
        rounds += sent is not context
        time.sleep(_MODEL_S)
        context = [*sent, items[2 * turn + 1]]
    return ours / (time.perf_counter() - began), rounds


def _manager(**settings: Any) -> CompactManager:
    config = CompactConfig(max_context_tokens=1_000_000, archive={"adapter": "memory"}, **settings)
    return CompactManager(config)


@contextmanager
def _server(status: int, delay_s: float) -> Iterator[str]:
    """A server in a separate process, like Ariadne."""
    command = [sys.executable, "-c", _SERVER, str(status), str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield f"http://127.0.0.1:{int(running.stdout.readline())}"
        finally:
            running.kill()


def _nobody() -> str:
    """An address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
