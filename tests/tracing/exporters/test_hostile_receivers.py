"""Receivers of events that redirect, flood, or are not the host that a key belongs to."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr
from support.exporters import event_maker

from bench.attack.endpoints import serving
from compact.errors import ConfigError
from compact.events import Started
from compact.redaction.destinations import Origin, is_loopback
from compact.tracing.exporters import Unavailable
from compact.tracing.exporters.ariadne import AriadneExporter
from compact.tracing.exporters.otlp import OtlpExporter

make = event_maker(lambda: datetime(2026, 1, 1, tzinfo=UTC))
EVENT = make(Started(reason="manual", note=None)).to_json()


def answer(status: str, body: bytes = b"", *headers: str) -> Any:
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}", "Connection: close"))
    return lambda connection: connection.sendall(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if "OTLP" in name or "proxy" in name.lower():
            monkeypatch.delenv(name)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["otlp", "ariadne"])
def test_events_follow_no_redirect(status: int, kind: str) -> None:
    with serving(answer("200 OK")) as elsewhere:
        redirect = answer(f"{status} Moved", b"", f"Location: http://127.0.0.1:{elsewhere.port}/v1/traces")
        with serving(redirect) as receiver:
            url = f"http://127.0.0.1:{receiver.port}"
            exporter = OtlpExporter(url) if kind == "otlp" else AriadneExporter(url)
            with pytest.raises(Unavailable):
                exporter.export([EVENT])
            exporter.close()
            assert receiver.seen
        assert elsewhere.seen == []


def test_an_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    with serving(answer("200 OK", bomb, "Content-Encoding: gzip")) as receiver:
        exporter = OtlpExporter(f"http://127.0.0.1:{receiver.port}")
        exporter.export([EVENT])
        tracemalloc.start()
        try:
            assert exporter.export([EVENT]).taken == 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 5_000_000


def test_headers_of_the_environment_go_to_its_own_endpoint_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20mine,x-team=ours")
    with serving(answer("200 OK")) as receiver:
        url = f"http://127.0.0.1:{receiver.port}"
        OtlpExporter(url).export([EVENT])
        assert b"Bearer mine" in receiver.seen[0][1], "there is no other host that they could belong to"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        OtlpExporter(f"{url}/v1/traces").export([EVENT])
        OtlpExporter().export([EVENT])
        assert all(b"Bearer mine" in head for _, head in receiver.seen)
        receiver.seen.clear()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example")
        OtlpExporter(url).export([EVENT])
        assert receiver.seen
        assert not any(b"mine" in head or b"ours" in head for _, head in receiver.seen)


@pytest.mark.parametrize("url", ["http://viewer.example", "http://10.0.0.5:5175", "http://localhost.example"])
def test_a_token_is_not_sent_in_clear(url: str) -> None:
    with pytest.raises(ConfigError, match=r"tracing\.ariadne_token would go to .* unencrypted"):
        AriadneExporter(url, token=SecretStr("secret"))
    AriadneExporter(url)
    AriadneExporter(url.replace("http:", "https:"), token=SecretStr("secret"))
    AriadneExporter(None, token=SecretStr("secret"))


@pytest.mark.parametrize(
    ("host", "is_this_machine"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost.example", False),
        ("xlocalhost", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("127.1", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, is_this_machine: bool) -> None:
    assert is_loopback(host) is is_this_machine


def test_origins() -> None:
    assert Origin.of("https://API.Example./v1") == ("https", "api.example", 443)
    assert Origin.of("http://name:word@host:8080/x") == ("http", "host", 8080)
    assert Origin.of("https://api.openai.com@evil.example/") == ("https", "evil.example", 443)
    for nonsense in ("", "ftp://host", "https://", "https://host:port", "https://[::1", "host"):
        assert Origin.of(nonsense) is None
