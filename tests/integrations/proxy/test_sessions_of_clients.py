"""Which session a request belongs to, and what of it goes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.proxying import KEY, MODEL, body_of, long_talk, proxying
from support.wire import Wire, WireRequest, wired

from compact.archive.recall import recall_tools
from compact.integrations.proxy import ProxyServer
from compact.tools.standins import Reply, serving

WINDOW = 12_000


def post(proxy: ProxyServer, body: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{proxy.url}/v1/messages", content=body, headers={**KEY, **named}, timeout=60)


def sessions(proxy: ProxyServer) -> list[str]:
    proxy.manager.flush()
    return sorted(proxy.manager.archive.sessions())


@pytest.mark.parametrize(
    "header", ["X-Compact-Session", "X-Claude-Code-Session-Id", "session_id", "x-opencode-session"]
)
def test_the_clients_own_header_names_the_session(header: str) -> None:
    with serving(["Yes."]) as provider, proxying(provider.url) as proxy:
        post(proxy, body_of(long_talk(1)), **{header: "4f1c-99"})
        assert sessions(proxy) == ["4f1c-99"]


def test_without_a_header_the_head_of_the_list_names_it_and_marks_do_not_matter() -> None:
    talk = long_talk(3)
    marked: Any = json.loads(json.dumps(talk))
    marked[0]["content"] = [
        {"type": "text", "text": talk[0]["content"], "cache_control": {"type": "ephemeral"}}
    ]
    with serving(["Yes."]) as provider, proxying(provider.url) as proxy:
        for messages in (talk[:5], marked[:9], talk):
            post(proxy, body_of(messages))
        assert len(sessions(proxy)) == 1


def test_two_people_with_the_same_question_have_two_sessions() -> None:
    with serving(["Yes."]) as provider, proxying(provider.url) as proxy:
        post(proxy, body_of(long_talk(2)))
        post(proxy, body_of(long_talk(2)), x_api_key="sk-somebody-else")
        found = sessions(proxy)
    assert len(found) == 2
    assert not any("sk-" in name for name in found)


def test_subagents_of_one_client_are_sessions_of_their_own() -> None:
    main, helper = long_talk(3), long_talk(3, asks="Search on.")
    helper[0] = {"role": "user", "content": "Search the docs for the option."}
    with serving(["Yes."]) as provider, proxying(provider.url) as proxy:
        for count in (5, 9, 13):
            post(proxy, body_of(main[:count]), x_claude_code_session_id="abc")
            post(proxy, body_of(helper[:count], system="You search."), x_claude_code_session_id="abc")
        assert sessions(proxy) == ["abc", "abc.2"]


def test_quota_probes_and_requests_for_a_title_are_no_sessions() -> None:
    quota = json.dumps({"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]})
    title = {"model": MODEL, "max_tokens": 32, "system": "Write a title.", "messages": long_talk(0)}
    with serving(["Yes."]) as provider, proxying(provider.url) as proxy:
        for body in (quota, json.dumps(title)):
            assert post(proxy, body.encode(), x_claude_code_session_id="abc").status_code == 200
        assert sessions(proxy) == []
    assert [request.body["max_tokens"] for request in provider.requests] == [1, 32]


def grow(proxy: ProxyServer, talk: list[Any], first: int = 1, **headers: str) -> None:
    """Send a conversation as a client does: all of it, every time, a little more of it each time."""
    for count in range(first, len(talk) + 1, 4):
        assert post(proxy, body_of(talk[:count]), **headers).status_code == 200


def test_below_the_trigger_every_request_is_the_clients_own() -> None:
    talk = long_talk(6)
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, window=WINDOW) as proxy:
        grow(proxy, talk, x_compact_session="s")
        assert proxy.app.metrics.value("edited") == 0
    assert [list(request.messages) for request in provider.requests] == [talk[:n] for n in range(1, 26, 4)]


def test_an_edited_request_keeps_the_bytes_of_every_unchanged_message_and_field(tmp_path: Path) -> None:
    def handle(wire: Wire, _: WireRequest) -> None:
        wire.answer(b"{}", content_type="application/json")

    talk = long_talk(18)
    talk[-1] = {"role": "user", "content": "Go on \u00fc", "x-unknown": [1.50e3, None, {"b": 1, "a": 2}]}
    text = body_of(talk, metadata={"user_id": "u"}, temperature=1.0).decode().replace("1500.0", "1.50e3")
    with wired(handle) as upstream, proxying(upstream.url, tmp_path, WINDOW) as proxy:
        post(proxy, text.encode(), x_compact_session="s")
        assert proxy.app.metrics.value("edited") == 1
    sent = upstream.requests[0].body.decode()
    before, after = text.index('"messages": ['), text.rindex('"role": "user"')
    assert sent[:before] == text[:before], "model, tools and all other fields are as they came"
    assert sent.endswith(text[after - 3 :].replace("\n ]\n}", "]\n}").lstrip()) or "1.50e3" in sent
    assert text[after : text.rindex("}\n ]")] in sent, (
        "the last message has its bytes, number format included"
    )
    assert len(sent) < len(text)


def test_a_huge_result_is_moved_on_arrival_only_where_a_reader_is_connected(tmp_path: Path) -> None:
    huge = "\n".join(f"row {n}: {n * 7919}" for n in range(9000))
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    talk = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": huge}]},
    ]
    with serving(["Yes."]) as provider, proxying(provider.url, tmp_path) as proxy:
        ours = recall_tools(proxy.manager.archive, "s")
        reader = [
            {"name": f"mcp__compact__{name}", "description": tool.description, "input_schema": tool.schema}
            for name, tool in ours.items()
        ]
        tools = json.loads(body_of([]))["tools"]
        post(proxy, body_of(talk), x_compact_session="without")
        post(proxy, body_of(talk, tools=[*tools, *reader]), x_compact_session="with")
        post(proxy, body_of(talk, tools=[*tools, *reader]), x_compact_session="with")
    whole, pointer, again = (str(request.messages[2]["content"]) for request in provider.requests)
    assert "row 8999" in whole
    assert "row 8999" not in pointer
    assert 'mcp__compact__read_file("/tool_outputs/' in pointer
    assert again == pointer


def test_count_tokens_counts_what_would_be_sent_and_makes_no_pass(tmp_path: Path) -> None:
    talk = long_talk(18)
    with serving(["Yes."], window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        counted = httpx.post(
            f"{proxy.url}/v1/messages/count_tokens",
            content=body_of(talk),
            headers={**KEY, "x-compact-session": "s"},
        )
        assert proxy.manager.archive.steps("s") == []
        post(proxy, body_of(talk), x_compact_session="s")
        assert len(proxy.manager.archive.steps("s")) == 1
        after = httpx.post(
            f"{proxy.url}/v1/messages/count_tokens",
            content=body_of(talk),
            headers={**KEY, "x-compact-session": "s"},
        )
    assert counted.json()["input_tokens"] > WINDOW > after.json()["input_tokens"]


def test_an_illegal_list_is_repaired_only_after_the_provider_refused_it() -> None:
    talk = long_talk(2)
    del talk[2]  # a call whose result is gone
    with serving([Reply("Yes.")]) as provider, proxying(provider.url) as proxy:
        reply = post(proxy, body_of(talk), x_compact_session="s")
        assert proxy.app.metrics.value("recovered", kind="illegal") == 1
    assert reply.status_code == 200
    assert list(provider.requests[0].messages) == talk
    assert provider.requests[1].accepted


def test_with_live_masking_nothing_goes_out_unmasked() -> None:
    secret = "sk-ant-api03-" + "Zq8" * 31 + "AA"
    talk = [
        *long_talk(1),
        {"role": "assistant", "content": "Which key?"},
        {"role": "user", "content": f"It is {secret}"},
    ]
    with (
        serving(["Yes."]) as provider,
        proxying(provider.url, redaction={"live": "secrets"}) as proxy,
        httpx.Client(base_url=proxy.url, headers={**KEY, "x-compact-session": "s"}) as client,
    ):
        assert client.post("/v1/messages", content=body_of(talk, system=f"Use {secret}.")).status_code == 200
        title = json.dumps(
            {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": secret}]}
        )
        assert client.post("/v1/messages", content=title).status_code == 200
        counted = client.post("/v1/messages/count_tokens", content=body_of(talk))
        refused = [
            client.post("/v1/messages", content=b"{"),
            client.post("/v1/files", content=f"here: {secret}"),
        ]
    assert counted.status_code == 200
    assert len(provider.requests) == 3
    assert secret not in str([request.body for request in provider.requests])
    assert [reply.status_code for reply in refused] == [503, 503]
    assert all(reply.json()["type"] == "error" for reply in refused)
