"""`summary.model: native` with the providers' own clients against the stand-ins, which know their own blocks and refuse all others."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest

from compact import CompactManager
from compact.checks import violations
from compact.errors import CompactError
from compact.summaries.native import read_anthropic, read_openai
from compact.tools.standins import Call, Provider, Received, Refusal, Reply, Summary, serving

Item = dict[str, Any]
CLAUDE, GPT, WINDOW = "claude-fable-5-1", "gpt-5.5", 12_000
BETA = "compact-2026-09-04"
TOOLS: list[Any] = [
    {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
]
RULE = "Never delete a file without asking me first."


def think(request: Received) -> Reply:
    n, longer = request.number, 100 if request.endpoint == "anthropic" else 200
    return Reply(f"Answer {n}. " + "more words here " * longer, thinking=f"Thought {n}. " * 20)


@contextmanager
def running(script: Any = think, **settings: Any) -> Iterator[tuple[Provider, CompactManager]]:
    chosen = {"model": CLAUDE, "archive": {"adapter": "memory"}, "summary": {"model": "native"}, **settings}
    with (
        serving(script, window=WINDOW) as provider,
        CompactManager(max_context_tokens=WINDOW, **chosen) as manager,
    ):
        yield provider, manager


def claude(provider: Provider, kind: Any = anthropic.Anthropic) -> Any:
    return kind(base_url=provider.url, api_key="none", max_retries=0)


def gpt(provider: Provider, kind: Any = openai.OpenAI) -> Any:
    return kind(base_url=provider.openai_url, api_key="none", max_retries=0)


def question(n: int) -> Item:
    extra = RULE if n == 1 else "Look at it."
    return {"role": "user", "content": f"Question {n}. {extra} " + "some data " * 20}


def blocks(reply: Any) -> Item:
    return {"role": "assistant", "content": [block.to_dict() for block in reply.content]}


def ask_claude(client: Any, history: list[Item], **more: Any) -> Any:
    return client.messages.create(model=CLAUDE, max_tokens=100, system="Be brief.", messages=history, **more)


def talk(
    send: Callable[[list[Item]], list[Item]], turns: int, kept: Callable[[], Any] | None = None
) -> list[Item]:
    """A conversation of a host that passes its full history; with `kept`, of one that keeps what was sent."""
    history: list[Item] = []
    for n in range(turns):
        history.append(question(n))
        answer = send(history)
        history = [*(history if kept is None else list(kept())), *answer]
    return history


def asked(provider: Provider) -> list[Received]:
    return [request for request in provider.requests if request.compacting]


def kinds(message: Item) -> list[str]:
    content = message["content"]
    return [block["type"] for block in content] if isinstance(content, list) else ["text"]


def events(manager: CompactManager, name: str, session: str = "s") -> list[Item]:
    manager.flush()
    found = map(json.loads, manager.services.lines(manager.sessions.get(session).key))
    return [event for event in found if event["name"] == name]


def warnings(manager: CompactManager) -> list[str]:
    return [event["properties"]["code"] for event in events(manager, "compact.warning")]


@pytest.mark.parametrize("keeps", [False, True], ids=["full history", "keeps what was sent"])
@pytest.mark.parametrize("beta", [False, True], ids=["messages", "beta.messages"])
def test_claude_writes_the_summary_and_the_thinking_behind_it_stays_valid(keeps: bool, beta: bool) -> None:
    with running() as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")

        def send(history: list[Item]) -> list[Item]:
            return [blocks(ask_claude(wrapped.beta if beta else wrapped, history))]

        talk(send, 32, (lambda: manager.last_request("s")) if keeps else None)
        assert provider.refused == []
        assert len(asked(provider)) >= 2
        sent = provider.accepted[-1].messages
        assert kinds(sent[0]) == ["compaction"]
        assert all(kinds(message)[0] == "thinking" for message in sent[1:] if message["role"] == "assistant")
        (words,) = [m["content"] for m in sent if str(m["content"]).startswith("<COMPACT-LEDGER")]
        assert RULE in words
        assert violations(list(sent), model=CLAUDE) == []
        assert events(manager, "compact.error") == []


def test_what_the_provider_summarizes_is_what_it_saw_before() -> None:
    with running() as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")
        talk(lambda history: [blocks(ask_claude(wrapped, history))], 20)
        for request in asked(provider):
            before = provider.requests[request.number - 2]
            assert list(request.messages) == list(before.messages)[: len(request.messages)]
            assert request.body["system"] == before.body["system"]
            assert BETA in request.headers["anthropic-beta"]


def test_a_block_is_sent_back_byte_for_byte_under_the_beta_header_and_beside_the_hosts_own() -> None:
    with running() as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")

        def send(history: list[Item]) -> list[Item]:
            return [blocks(ask_claude(wrapped, history, extra_headers={"anthropic-beta": "mine-1"}))]

        talk(send, 20)
        first = asked(provider)[0].number
        behind = [request for request in provider.accepted if request.number > first]
        assert {request.headers["anthropic-beta"] for request in behind} == {f"mine-1,{BETA}"}
        assert (
            "anthropic-beta" not in provider.requests[0].headers
            or provider.requests[0].headers["anthropic-beta"] == "mine-1"
        )


def test_a_tool_loop_of_one_turn_stays_legal_and_keeps_the_users_message() -> None:
    def read(request: Received) -> Reply:
        n = request.number
        return Reply(f"Step {n}.", [Call("read", {"path": f"f{n}"})], thinking=f"Thought {n}. " * 20)

    with running(read) as (provider, manager), claude(provider) as client:
        wrapped, history = manager.wrap(client, session_id="s"), [question(1)]
        for _ in range(24):
            reply = ask_claude(wrapped, history, tools=TOOLS)
            call = next(block for block in reply.content if block.type == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "a line of the file\n" * 60}
            history += [blocks(reply), {"role": "user", "content": [result]}]
        assert provider.refused == []
        sent = provider.accepted[-1].messages
        assert kinds(sent[0]) == ["compaction"]
        assert sent[1] == history[0]
        assert events(manager, "compact.error") == []


@pytest.mark.parametrize("streamed", [False, True])
def test_an_async_client_asks_on_its_own_loop(streamed: bool) -> None:
    async def run(provider: Provider, manager: CompactManager) -> None:
        async with claude(provider, anthropic.AsyncAnthropic) as client:
            wrapped, history = manager.wrap(client, session_id="s"), list[Item]()
            for n in range(16):
                history.append(question(n))
                request: Any = {"model": CLAUDE, "max_tokens": 99, "system": "Be brief.", "messages": history}
                if streamed:
                    async with wrapped.messages.stream(**request) as stream:
                        reply = await stream.get_final_message()
                else:
                    reply = await wrapped.messages.create(**request)
                history.append(blocks(reply))

    with running() as (provider, manager):
        asyncio.run(run(provider, manager))
        assert provider.refused == []
        assert asked(provider)
        assert kinds(provider.accepted[-1].messages[0]) == ["compaction"]
        assert events(manager, "compact.error") == []


@pytest.mark.parametrize("streamed", [False, True])
def test_openai_keeps_the_users_messages_and_an_encrypted_item(streamed: bool) -> None:
    with running(model=GPT) as (provider, manager), gpt(provider) as client:
        wrapped = manager.wrap(client, session_id="s")

        def send(history: list[Item]) -> list[Item]:
            request: Any = {"model": GPT, "input": history, "instructions": "Be brief.", "store": False}
            if streamed:
                with wrapped.responses.stream(**request) as stream:
                    output = stream.get_final_response().output
            else:
                output = wrapped.responses.create(**request).output
            return [item.to_dict() for item in output]

        history = talk(send, 24)
        assert provider.refused == []
        assert len(asked(provider)) >= 2
        assert {request.endpoint for request in asked(provider)} == {"responses"}
        sent = provider.accepted[-1].messages
        assert [item.get("type") for item in sent].count("compaction") == 1
        place = next(n for n, item in enumerate(sent) if item.get("type") == "compaction")
        assert list(sent[:place]) == [item for item in history if item.get("role") == "user"][:place]
        assert events(manager, "compact.error") == []


def test_a_plain_model_call_of_openai_is_asked_by_a_trigger() -> None:
    with running(model=GPT) as (provider, manager), gpt(provider) as client:

        def send(history: list[Item]) -> list[Item]:
            reply = manager.call(
                "s",
                history,
                lambda items: client.responses.create(model=GPT, input=items, store=False),
                dialect="responses",
            )
            return [item.to_dict() for item in reply.output]

        talk(send, 20)
        assert provider.refused == []
        assert asked(provider)[0].messages[-1] == {"type": "compaction_trigger"}
        sent = provider.accepted[-1].messages
        assert sum(item.get("type") == "compaction" for item in sent) == 1
        assert RULE in str(sent)  # its message is in the item, so the ledger shows it
        assert events(manager, "compact.error") == []


def test_a_plain_model_call_of_claude_is_asked_by_its_attribute() -> None:
    with running() as (provider, manager), claude(provider) as client:

        def model_call(messages: list[Item]) -> Any:
            return client.beta.messages.create(
                model=CLAUDE, max_tokens=100, system="Be brief.", messages=messages, betas=[BETA]
            )

        model_call.compact = lambda body: client.beta.messages.create(**body, betas=[BETA])  # type: ignore[attr-defined]
        talk(lambda history: [blocks(manager.call("s", history, model_call, system="Be brief."))], 16)
        assert provider.refused == []
        assert kinds(provider.accepted[-1].messages[0]) == ["compaction"]


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_without_a_client_the_endpoint_is_asked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_SUMMARY_API_KEY", "of-the-summarizer")
    with serving(think, window=WINDOW) as provider:
        url = provider.url if kind == "anthropic" else provider.openai_url
        settings: Any = {"model": CLAUDE if kind == "anthropic" else GPT, "archive": {"adapter": "memory"}}
        summary: Any = {"model": "native", "base_url": url}
        with CompactManager(max_context_tokens=WINDOW, summary=summary, **settings) as manager:
            dialect = "anthropic" if kind == "anthropic" else "responses"
            history = [question(0)]
            while manager.estimate(history).usage_pct < 0.86:
                history += [said(len(history)), question(len(history))]
            found = manager.preflight("s", history, dialect=dialect)
            assert len(asked(provider)) == 1
            assert "compaction" in json.dumps(found)
            assert events(manager, "compact.error") == []


def said(n: int) -> Item:
    return {"role": "assistant", "content": f"Answer {n}. " + "more words here " * 100}


# --- what goes wrong

FAILURES: dict[str, Any] = {
    "error": Refusal(529, "overloaded", "overloaded_error", "compaction_unavailable"),
    "refusal": Summary("", stop_reason="refusal"),
    "cut off": Summary("half", stop_reason="max_tokens"),
    "a tool call": Summary("", stop_reason="tool_use"),
    "empty": Summary(""),
    "larger": Summary("far too many words " * 4_000),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_our_summary_stands_where_the_provider_gives_none(failure: str) -> None:
    with running() as (provider, manager), claude(provider) as client:
        provider.summarize = lambda _: FAILURES[failure]
        wrapped = manager.wrap(client, session_id="s")
        talk(lambda history: [blocks(ask_claude(wrapped, history))], 16)
        assert provider.refused == []
        sent = provider.accepted[-1].messages
        assert "compaction" not in str(kinds(sent[0]))
        assert any("<COMPACT-SUMMARY" in str(message["content"]) for message in sent)
        error = events(manager, "compact.error")[0]
        assert error["properties"]["fallback"] == "extractive"
        assert error["payload"]["source"] == "native"


@pytest.mark.parametrize("failure", ["error", "empty"])
def test_our_summary_stands_where_openai_gives_none(failure: str) -> None:
    with running(model=GPT) as (provider, manager), gpt(provider) as client:
        provider.summarize = lambda _: FAILURES[failure]
        wrapped = manager.wrap(client, session_id="s")

        def send(history: list[Item]) -> list[Item]:
            return [item.to_dict() for item in wrapped.responses.create(model=GPT, input=history).output]

        talk(send, 16)
        assert provider.refused == []
        assert "<COMPACT-SUMMARY" in str(provider.accepted[-1].messages)
        assert events(manager, "compact.error")


def test_a_provider_that_hangs_is_not_waited_for() -> None:
    hangs = asyncio.Event()

    async def run(provider: Provider, manager: CompactManager) -> None:
        async def never(_: Any) -> Any:
            await hangs.wait()

        async def model_call(messages: list[Item]) -> str:
            return "ok"

        model_call.compact = never  # type: ignore[attr-defined]
        history = [question(n) if n % 2 == 0 else said(n) for n in range(41)]
        await manager.acall("s", history, model_call, dialect="anthropic")

    with running(summary={"model": "native", "timeout_s": 0.05}) as (provider, manager):
        asyncio.run(run(provider, manager))
        (error,) = events(manager, "compact.error")
        assert error["properties"]["error_type"] == "TimeoutError"
        assert "<COMPACT-SUMMARY" in str(manager.last_request("s"))


def test_a_model_without_native_compaction_gets_our_summary_and_one_warning() -> None:
    with running(model="claude-haiku-4-5") as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")
        history: list[Item] = []
        for n in range(30):
            history.append(question(n))
            reply = wrapped.messages.create(model="claude-haiku-4-5", max_tokens=99, messages=history)
            history.append(blocks(reply))
        assert asked(provider) == []
        assert provider.refused == []
        assert warnings(manager) == ["summarizer_unavailable"]


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        (None, "there is no summary.base_url"),
        ("https://gateway.example", "there is no key in COMPACT_SUMMARY_API_KEY"),
    ],
    ids=["no address", "no key for it"],
)
def test_without_client_and_endpoint_the_reason_is_said(
    base_url: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COMPACT_SUMMARY_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-anthropic")  # it goes to Anthropic and to nobody else
    with running(summary={"model": "native", "base_url": base_url}) as (_, manager):
        history = [question(n) if n % 2 == 0 else said(n) for n in range(41)]
        assert "<COMPACT-SUMMARY" in str(manager.preflight("s", history, dialect="anthropic"))
        (error,) = events(manager, "compact.error")
        assert words in error["properties"]["message"]


# --- another model, another process


def test_another_model_gets_our_summary_in_place_of_the_block_and_goes_on_with_it() -> None:
    other = "claude-haiku-4-5"
    with running() as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")
        history = talk(lambda history: [blocks(ask_claude(wrapped, history))], 16)
        assert kinds(provider.accepted[-1].messages[0]) == ["compaction"]
        for n in range(3):
            history.append(question(n))
            reply = wrapped.messages.create(model=other, max_tokens=100, messages=history)
            history.append(blocks(reply))
            sent = provider.accepted[-1].messages
            assert "'compaction'" not in str(sent)
            assert "<COMPACT-SUMMARY v1>" in str(sent[1]["content"])
            assert violations(list(sent)) == []
        assert provider.refused == []
        assert len(asked(provider)) == 1
        assert warnings(manager) == ["summarizer_unavailable"]


def test_a_host_that_keeps_what_was_sent_may_change_the_model_and_the_process(tmp_path: Any) -> None:
    archive: Any = {"root": str(tmp_path)}
    with running(archive=archive) as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")
        talk(lambda history: [blocks(ask_claude(wrapped, history))], 16)
        kept = list(manager.last_request("s") or ())
        assert kinds(kept[0]) == ["compaction"]
    with running(archive=archive) as (provider, manager):
        plain = manager.preflight("s", copy.deepcopy(kept), dialect="anthropic", model="claude-haiku-4-5")
        assert "'compaction'" not in str(plain)
    with running(archive=archive) as (provider, manager):
        again = manager.preflight("s", copy.deepcopy(plain), dialect="anthropic", model="claude-haiku-4-5")
        assert again == plain
        assert warnings(manager) == ["summarizer_unavailable"] * 2  # one for each process, and no other


@pytest.mark.parametrize("keeps", [False, True], ids=["full history", "keeps what was sent"])
def test_a_new_process_goes_on_behind_the_block(tmp_path: Any, keeps: bool) -> None:
    archive: Any = {"root": str(tmp_path)}
    secret = "sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 8
    with serving(think, window=WINDOW) as provider, claude(provider) as client:
        provider.summarize = lambda _: f"They agreed on a key: {secret}."
        history: list[Item] = []
        for n in range(28):
            settings: Any = {"model": CLAUDE, "archive": archive, "summary": {"model": "native"}}
            with CompactManager(max_context_tokens=WINDOW, **settings) as manager:
                wrapped = manager.wrap(client, session_id="s")
                history.append(question(n))
                reply = ask_claude(wrapped, history)
                history = [*((manager.last_request("s") or ()) if keeps else history), blocks(reply)]
                assert events(manager, "compact.error") == []
        assert provider.refused == []
        assert len(asked(provider)) >= 2
        assert secret in provider.accepted[-1].messages[0]["content"][0]["content"]
        assert len(manager.archive.steps("s")) == len(asked(provider))


def test_the_archive_has_the_transcript_the_extract_and_who_wrote(tmp_path: Any) -> None:
    with running(archive={"root": str(tmp_path)}) as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")
        history = talk(lambda history: [blocks(ask_claude(wrapped, history))], 16)
        transcript = manager.archive.restore("s", 1)
        assert list(transcript.messages) == history[: len(transcript.messages)]
        (folder,) = tmp_path.glob("s")
        (summary,) = json.loads((folder / "summary-001.json").read_text())["summaries"]
        assert summary["writer"] == "native"
        assert summary["text"].startswith("<COMPACT-SUMMARY v1>")
        (created,) = events(manager, "compact.summary_created")
        assert created["payload"]["summary"] == summary["text"]


def test_a_host_that_compacts_at_a_threshold_is_left_to_it() -> None:
    edit = {"edits": [{"type": "compact_20260112"}]}
    with running() as (provider, manager), claude(provider) as client:
        wrapped = manager.wrap(client, session_id="s")

        def send(history: list[Item]) -> list[Item]:
            request: Any = {"context_management": edit, "betas": ["compact-2026-01-12"]}
            reply = wrapped.beta.messages.create(model=CLAUDE, max_tokens=99, messages=history, **request)
            return [blocks(reply)]

        talk(send, 16)
        assert asked(provider) == []
        assert provider.refused == []
        assert "at a threshold by itself" in events(manager, "compact.error")[0]["properties"]["message"]


def test_a_reply_that_is_no_reply_is_an_error_and_not_a_summary() -> None:
    for read in (read_anthropic, read_openai):
        for reply in (None, "text", {}, {"stop_reason": "compaction", "content": []}, iter(())):
            with pytest.raises(CompactError):
                read(reply)


def test_messages_of_another_dialect_get_our_summary_and_an_event() -> None:
    with running(model=GPT) as (_, manager):
        history = [question(0)]
        while manager.estimate(history).usage_pct < 0.86:
            history += [said(len(history)), question(len(history))]
        assert "<COMPACT-SUMMARY" in str(manager.preflight("s", history, dialect="chat"))
        (error,) = events(manager, "compact.error")
        assert "dialect responses" in error["properties"]["message"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [("behind", "misplaced_compaction"), ("twice", "second_compaction"), ("inside", "misplaced_compaction")],
)
def test_a_block_out_of_its_place_is_a_violation_and_refused(change: str, rule: str) -> None:
    with running(lambda _: "Done.") as (provider, _), claude(provider) as client:
        asked_for: Any = {"model": CLAUDE, "max_tokens": 99, "betas": [BETA]}
        first = client.beta.messages.create(
            messages=[question(0)], compaction={"type": "summarize"}, **asked_for
        )
        block = blocks(first)
        messages = {
            "behind": [question(0), block, question(1)],
            "twice": [block, block, question(1)],
            "inside": [{"role": "user", "content": [{"type": "text", "text": "Hi."}, *block["content"]]}],
        }[change]
        assert violations([block, question(1)], "anthropic") == []
        assert rule in [violation.rule for violation in violations(messages, "anthropic")]
        with pytest.raises(anthropic.BadRequestError):
            client.beta.messages.create(messages=messages, **asked_for)
