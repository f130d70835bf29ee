"""What passes through the proxy passes as it came: requests, answers, keys, headers, streams."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from pathlib import Path

import brotli
import httpx
import pytest
import zstandard
from support.proxying import KEY, body_of, long_talk, proxying
from support.wire import Wire, WireRequest, wired

from compact import CompactConfig, CompactManager, ConfigError
from compact.integrations.proxy import ProxyServer

ANSWER = b'{"id":"msg_1","type":"message",  "content":[],"usage":{"input_tokens":12,"output_tokens":1}}'
CODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def say(body: bytes = ANSWER, **headers: str) -> object:
    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(body, **{"content_type": "application/json", **headers})

    return handle


def test_a_request_goes_out_and_an_answer_comes_back_byte_for_byte() -> None:
    sent = body_of(long_talk(3), metadata={"n": 1.50e3, "u": "\u00e9"})
    with wired(say(request_id="req_7")) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        reply = httpx.post(f"{proxy.url}/v1/messages?beta=true", content=sent, headers=KEY)
    assert upstream.requests[0].body == sent
    assert upstream.requests[0].path == "/v1/messages?beta=true"
    assert reply.content == ANSWER
    assert reply.headers["request-id"] == "req_7"


def test_keys_and_headers_go_on_and_those_of_the_connection_and_of_compact_do_not() -> None:
    headers = {**KEY, "Anthropic-Beta": "a,b", "X-Compact-Session": "s", "TE": "trailers", "X-Own": "1"}
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=headers)
    (request,) = upstream.requests
    assert request.header("x-api-key") == KEY["x-api-key"]
    assert request.header("anthropic-beta") == "a,b"
    assert request.header("x-own") == "1"
    assert request.header("x-compact-session") is None
    assert request.header("te") is None
    assert request.header("host") == upstream.url.removeprefix("http://")


def test_no_key_stands_in_archive_metrics_or_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with wired(say()) as upstream, proxying(upstream.url, tmp_path) as proxy:  # type: ignore[arg-type]
        for turns in (1, 2):
            httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(turns)), headers=KEY)
        text = httpx.get(f"{proxy.url}/metrics").text
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"compact.token_estimate" in stored
    assert KEY["x-api-key"].encode() not in stored
    assert KEY["x-api-key"] not in text + caplog.text
    assert not [path for path in tmp_path.rglob("*") if KEY["x-api-key"] in path.name]


def test_a_stream_arrives_chunk_for_chunk_while_it_is_written() -> None:
    arrived = threading.Event()

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.begin_chunks()
        wire.chunk(b'event: message_start\ndata: {"type":"message_start"}\n\n')
        wire.chunk(b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n')
        assert arrived.wait(60), "the first chunks were held back until the answer had ended"
        wire.chunk(b'data: {"type":"message_stop"}\n\n')
        wire.end_chunks()

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        body = body_of(long_talk(1), stream=True)
        with httpx.stream("POST", f"{proxy.url}/v1/messages", content=body, headers=KEY) as reply:
            pieces = reply.iter_raw()
            assert b"message_start" in next(pieces)
            assert b"content_block_delta" in next(pieces)
            arrived.set()
            assert b"message_stop" in next(pieces)
    assert json.loads(upstream.requests[0].body)["stream"] is True


@pytest.mark.parametrize("coding", CODERS)
def test_compressed_bodies_pass_both_ways_and_their_usage_is_read(coding: str) -> None:
    sent = CODERS[coding](body_of(long_talk(1)))
    packed = CODERS[coding](ANSWER)
    with wired(say(packed, content_encoding=coding)) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        headers = {**KEY, "content-encoding": coding, "accept-encoding": coding}
        with httpx.stream("POST", f"{proxy.url}/v1/messages", content=sent, headers=headers) as reply:
            assert b"".join(reply.iter_raw()) == packed
    assert proxy.app.metrics.value("input_tokens", endpoint="messages") == 12
    assert upstream.requests[0].body == sent
    assert upstream.requests[0].header("content-encoding") == coding
    assert upstream.requests[0].header("accept-encoding") == coding


def test_a_body_that_nobody_understands_is_the_providers_to_refuse() -> None:
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        for body, coding in (
            (b"{", "identity"),
            (b"\xff\xfe", "identity"),
            (b"no gzip", "gzip"),
            (b"x", "odd"),
        ):
            headers = {**KEY, "content-encoding": coding}
            httpx.post(f"{proxy.url}/v1/messages", content=body, headers=headers)
    assert [request.body for request in upstream.requests] == [b"{", b"\xff\xfe", b"no gzip", b"x"]


def test_other_paths_and_methods_pass_through_to_the_provider_that_they_name() -> None:
    with wired(say(b"[1]")) as one, wired(say(b"[2]")) as two, wired(say(b"[3]")) as three:  # type: ignore[arg-type]
        urls = {"anthropic_url": one.url, "openai_url": two.url, "gemini_url": three.url}
        with proxying(one.url, proxy=urls) as proxy, httpx.Client(base_url=proxy.url) as client:
            found = [
                client.get("/v1/models", headers={"x-api-key": "k"}).json(),
                client.get("/v1/models").json(),
                client.get("/v1/models", headers={"x-goog-api-key": "k"}).json(),
                client.get("/v1beta/models").json(),
                client.get("/gemini/v1/models").json(),
                client.delete("/v1/files/f1", headers={"anthropic-version": "1"}).json(),
                client.post("/v1/files", content=iter([b"a" * 9, b"b"])).json(),
            ]
    assert found == [[1], [2], [3], [3], [3], [1], [2]]
    assert two.requests[-1].body == b"aaaaaaaaab"
    assert three.requests[-1].path == "/v1/models"


def test_a_history_that_the_provider_keeps_is_left_alone() -> None:
    body = json.dumps(
        {"model": "gpt-5", "previous_response_id": "r1", "input": [{"role": "user", "content": "x"}] * 3}
    )
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        httpx.post(f"{proxy.url}/v1/responses", content=body.encode())
        assert len(proxy.manager.sessions) == 0
    assert upstream.requests[0].body == body.encode()


def test_a_websocket_upgrade_is_told_to_use_http() -> None:
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        reply = httpx.get(f"{proxy.url}/v1/responses", headers=headers)
    assert reply.status_code == 426
    assert "HTTP" in reply.json()["error"]["message"]
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("path", "headers", "inside"),
    [
        ("/v1/messages", KEY, lambda said: said["error"]["type"] == "request_too_large"),
        ("/v1/chat/completions", {}, lambda said: said["error"]["code"] == "request_too_large"),
        ("/v1beta/models/m:generateContent", {}, lambda said: said["error"]["code"] == 413),
    ],
)
def test_a_body_over_the_limit_is_refused_in_the_providers_shape(
    path: str, headers: dict[str, str], inside: object
) -> None:
    with wired(say()) as upstream, proxying(upstream.url, proxy={"max_body_bytes": 1000}) as proxy:  # type: ignore[arg-type]
        plain = httpx.post(f"{proxy.url}{path}", content=b" " * 1001, headers=headers)
        chunked = httpx.post(f"{proxy.url}{path}", content=iter([b" " * 600] * 2), headers=headers)
        packed = {**headers, "content-encoding": "gzip"}
        bomb = httpx.post(f"{proxy.url}{path}", content=gzip.compress(b" " * 9999), headers=packed)
    assert [reply.status_code for reply in (plain, chunked, bomb)] == [413] * 3
    assert inside(plain.json())  # type: ignore[operator]
    assert upstream.requests == []


def test_headers_over_the_limit_are_refused() -> None:
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        reply = httpx.post(f"{proxy.url}/v1/messages", content=b"{}", headers={"x-long": "a" * 70_000})
    assert reply.status_code == 431
    assert upstream.requests == []


def test_a_token_is_asked_for_and_does_not_go_on() -> None:
    token = "a-token-that-nobody-guesses"
    with wired(say()) as upstream, proxying(upstream.url, proxy={"token": token}) as proxy:  # type: ignore[arg-type]
        without = httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=KEY)
        headers = {**KEY, "X-Compact-Token": token}
        with_it = httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=headers)
        closed = httpx.get(f"{proxy.url}/metrics")
        alive = httpx.get(f"{proxy.url}/healthz")
    assert [reply.status_code for reply in (without, with_it, closed, alive)] == [401, 200, 401, 200]
    assert len(upstream.requests) == 1
    assert upstream.requests[0].header("x-compact-token") is None


def test_an_address_of_other_machines_needs_a_token_and_a_certificate() -> None:
    settings = {"token": "a-token-that-nobody-guesses"}
    plain = CompactManager(CompactConfig(archive={"adapter": "memory"}))
    guarded = CompactManager(CompactConfig(archive={"adapter": "memory"}, proxy=settings))
    with plain, pytest.raises(ConfigError, match="no token"):
        ProxyServer(plain, host="0.0.0.0")
    with guarded, pytest.raises(ConfigError, match="in clear"):
        ProxyServer(guarded, host="0.0.0.0")


def test_health_and_metrics_are_the_proxys_own() -> None:
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        httpx.post(f"{proxy.url}/v1/messages", content=body_of(long_talk(1)), headers=KEY)
        assert httpx.get(f"{proxy.url}/healthz").json() == {"status": "ok"}
        text = httpx.get(f"{proxy.url}/metrics").text
    assert 'compact_proxy_requests_total{endpoint="messages",status="200"} 1\n' in text
    assert "compact_proxy_work_seconds_count 1\n" in text
    assert len(upstream.requests) == 1


def test_the_upstream_is_cancelled_when_the_client_goes_away() -> None:
    closed = threading.Event()

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.begin_chunks()
        wire.chunk(b'data: {"type":"content_block_delta","delta":{}}\n\n')
        wire.wait_until_closed()
        closed.set()

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        host, port = proxy.url.removeprefix("http://").split(":")
        body = body_of(long_talk(1), stream=True)
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert client.recv(100)
        assert closed.wait(60), "the provider goes on for nobody"


def test_a_slow_reader_slows_the_provider_down() -> None:
    """The proxy holds neither the answer in memory nor the provider's connection open without reading."""
    sent: list[int] = []
    stalled = threading.Event()

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.begin_chunks()
        piece = b'data: {"type":"content_block_delta","delta":{}}\n\n' * 2000
        wire.connection_timeout(1.0)
        try:
            for _turn in range(2000):
                wire.chunk(piece)
                sent.append(len(piece))
        except TimeoutError:
            stalled.set()

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        host, port = proxy.url.removeprefix("http://").split(":")
        body = body_of(long_talk(1), stream=True)
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert stalled.wait(60)
    assert sum(sent) < 50_000_000


def test_a_path_goes_on_with_its_escapes() -> None:
    with wired(say()) as upstream, proxying(upstream.url) as proxy:  # type: ignore[arg-type]
        httpx.get(f"{proxy.url}/v1/files/a%2Fb%20c?name=d%26e", headers=KEY)
    assert upstream.requests[0].path == "/v1/files/a%2Fb%20c?name=d%26e"
