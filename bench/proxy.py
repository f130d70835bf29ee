"""`compact proxy` against a bare pass-through with the same server and client library, and its memory after many requests.

The provider, the proxy and the bare pass-through are processes of their own. `python -m bench.proxy --requests 10000`
measures memory with as many requests as it says; `python -m bench proxy` uses fewer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import uvicorn

from bench import Figure, whole_number

_PARTS = 100
_LINES = 62
"""So many parts with so many lines are 100,000 tokens."""
_ONE, _MANY = 30, 32
_ROUNDS = 4
_REQUESTS = 3_000
_SESSIONS, _TURNS = 50, 20
_STREAM = [
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":100000}}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Yes"}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
_DROPPED = (b"host", b"content-length", b"transfer-encoding", b"connection")


def bench_first_byte() -> Iterator[Figure]:
    """First byte of a streamed answer, 100,000-token bodies seen but for the last message, against a bare pass-through."""
    with (
        _serving("provider") as (provider, _),
        _serving("bare", provider) as (bare, _),
        _serving("proxy", provider) as (proxy, _),
    ):
        one, many = asyncio.run(_measure(bare, proxy))
    bare_ms, proxy_ms = (median(times) for times in one)
    yield Figure(
        f"one stream, median: {proxy_ms:.1f} ms, bare {bare_ms:.1f} ms", proxy_ms / bare_ms, "x", 1.5
    )
    bare_ms, proxy_ms = (_late(times) for times in many)
    text = f"{_MANY} streams, 99th percentile: {proxy_ms:.1f} ms, bare {bare_ms:.1f} ms"
    yield Figure(text, proxy_ms / bare_ms, "x", 2)


def bench_memory(requests: int = _REQUESTS) -> Figure:
    """Memory of the proxy after all requests of 50 sessions, compared with the first 1,000 of them."""
    with _serving("provider") as (provider, _), _serving("proxy", provider) as (proxy, process):
        first, last = asyncio.run(_fill(proxy, process, requests))
    return Figure(f"memory after {requests:,} requests, against the first 1,000", last / first, "x", 1.05)


async def _measure(
    bare: str, proxy: str
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    """First bytes in milliseconds: one stream bare and through the proxy, then many."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        talks = [_talk(n) for n in range(_MANY)]
        for number, talk in enumerate(talks):  # all are seen once
            for url in (bare, proxy):
                await _first_byte(client, url, number, talk)
        one: tuple[list[float], list[float]] = ([], [])
        for _ in range(_ONE):
            _grow(talks[0])
            for times, url in zip(one, (bare, proxy), strict=True):
                times.append(await _first_byte(client, url, 0, talks[0]))
        many: tuple[list[float], list[float]] = ([], [])
        for _ in range(_ROUNDS):
            for talk in talks:
                _grow(talk)
            for times, url in zip(many, (bare, proxy), strict=True):
                jobs = (_first_byte(client, url, n, talk) for n, talk in enumerate(talks))
                times.extend(await asyncio.gather(*jobs))
    return one, many


async def _fill(url: str, process: int, requests: int) -> tuple[int, int]:
    """The proxy's memory after 1,000 requests, and after all. Each session grows for 20 turns and begins again."""
    first = 0
    async with httpx.AsyncClient(timeout=120) as client:
        for number in range(requests):
            turn, session = divmod(number, _SESSIONS)
            talk = _talk(session, parts=2 * (turn % _TURNS) + 1, lines=8)
            await _first_byte(client, url, session, talk)
            if number + 1 == _SESSIONS * _TURNS:
                first = _resident(process)
    return first, _resident(process)


async def _first_byte(client: httpx.AsyncClient, url: str, session: int, talk: list[Any]) -> float:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "stream": True,
        "tools": [{"name": "read"}],
        "messages": talk,
    }
    content = json.dumps(body).encode()
    headers = {"x-api-key": "none", "anthropic-version": "1", "x-claude-code-session-id": f"bench-{session}"}
    started = time.perf_counter()
    async with client.stream("POST", f"{url}/v1/messages", content=content, headers=headers) as reply:
        pieces = reply.aiter_raw()
        await anext(pieces)
        spent = (time.perf_counter() - started) * 1e3
        async for _ in pieces:
            pass
    return spent


def _talk(session: int, parts: int = _PARTS, lines: int = _LINES) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": f"Task {session}: find the bug."}]
    for n in range(parts):
        text = "\n".join(f"value_{n}_{line} = load(part_{n}, {line})" for line in range(lines))
        found += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": text}]},
        ]
    return found


def _grow(talk: list[Any]) -> None:
    talk += [
        {"role": "assistant", "content": "It is fine."},
        {"role": "user", "content": f"Go on, {len(talk)}."},
    ]


def _late(times: list[float]) -> float:
    return sorted(times)[round(0.99 * (len(times) - 1))]


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1])


# --- the processes


@contextmanager
def _serving(what: str, provider: str = "") -> Iterator[tuple[str, int]]:
    """Run one of the three in a process of its own; give its address and its process id."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "bench.proxy", "--serve", what, "--provider", provider]
        if what == "proxy":
            command = [sys.executable, "-m", "compact", "proxy", "--port", "0", "--no-viewer"]
            command += ["--anthropic", provider, "--archive", root]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().split()[-1], process.pid
            finally:
                process.terminate()


async def _answer(_: Any, receive: Any, send: Any) -> None:
    """The provider: a stream of three events."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for event in _STREAM:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


class _Bare:
    """Reads a request, sends it on, and passes the answer on: nothing else."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._client = httpx.AsyncClient(timeout=120)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pieces, more = [], True
        while more:
            message = await receive()
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        headers = [pair for pair in scope["headers"] if pair[0] not in _DROPPED]
        request = httpx.Request(
            "POST", self._provider + scope["path"], headers=headers, content=b"".join(pieces)
        )
        response = await self._client.send(request, stream=True)
        sent = [pair for pair in response.headers.raw if pair[0].lower() not in _DROPPED]
        await send({"type": "http.response.start", "status": response.status_code, "headers": sent})
        async for piece in _raw(response):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_raw():
        yield piece
    await response.aclose()


def _serve(what: str, provider: str) -> None:
    """Serve the provider or the bare pass-through, and print its address."""
    settings: dict[str, Any] = {
        "port": 0,
        "http": "h11",
        "ws": "none",
        "lifespan": "off",
        "log_level": "error",
    }
    config = uvicorn.Config(_answer if what == "provider" else _Bare(provider), access_log=False, **settings)
    listener = config.bind_socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as servers on the network do
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=("provider", "bare"))
    parser.add_argument("--provider", default="")
    parser.add_argument("--requests", type=whole_number(1), default=10_000)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve, options.provider)
    else:
        print(bench_memory(options.requests))
