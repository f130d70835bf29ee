"""Who is refused: foreign names, other pages, strangers without the token, bodies of the wrong kind or size."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.viewer import ask, manager_on, opened, serving, span
from support.waiting import until

from compact import CompactConfig, CompactManager
from compact.errors import CompactError, ConfigError, MissingExtra
from compact.events import Finished, Started
from compact.tools.cli.app import run
from compact.tools.viewer import hurrying
from compact.tools.viewer.addresses import check_address
from compact.tools.viewer.hurrying import HurriedProtocol
from compact.tools.viewer.serving import ViewerServer

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewerServer]:
    with serving(tmp_path_factory.mktemp("empty")) as made:
        yield made


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:5176",
        "127.0.0.1.evil.example",
        "",
        "10.0.0.1",
        "localhost.evil.example:80",
    ],
)
def test_a_name_that_is_not_this_machines_is_refused(open_server: ViewerServer, host: str) -> None:
    for path in ("/", "/api/sessions", "/events", "/healthz", "/page/main.js"):
        answer = ask(open_server, path, host=host)
        assert answer.status == 403
        assert b"not this machine" in answer.body
    assert ask(open_server, "/ingest", span(1), host=host).status == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:5176", "localhost:5176"])
def test_this_machines_own_names_are_served(open_server: ViewerServer, host: str) -> None:
    assert ask(open_server, "/healthz", host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
    ],
)
def test_a_request_that_another_page_makes_is_refused(
    open_server: ViewerServer, headers: dict[str, Any]
) -> None:
    assert ask(open_server, "/ingest", span(1), **headers).status == 403
    assert ask(open_server, "/api/sessions", **headers).status == 403


def test_the_pages_own_requests_and_a_link_to_it_are_served(open_server: ViewerServer) -> None:
    own: dict[str, Any] = {"origin": open_server.url, "sec_fetch_site": "same-origin"}
    assert ask(open_server, "/ingest", span(1), **own).status == 200
    assert ask(open_server, "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""],
)
def test_a_body_that_a_form_could_send_is_refused(open_server: ViewerServer, kind: str) -> None:
    answer = ask(open_server, "/ingest", raw=json.dumps(span(1)).encode(), content_type=kind)
    assert answer.status == 415


def test_a_charset_beside_the_content_type_is_fine(open_server: ViewerServer) -> None:
    assert ask(open_server, "/ingest", span(1), content_type="application/json; charset=utf-8").status == 200


def test_bodies_that_are_too_large_are_refused_whether_they_say_so_or_not(open_server: ViewerServer) -> None:
    large = json.dumps(span(1, data={"text": "x" * 300_000})).encode()
    assert ask(open_server, "/ingest", raw=large).status == 413
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces(large, 9_000)) + b"0\r\n\r\n"
    assert ask(open_server, "/ingest", raw=chunked, transfer_encoding="chunked").status == 413
    fits = json.dumps(span(1, data={"text": "x" * 250_000})).encode()
    assert ask(open_server, "/ingest", raw=fits).status == 200


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused_so_no_preflight_ever_succeeds(
    open_server: ViewerServer, method: str
) -> None:
    answer = ask(open_server, "/ingest", method=method)
    assert answer.status == 405
    assert "access-control-allow-origin" not in answer.headers


def test_ariadnes_answers(open_server: ViewerServer) -> None:
    assert ask(open_server, "/ingest", {"batch": [span(8), span(9)]}).json() == {"success": True, "count": 2}
    refused = ask(open_server, "/ingest", span(1, parent_id=None))
    assert refused.status == 400
    assert refused.json()["details"][0]["path"] == ["parent_id"]
    health = ask(open_server, "/healthz").json()
    assert health["status"] == "ok"
    assert health["timestamp"].endswith("Z")
    assert health["events"]["count"] >= 2


def test_every_answer_keeps_the_browser_strict(open_server: ViewerServer) -> None:
    for path in ("/", "/page/main.js", "/api/sessions", "/nothing", "/healthz"):
        headers = ask(open_server, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e/app.py",
        "/api/sessions/..%2f..%2fetc/events",
        "/api/sessions/%2e%2e/events",
        "/api/sessions/../../etc/passwd",
        "/api/sessions/nobody/steps/1",
        "/api/sessions/nobody/file?path=/etc/passwd",
    ],
)
def test_nothing_outside_of_page_and_archive_can_be_asked_for(open_server: ViewerServer, path: str) -> None:
    answer = ask(open_server, path)
    assert answer.status == 404
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/tool_outputs/../session.json", "/tool_outputs/..", "/session.json", ""]
)
def test_a_file_of_a_session_is_one_that_its_agent_can_read(server: ViewerServer, path: str) -> None:
    ask(server, "/api/sessions")
    answer = ask(server, f"/api/sessions/demo/file?path={path}")
    assert answer.status == 404
    assert "no file" in answer.json()["error"]


def test_an_address_that_others_can_reach_needs_a_good_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        ViewerServer(None, host="0.0.0.0", port=0)
    with pytest.raises(ConfigError, match="it needs 16 or more"):
        check_address("0.0.0.0", "short")
    check_address("0.0.0.0", TOKEN)
    check_address("::1", None)


def test_only_loopback_is_served_without_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["view", "--no-token", "--host", "0.0.0.0"]) == 2
    assert "--no-token is only for loopback addresses, and 0.0.0.0 can be reached" in capsys.readouterr().err


def test_with_a_token_nobody_else_gets_anything() -> None:
    with serving(None, host="0.0.0.0", token=TOKEN) as server:
        port = server.url.rpartition(":")[2]
        served: Any = server
        wrong = "compact_viewer=wrong"
        strangers: list[dict[str, Any]] = [
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": TOKEN},
            {"authorization": f" {TOKEN}"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": f"Bearer{TOKEN}"},
            {"cookie": wrong},
            {"cookie": "\x01=;"},
        ]
        for given in strangers:
            for path in ("/", "/api/sessions", "/healthz", "/?token=wrong"):
                assert ask(served, path, **given).status == 401
            assert ask(served, "/ingest", span(1), **given).status == 401
        assert ask(served, "/ingest", span(1), authorization=f"Bearer {TOKEN}").status == 200
        assert ask(served, "/api/sessions", authorization=f"bearer {TOKEN}").status == 200
        entered = ask(served, f"/?token={TOKEN}")
        assert (entered.status, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert (
            ask(served, "/api/sessions", cookie=cookie.partition(";")[0], host=f"box.example:{port}").status
            == 200
        )
        assert (
            ask(served, "/api/sessions", authorization=f"Bearer {TOKEN}", origin="http://evil.example").status
            == 403
        )


def test_a_port_that_is_taken_is_an_error_only_when_it_was_asked_for(open_server: ViewerServer) -> None:
    port = int(open_server.url.rpartition(":")[2])
    with pytest.raises(CompactError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
        ViewerServer(None, port=port)
    with serving(None, port=None) as one, serving(None, port=None) as other:
        assert one.url != other.url


def test_without_the_extra_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'compact-context\[viewer\]'"):
        ViewerServer(None, port=0)


def test_half_a_character_in_an_archive_is_served(tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        manager.manual_compact("s", [{"role": "user", "content": "hello"}], note="\ud800 x")
        manager.warn("s", "server_managed", "half \udfff of it")
    told = [event.properties for event in opened(tmp_path).events("s")]
    assert {fact.note for fact in told if isinstance(fact, Started | Finished)} == {"\ufffd x"}
    with serving(tmp_path) as server:
        until(lambda: bool(ask(server, "/api/sessions").json()["sessions"]))
        [row] = ask(server, "/api/sessions").json()["sessions"]
        answer = ask(server, f"/api/sessions/{row['key']}/events")
        assert answer.status == 200
        assert answer.body.isascii()
        warning = answer.json()["events"][-1]
        assert warning["properties"]["message"] == "half \udfff of it"
        assert ask(server, f"/api/sessions/{row['key']}/events/{warning['n']}").status == 200


def test_an_exporter_that_knows_the_token_is_let_in_and_another_waits(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with serving(None, token=TOKEN) as server:
        for token, left in ((None, "waiting"), ("another-of-some-length", "waiting"), (TOKEN, "delivered")):
            tracing = {"exporters": ["ariadne"], "ariadne_url": server.url, "ariadne_token": token}
            config = CompactConfig(model="gpt-4o", archive={"adapter": "memory"}, tracing=tracing)
            with CompactManager(config) as made:
                made.preflight("s", [{"role": "user", "content": "Hello."}])
            stats = made.get_compaction_stats()["exporters"]["ariadne"]
            assert (stats[left], stats["refused"]) == (2, 0)
            said = capsys.readouterr().err + caplog.text
            assert ("status 401" in said) is (left == "waiting")
            assert token is None or token not in said
        answer = ask(server, "/api/sessions", authorization=f"Bearer {TOKEN}")
        assert len(answer.json()["sessions"]) == 1


def test_without_options_every_client_needs_a_new_token(tmp_path: Path) -> None:
    with ViewerServer(opened(tmp_path), port=0) as first, ViewerServer(opened(tmp_path), port=0) as second:
        assert first.token != second.token
        assert ask(first, "/api/sessions").status == 401
        assert ask(first, "/api/sessions", authorization=f"Bearer {second.token}").status == 401
        assert ask(first, "/api/sessions", authorization=f"Bearer {first.token}").status == 200
        assert ask(first, first.opening_url.removeprefix(first.url)).status == 303


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n", b"{body}"], ids=repr
)
def test_a_request_that_does_not_arrive_whole_is_closed(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(hurrying, "REQUEST_S", 0.2)
    post = b"POST /ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
    with serving(None) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=20) as half:
            half.sendall(post if begun == b"{body}" else begun)
            with suppress(ConnectionError):
                assert half.recv(1) == b""
        assert ask(server, "/healthz").status == 200


def test_an_answer_that_nobody_reads_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with manager_on(tmp_path, 128_000) as manager:
        # Six bytes each in the answer, so that the buffers of both sides cannot take it.
        long = [{"role": "user", "content": "é" * 1_000_000}, {"role": "assistant", "content": "so"}]
        manager.manual_compact("long", [*long, {"role": "user", "content": "on"}])
    dropped = threading.Event()
    lost = HurriedProtocol.connection_lost

    def notice(self: HurriedProtocol, exc: Exception | None) -> None:
        lost(self, exc)
        dropped.set()

    monkeypatch.setattr(hurrying, "READING_S", 0.2)
    monkeypatch.setattr(HurriedProtocol, "connection_lost", notice)
    with serving(tmp_path) as server:
        until(lambda: b"long" in ask(server, "/api/sessions").body)
        dropped.clear()
        address = urlsplit(server.url)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.connect((address.hostname, address.port))
            slow.sendall(b"GET /api/sessions/long/steps/1/before/0 HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert dropped.wait(20)
