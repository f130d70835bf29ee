"""What other proxies do wrong, each as a test that it does not happen here."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.proxying import KEY, TOOLS, body_of, long_talk, proxying
from support.wire import Wire, WireRequest, wired

from compact import CompactManager
from compact.engine.effects import Store
from compact.integrations.proxy import ProxyServer
from compact.tools.standins import Reply, Rules, prefix_breaks, serving

WINDOW = 12_000
SESSION = {**KEY, "x-compact-session": "s"}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers=SESSION, timeout=60) as found:
        yield found


def grow(
    client: httpx.Client, proxy: ProxyServer, talk: list[Any], step: int = 4, **more: Any
) -> list[httpx.Response]:
    """Send a conversation as a client does: all of it, every time, a little more of it each time."""
    counts = range(1, len(talk) + 1, step)
    return [client.post(f"{proxy.url}/v1/messages", content=body_of(talk[:n], **more)) for n in counts]


def test_old_turns_are_not_rewritten_on_every_request(client: httpx.Client, tmp_path: Path) -> None:
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        grow(client, proxy, long_talk(36))
        steps = len(proxy.manager.archive.steps("s"))
    assert provider.refused == []
    assert 1 <= steps <= 9, "not every request makes one"
    assert prefix_breaks(provider.accepted) == steps


def test_a_stream_stays_a_stream_and_no_tool_is_injected(client: httpx.Client, tmp_path: Path) -> None:
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        replies = grow(client, proxy, long_talk(24), stream=True)
        assert proxy.app.metrics.value("edited") > 0
    assert {reply.headers["content-type"] for reply in replies} == {"text/event-stream"}
    assert all(request.body["stream"] is True for request in provider.requests)
    assert all(request.body["tools"] == TOOLS for request in provider.requests)


def test_a_pointer_is_only_shown_where_its_reader_is_connected(client: httpx.Client, tmp_path: Path) -> None:
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        grow(client, proxy, long_talk(36))
    sent = json.dumps([list(request.messages) for request in provider.requests])
    assert "[compact: " in sent
    assert "read_file" not in sent
    assert "/tool_outputs/" not in sent
    assert "/conversation_history/" not in sent


def test_the_store_does_not_die_with_a_restart(client: httpx.Client, tmp_path: Path) -> None:
    talk = long_talk(30)
    with serving(["Yes."], window=WINDOW) as provider:
        for first in (1, 61, 101):
            with proxying(provider.url, tmp_path, WINDOW) as proxy:
                for count in range(first, first + 20, 4):
                    client.post(f"{proxy.url}/v1/messages", content=body_of(talk[:count]))
                steps = len(proxy.manager.archive.steps("s"))
    assert provider.refused == []
    assert steps >= 1
    assert max(request.tokens for request in provider.accepted) <= WINDOW


def test_unknown_blocks_and_fields_go_out_as_their_bytes(client: httpx.Client, tmp_path: Path) -> None:
    odd = '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":1.0e2},"new":[1.10]}'
    call = json.loads(odd)
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"encrypted_content": "aa=="}],
    }
    talk = [
        *long_talk(18),
        {"role": "assistant", "content": [call, found, {"type": "text", "text": "I searched."}]},
        {"role": "user", "content": "Go on."},
    ]
    text = body_of(talk).decode().replace(json.dumps(call, indent=1).replace("\n", "\n    "), odd)
    assert odd in text.replace("100.0", "1.0e2").replace("1.1\n", "1.10\n") or "srv_1" in text

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(b"{}", content_type="application/json")

    with wired(handle) as upstream, proxying(upstream.url, tmp_path, WINDOW) as proxy:
        client.post(f"{proxy.url}/v1/messages", content=text)
        assert proxy.app.metrics.value("edited") == 1
    last = text[text.index("server_tool_use") - 30 : text.rindex("}\n ]")]
    tail = last[last.index('"type"') :]
    assert tail[: tail.index("I searched")] in upstream.requests[0].body.decode()


def test_work_that_takes_too_long_does_not_hold_up_a_request_that_fits(
    client: httpx.Client, tmp_path: Path
) -> None:
    """The archive hangs. The request goes out as it is, and the pass goes on behind it."""
    free = threading.Event()
    talk = long_talk(12)
    early = {"trigger_pct": 0.5, "target_pct": 0.4}
    with (
        serving(["Yes."], window=WINDOW) as provider,
        proxying(provider.url, tmp_path, WINDOW, proxy={"deadline_ms": 20}, policy=early) as proxy,
    ):
        hang_on(proxy.manager, free)
        try:
            reply = client.post(f"{proxy.url}/v1/messages", content=body_of(talk))
        finally:
            free.set()
        assert reply.status_code == 200
        assert list(provider.requests[0].messages) == talk
        assert proxy.app.metrics.value("fallbacks", reason="deadline") == 1


def hang_on(manager: CompactManager, free: threading.Event) -> None:
    """Let the archive hang until it is free."""
    serve = manager.services.serve

    def hanging(run: Any, effect: Any) -> Any:
        free.wait(60)
        return serve(run, effect)

    manager.services.serve = hanging  # type: ignore[method-assign]


def test_a_failure_of_ours_lets_the_request_out_as_it_came(client: httpx.Client, tmp_path: Path) -> None:
    talk = long_talk(20)

    with serving(["Yes."], window=WINDOW * 4) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:

        def fail(run: Any, effect: Any) -> Any:
            raise RuntimeError("a bug")

        proxy.manager.services.serve = fail  # type: ignore[method-assign]
        reply = client.post(f"{proxy.url}/v1/messages", content=body_of(talk))
        assert proxy.app.metrics.value("fallbacks", reason="RuntimeError") == 1
    assert reply.status_code == 200
    assert list(provider.requests[0].messages) == talk


def test_a_failure_behind_a_step_still_sends_what_the_step_left(client: httpx.Client, tmp_path: Path) -> None:
    talk = long_talk(30)
    with serving(["Yes."], window=WINDOW * 4) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        client.post(f"{proxy.url}/v1/messages", content=body_of(talk[:77]))
        assert len(proxy.manager.archive.steps("s")) == 1
        serve = proxy.manager.services.serve

        def fail(run: Any, effect: Any) -> Any:
            if isinstance(effect, Store):
                return serve(run, effect)
            raise RuntimeError("a bug")

        proxy.manager.services.serve = fail  # type: ignore[method-assign]
        client.post(f"{proxy.url}/v1/messages", content=body_of(talk))
        assert proxy.app.metrics.value("fallbacks", reason="RuntimeError") == 1
    before, after = (list(request.messages) for request in provider.requests)
    assert after == [*before, *talk[77:]]


def test_tools_are_never_touched(client: httpx.Client, tmp_path: Path) -> None:
    tools = [*TOOLS, {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        grow(client, proxy, long_talk(24), tools=tools)
        assert proxy.app.metrics.value("edited") > 0
    assert all(request.body["tools"] == tools for request in provider.requests)
    ids = {block["id"] for request in provider.requests for m in request.messages for block in blocks_of(m)}
    assert ids <= {f"toolu_{n:04}" for n in range(24)}


def blocks_of(message: Any) -> list[Any]:
    content = message["content"]
    return [block for block in content if block["type"] == "tool_use"] if isinstance(content, list) else []


def test_two_conversations_never_collide_in_one_session(client: httpx.Client, tmp_path: Path) -> None:
    """Both have the same client id and outgrow the window. What one says never stands in the other."""
    main = [{"role": "user", "content": "MAIN task"}, *long_talk(20, asks="MAIN goes on.")[1:]]
    helper = [{"role": "user", "content": "HELPER task"}, *long_talk(20, asks="HELPER goes on.")[1:]]
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        for count in range(1, 81, 8):
            for talk in (main, helper):
                assert (
                    client.post(f"{proxy.url}/v1/messages", content=body_of(talk[:count])).status_code == 200
                )
        assert sorted(proxy.manager.archive.sessions()) == ["s", "s.2"]
    for request in provider.accepted:
        text = json.dumps(list(request.messages))
        assert ("MAIN" in text) != ("HELPER" in text)


def test_opaque_items_round_trip(client: httpx.Client, tmp_path: Path) -> None:
    secret = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA+/=="}
    folded = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBBB+/=="}
    items: list[Any] = [folded, {"role": "user", "content": "Find the bug."}]
    for n in range(18):
        text = "\n".join(f"value_{n}_{line} = load(part_{n}, {line})" for line in range(60))
        items += [
            {"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{n}", "output": text},
        ]
    items += [
        {"role": "user", "content": "Go on."},
        secret,
        {"type": "message", "role": "assistant", "content": "Ok."},
    ]
    items.append({"role": "user", "content": "And then?"})

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(b"{}", content_type="application/json")

    with wired(handle) as upstream, proxying(upstream.url, tmp_path, WINDOW) as proxy:
        body = {
            "model": "gpt-5",
            "input": items,
            "tools": [{"type": "function", "name": "read", "parameters": {}}],
        }
        client.post(f"{proxy.url}/v1/responses", content=json.dumps(body))
        assert proxy.app.metrics.value("edited") == 1
    sent = json.loads(upstream.requests[0].body)["input"]
    assert len(json.dumps(sent)) < len(json.dumps(items))
    assert secret in sent
    assert folded in sent


def test_a_truncated_gzip_is_passed_on_as_it_is_and_fails_nothing(client: httpx.Client) -> None:
    packed = gzip.compress(b'{"usage":{"input_tokens":5}}')[:-9]

    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(packed, content_type="application/json", content_encoding="gzip")

    with wired(handle) as upstream, proxying(upstream.url) as proxy:
        with client.stream("POST", f"{proxy.url}/v1/messages", content=body_of(long_talk(1))) as reply:
            assert b"".join(reply.iter_raw()) == packed
        assert client.get(f"{proxy.url}/healthz").status_code == 200


def test_cache_marks_never_exceed_four_in_an_edited_request(client: httpx.Client, tmp_path: Path) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "You code.", **mark}]
    talk = long_talk(24)
    with (
        serving(["Yes."], window=WINDOW, rules=Rules()) as provider,
        proxying(provider.url, tmp_path, WINDOW) as proxy,
    ):
        for count in range(1, len(talk) + 1, 4):
            marked = json.loads(json.dumps(talk[:count]))
            for message in [m for m in marked if isinstance(m["content"], str)][-3:]:
                message["content"] = [{"type": "text", "text": message["content"], **mark}]
            client.post(f"{proxy.url}/v1/messages", content=body_of(marked, system=system))
        assert proxy.app.metrics.value("edited") > 0
    assert provider.refused == []


def test_usage_is_reported_as_the_provider_did(client: httpx.Client, tmp_path: Path) -> None:
    """The client's own meter sees what was really sent."""
    script = [Reply("Yes.", cached_tokens=77)]
    with serving(script, window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        replies = grow(client, proxy, long_talk(24))
    for reply, request in zip(replies, provider.accepted, strict=True):
        usage = reply.json()["usage"]
        assert usage["cache_read_input_tokens"] == 77
        assert usage["input_tokens"] + 77 == request.tokens
