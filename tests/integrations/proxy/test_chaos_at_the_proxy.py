"""Providers that fail, and proxies that are killed: no status of ours, no lost message, and the session goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.proxying import KEY, body_of, long_talk, proxying
from support.wire import Wire, WireRequest, wired

import compact
from compact.tools.standins import prefix_breaks, serving

WINDOW = 12_000
SESSION = {**KEY, "x-compact-session": "s"}


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_providers_failure_is_the_clients_to_repeat(status: int) -> None:
    """It repeats after Retry-After itself. A proxy that repeats too would multiply the requests."""
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(body, status=f"{status} No", content_type="application/json", retry_after="7")

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        reply = httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(2)), headers=SESSION)
    assert (reply.status_code, reply.content, reply.headers["retry-after"]) == (status, body, "7")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(streamed: bool) -> None:
    def handle(wire: Wire, _: WireRequest) -> None:
        wire.begin_chunks("text/event-stream" if streamed else "application/json")
        wire.chunk(b'data: {"type":"content_block_delta","delta":{}}\n\n')
        wire.reset()

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=SESSION)
        assert proxy.app.metrics.value("upstream_failures") == 1
        assert httpx.get(f"{proxy.url}/healthz").status_code == 200


def test_a_provider_that_cannot_be_reached_is_no_status_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    with proxying(f"http://{address[0]}:{address[1]}") as proxy:
        for path in ("/v1/messages", "/v1/files"):
            with pytest.raises(httpx.TransportError):
                httpx.post(f"{proxy.url}{path}", content=body_of(long_talk(1)), headers=SESSION)
        assert proxy.app.metrics.value("upstream_failures", kind="ConnectError") == 2


def test_a_provider_that_says_nothing_is_given_up() -> None:
    def handle(wire: Wire, _: WireRequest) -> None:
        wire.wait_until_closed()

    with wired(handle) as upstream, proxying(upstream.url, proxy={"silence_timeout_s": 0.2}) as proxy:
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=SESSION, timeout=60)
        assert proxy.app.metrics.value("upstream_failures", kind="ReadTimeout") == 1


def test_a_refusal_inside_a_stream_behind_the_first_words_reaches_the_client() -> None:
    words = b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n'
    refusal = (
        b'data: {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}\n\n'
    )

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.begin_chunks()
        wire.chunk(words)
        wire.chunk(refusal)
        wire.end_chunks()

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        reply = httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(2)), headers=SESSION)
    assert reply.content == words + refusal
    assert len(upstream.requests) == 1


def test_if_nothing_smaller_is_taken_the_client_gets_the_providers_own_refusal(tmp_path: Path) -> None:
    said = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 5 maximum"}}'

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(said, status="400 Bad Request", content_type="application/json")

    with wired(handle) as upstream, proxying(upstream.url, tmp_path) as proxy:
        reply = httpx.post(
            f"{proxy.url}/v1/messages", content=body_of(long_talk(6)), headers=SESSION, timeout=60
        )
    assert (reply.status_code, reply.content) == (400, said)


def test_two_replicas_on_one_archive_continue_each_others_session(tmp_path: Path) -> None:
    talk = long_talk(36)
    with (
        serving(["Yes."], window=WINDOW) as provider,
        proxying(provider.url, tmp_path, WINDOW) as one,
        proxying(provider.url, tmp_path, WINDOW) as two,
    ):
        for turn, count in enumerate(range(1, len(talk) + 1, 4)):
            proxy = (one, two)[turn % 2]
            reply = httpx.post(
                f"{proxy.url}/v1/messages", content=body_of(talk[:count]), headers=SESSION, timeout=60
            )
            assert reply.status_code == 200
        steps = one.manager.archive.steps("s")
        assert one.manager.archive.sessions() == ["s"]
        assert len(steps) >= 1
    assert provider.refused == []
    assert prefix_breaks(provider.accepted) <= len(steps), "a step of one replica is applied by the other"


@contextmanager
def started(url: str, root: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and the address that it printed."""
    command = [sys.executable, "-m", "compact", "proxy", "--port", "0", "--archive", str(root)]
    command += ["--window", str(WINDOW), "--anthropic", url]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(compact.__file__).parents[1]),
        "COMPACT_PROXY__DEADLINE_MS": "60000",
    }
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root.parent
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("compact proxy: http://127.0.0.1:")
            yield line.split()[-1], process
        finally:
            process.kill()


def test_a_proxy_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    talk, root = long_talk(30), tmp_path / "archive"
    with serving(["Yes."], window=WINDOW) as provider:
        with started(provider.url, root) as (url, process):
            for count in range(1, 90, 4):
                httpx.post(f"{url}/v1/messages", content=body_of(talk[:count]), headers=SESSION, timeout=60)
            process.send_signal(signal.SIGKILL)
            process.wait()
        before = len(list(root.glob("s/state-*.json")))
        with started(provider.url, root) as (url, process):
            reply = httpx.post(f"{url}/v1/messages", content=body_of(talk[:93]), headers=SESSION, timeout=60)
            assert reply.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, 130)
    last, new = provider.accepted[-2:]
    assert provider.refused == []
    assert before >= 1
    assert list(new.messages)[: len(last.messages)] == list(last.messages), (
        "the same step stands, byte for byte"
    )
    assert json.dumps(talk[92]) in json.dumps(list(new.messages))
