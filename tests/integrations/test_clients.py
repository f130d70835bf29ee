"""What is special about wrapped clients: everything else about them stays as it was."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import anthropic
import openai
import pytest
from support.hosts import AnthropicLoop, ChatLoop, ResponsesLoop, anthropic_client, openai_client
from support.integrations import Provider, Reply, agent_manager, calls_then_text, serving

from compact import ConfigError
from compact.integrations.recall import RecallTools

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
LOOPS = [ChatLoop, ResponsesLoop, AnthropicLoop]


def says_hi(_: int) -> Reply:
    return Reply("hi")


def test_only_clients_of_the_two_packages_are_wrapped() -> None:
    manager, _ = agent_manager()
    with manager, pytest.raises(ConfigError, match=r"got dict\. For another client call manager\.call"):
        manager.wrap({})


def test_without_a_registered_wrapper_the_error_says_what_to_import() -> None:
    """The manager's own module loads no integration; the package does when it hands out the manager."""
    code = (
        "from compact.runtime.manager import CompactManager\n"
        "manager = CompactManager()\n"
        "for load in (lambda: None, lambda: __import__('compact').CompactManager):\n"
        "    load()\n"
        "    try: manager.wrap({})\n"
        "    except Exception as problem: print(problem)\n"
        "import sys; print({'openai', 'anthropic', 'google.genai', 'boto3'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, loaded = done.stdout.splitlines()
    assert before.endswith("Import CompactManager from compact, or import compact.integrations.wrappers")
    assert after.startswith(
        "wrap takes a client of the packages openai, anthropic, google or botocore, got dict"
    )
    assert loaded == "set()"


def test_a_wrapped_client_is_what_it_was() -> None:
    manager, _ = agent_manager()
    with serving(says_hi) as provider, manager:
        client = manager.wrap(openai_client(provider))
        assert isinstance(client, openai.OpenAI)
        assert client.api_key == "none"
        assert client.models is not None
        assert isinstance(manager.wrap(anthropic_client(provider)), anthropic.Anthropic)
        with client as entered:
            reply = entered.chat.completions.create(model="gpt-4o", messages=HELLO)
        assert isinstance(reply, openai.types.chat.ChatCompletion)
        assert client.is_closed()


def test_a_copy_of_a_wrapped_client_is_wrapped() -> None:
    manager, seen = agent_manager()
    with serving(says_hi) as provider, manager:
        client = manager.wrap(openai_client(provider)).with_options(timeout=5)
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert len(seen.named("token_estimate")) == 1


def test_a_session_is_named_for_the_client_or_for_a_call() -> None:
    manager, seen = agent_manager()
    with serving(says_hi) as provider, manager:
        client = manager.wrap(openai_client(provider), session_id="mine")
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
        client.chat.completions.create(model="gpt-4o", messages=HELLO, session_id="other")
        manager.wrap(openai_client(provider)).chat.completions.create(model="gpt-4o", messages=HELLO)
    mine, other, fresh = [event["session_id"] for event in seen.named("token_estimate")]
    assert (mine, other) == ("mine", "other")
    assert fresh.startswith("chat-")
    assert all("session_id" not in request.body for request in provider.requests)


def test_a_client_is_wrapped_for_a_tenant() -> None:
    manager, _ = agent_manager()
    with serving(says_hi) as provider, manager:
        for tenant in ("acme", "beta", None):
            client = manager.wrap(openai_client(provider), session_id="mine", tenant=tenant)
            client.chat.completions.create(model="gpt-4o", messages=HELLO)
        manager.flush()
        assert manager.archive.sessions() == ["mine"]
        for tenant in ("acme", "beta"):
            assert manager.for_tenant(tenant).archive.sessions() == ["mine"]
    assert all("tenant" not in request.body for request in provider.requests)


def test_messages_under_the_threshold_are_sent_as_they_are() -> None:
    manager, _ = agent_manager()
    with serving(says_hi) as provider, manager:
        client = manager.wrap(openai_client(provider))
        client.responses.create(model="gpt-4o", input="hello", instructions="Be kind.")
        client.responses.create(model="gpt-4o", input=HELLO)
        client.chat.completions.create(model="gpt-4o", messages=tuple(HELLO), temperature=0)
        client.chat.completions.create(model="gpt-4o", messages=iter(HELLO))
    assert [request.body.get("input", request.body.get("messages")) for request in provider.requests] == [
        "hello",
        HELLO,
        HELLO,
        HELLO,
    ]


def test_a_conversation_that_the_provider_keeps_is_left_alone_with_a_warning() -> None:
    manager, seen = agent_manager()
    result = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    with serving(says_hi) as provider, manager:
        client = manager.wrap(openai_client(provider))
        for _ in range(2):
            client.responses.create(model="gpt-4o", input=[result], previous_response_id="resp_1")
    assert [request.messages for request in provider.requests] == [[result], [result]]
    assert [event["properties"]["code"] for event in seen.named("warning")] == ["server_managed"]


def test_a_raw_response_is_still_raw() -> None:
    manager, seen = agent_manager()
    with serving(says_hi) as provider, manager:
        raw = manager.wrap(openai_client(provider)).chat.completions.with_raw_response.create(
            model="gpt-4o", messages=HELLO
        )
        assert raw.parse().choices[0].message.content == "hi"
    assert len(seen.named("token_estimate")) == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_a_stream_is_iterated_as_before_and_its_usage_is_noted(
    loop: type[ChatLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, _ = agent_manager()
    observed: list[int] = []
    monkeypatch.setattr(manager, "observe", lambda _, *, input_tokens, **_more: observed.append(input_tokens))
    with serving(says_hi) as provider, manager:
        with loop().create(manager.wrap(loop.client(provider)), stream=True) as stream:
            kinds = [getattr(event, "type", "chunk") for event in stream]

        async def iterated() -> list[str]:
            client = manager.wrap(loop.client(provider, True))
            async with await loop().create(client, stream=True) as stream:
                return [getattr(event, "type", "chunk") async for event in stream]

        assert asyncio.run(iterated()) == kinds
    assert kinds[-1] in ("chunk", "response.completed", "message_stop")
    assert len(kinds) >= 4
    assert len(observed) == 2
    assert observed[0] == provider.requests[0].tokens


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_error_that_is_not_about_length_reaches_the_caller(loop: type[ChatLoop], stream: bool) -> None:
    manager, _ = agent_manager()
    package: Any = anthropic if loop is AnthropicLoop else openai
    refused = pytest.raises(package.AuthenticationError, match="That key is not known")
    with serving(says_hi, error="That key is not known.") as provider, manager, refused:
        loop().create(manager.wrap(loop.client(provider)), stream=stream)
    assert len(provider.requests) == 1


def test_a_stream_that_fails_for_another_reason_is_given_as_it_came() -> None:
    manager, _ = agent_manager()
    with serving(says_hi, error="The server is tired.", late_refusals=True) as provider, manager:
        stream = ResponsesLoop().create(manager.wrap(openai_client(provider)), stream=True)
        assert [event.type for event in stream] == ["response.created", "response.failed"]

        async def iterated() -> list[str]:
            client = manager.wrap(openai_client(provider, True))
            return [event.type async for event in await ResponsesLoop().create(client, stream=True)]

        assert asyncio.run(iterated()) == ["response.created", "response.failed"]
    assert len(provider.requests) == 2


# --- recall tools


def looks(call: str, arguments: dict[str, Any]) -> Any:
    return lambda n: (
        Reply(calls=(("look", call, arguments), ("other", "get_report", {"number": 1})))
        if n == 13
        else calls_then_text(12)(n)
    )


@pytest.mark.parametrize("loop", LOOPS)
def test_recall_tools_are_offered_in_one_line_and_executed_in_one(loop: type[ChatLoop]) -> None:
    manager, _ = agent_manager()
    with serving(looks("archive_grep", {"pattern": "report 10$"})) as provider, manager:
        client, talk = manager.wrap(loop.client(provider)), loop()
        tools = RecallTools(manager, prefix="archive_")
        talk.tools += {ChatLoop: tools.chat, ResponsesLoop: tools.responses, AnthropicLoop: tools.anthropic}[
            loop
        ]
        for _ in range(12):
            talk.took(talk.create(client))
        reply = talk.create(client)
        (answer,) = tools.answers(reply)
    assert "report 10" in str(answer)
    shapes: dict[Any, dict[str, Any]] = {
        ChatLoop: {"role": "tool", "tool_call_id": "look"},
        ResponsesLoop: {"type": "function_call_output", "call_id": "look"},
        AnthropicLoop: {"type": "tool_result", "tool_use_id": "look"},
    }
    assert shapes[loop].items() <= answer.items()
    assert tools.answers(reply.model_dump()) == [answer]
    assert provider.refused == []


def test_calls_of_other_tools_are_left_to_the_host_and_bad_arguments_get_an_answer() -> None:
    manager, _ = agent_manager()
    with manager:
        tools = RecallTools(manager, "s")
        call = {"id": "c", "type": "function", "function": {"name": "grep", "arguments": "not json"}}
        other = {"id": "d", "type": "function", "function": {"name": "mine", "arguments": "{}"}}
        (answer,) = tools.answers({"role": "assistant", "content": None, "tool_calls": [call, other]})
    assert answer["tool_call_id"] == "c"
    assert "the arguments are not JSON" in answer["content"]


def test_a_provider_is_a_provider(tmp_path: Any) -> None:
    """The stand-in refuses what it should refuse: otherwise the tests above would prove nothing."""
    with serving(says_hi, window=50) as provider:
        plain = openai_client(provider)
        with pytest.raises(openai.BadRequestError, match="maximum context length is 50"):
            plain.chat.completions.create(
                model="gpt-4o", messages=[{"role": "user", "content": "word " * 100}]
            )
        with pytest.raises(openai.BadRequestError, match="orphan_result"):
            plain.chat.completions.create(
                model="gpt-4o", messages=[*HELLO, {"role": "tool", "tool_call_id": "x", "content": "42"}]
            )
    assert isinstance(provider, Provider)
    assert [bool(request.refused) for request in provider.requests] == [True, True]
