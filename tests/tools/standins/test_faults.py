"""What goes wrong on request: limits, overload, silence, broken connections; and packed bodies, sizes, turns."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import boto3  # type: ignore[import-untyped]
import httpx
import openai
import pytest
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from google import genai
from google.genai import errors as google_errors

from compact.tools.standins import Call, Fault, Provider, Received, Refusal, Reply, by_turn, serving

ASK: Any = [{"role": "user", "content": "Hello"}]
LONG = "It is done, all of it, and nothing is left to do, and that is that, here and everywhere else."


def claude(provider: Provider) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)


def gpt(provider: Provider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)


def gemini(provider: Provider) -> genai.Client:
    return genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=provider.url))


def bedrock(provider: Provider) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=provider.url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=5),
    )


@contextmanager
def closing(client: Any) -> Iterator[Any]:
    try:
        yield client
    finally:
        client.close()


def ask_claude(client: Any) -> str:
    return str(client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=ASK).content[0].text)


def stream_claude(client: Any) -> str:
    with client.messages.stream(model="claude-sonnet-5", max_tokens=9, messages=ASK) as stream:
        return "".join(stream.text_stream)


def ask_chat(client: Any) -> str:
    return str(client.chat.completions.create(model="gpt-4o", messages=ASK).choices[0].message.content)


def stream_chat(client: Any) -> str:
    chunks = client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_items(client: Any) -> str:
    return str(client.responses.create(model="gpt-4o", input="Hello").output_text)


def stream_items(client: Any) -> str:
    events = client.responses.create(model="gpt-4o", input="Hello", stream=True)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def ask_gemini(client: Any) -> str:
    return str(client.models.generate_content(model="gemini-2.5-flash", contents="Hello").text)


def stream_gemini(client: Any) -> str:
    chunks = client.models.generate_content_stream(model="gemini-2.5-flash", contents="Hello")
    return "".join(chunk.text or "" for chunk in chunks)


TALK = [{"role": "user", "content": [{"text": "Hello"}]}]


def ask_bedrock(client: Any) -> str:
    reply = client.converse(modelId="anthropic.claude-sonnet-5", messages=TALK)
    return str(reply["output"]["message"]["content"][0]["text"])


def stream_bedrock(client: Any) -> str:
    with closing(
        client.converse_stream(modelId="anthropic.claude-sonnet-5", messages=TALK)["stream"]
    ) as events:
        deltas = (event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event)
        return "".join(delta["text"] for delta in deltas)


CLIENTS: dict[str, tuple[Callable[[Provider], Any], Callable[[Any], str], Callable[[Any], str]]] = {
    "anthropic": (claude, ask_claude, stream_claude),
    "chat": (gpt, ask_chat, stream_chat),
    "responses": (gpt, ask_items, stream_items),
    "gemini": (gemini, ask_gemini, stream_gemini),
    "bedrock": (bedrock, ask_bedrock, stream_bedrock),
}
REFUSED = (anthropic.APIStatusError, openai.APIStatusError, google_errors.APIError, ClientError)
BROKEN = frozenset(
    [
        "APIConnectionError",
        "RemoteProtocolError",
        "ReadError",
        "ProtocolError",
        "ResponseStreamingError",
        "ConnectionClosedError",
        "JSONDecodeError",
        "KeyError",  # boto3 reads half a body as an empty one
    ]
)
"""What the packages raise when a connection breaks; some of them bring a transport of their own."""


def status_of(problem: Any) -> int:
    if isinstance(problem, ClientError):
        return int(problem.response["ResponseMetadata"]["HTTPStatusCode"])
    return int(getattr(problem, "status_code", None) or problem.code)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("kind", ["rate_limited", "server_error", "overloaded"])
def test_what_goes_wrong_at_a_provider_is_its_own_error(name: str, kind: Any) -> None:
    make, ask, stream = CLIENTS[name]
    expected = {"rate_limited": 429, "server_error": 500, "overloaded": 529 if name == "anthropic" else 503}
    with (
        serving([Fault(kind), Fault(kind), "Hello again."]) as provider,
        closing(make(provider)) as client,
    ):
        for send in (ask, stream):
            with pytest.raises(REFUSED) as refused:
                send(client)
            assert status_of(refused.value) == expected[kind]
        assert ask(client) == stream(client) == "Hello again."


def test_a_client_waits_as_long_as_it_is_told() -> None:
    with (
        serving([Fault("rate_limited", retry_after_s=7)]) as provider,
        closing(claude(provider)) as client,
        pytest.raises(anthropic.RateLimitError) as refused,
    ):
        ask_claude(client)
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.type == "rate_limit_error"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_broken_connection_is_an_error_streamed_or_not(name: str) -> None:
    make, ask, stream = CLIENTS[name]
    cut = Fault("reset", reply=Reply(LONG), after_events=2)
    with serving([cut, cut, LONG]) as provider, closing(make(provider)) as client:
        for send in (ask, stream):
            with pytest.raises(Exception) as broken:  # noqa: PT011  # each package has its own, and some have none
                send(client)
            assert type(broken.value).__name__ in BROKEN, broken.value
        assert ask(client) == stream(client) == LONG


def test_what_hangs_ends_with_the_client_or_the_stand_in() -> None:
    with serving([Fault("hang")]) as provider:
        waiting = httpx.Client(timeout=0.2)
        body = {"model": "m", "max_tokens": 9, "messages": ASK}
        with waiting, pytest.raises(httpx.ReadTimeout):
            waiting.post(f"{provider.url}/v1/messages", json=body, headers={"x-api-key": "none"})
        failed = threading.Event()

        def ask() -> None:
            try:
                httpx.post(
                    f"{provider.url}/v1/messages", json=body, headers={"x-api-key": "none"}, timeout=60
                )
            except httpx.TransportError:
                failed.set()

        thread = threading.Thread(target=ask)
        thread.start()
        while len(provider.requests) < 2:
            threading.Event().wait(0.01)
    thread.join(timeout=30)
    assert failed.is_set()


@pytest.mark.parametrize("name", CLIENTS)
def test_answers_in_gzip_are_the_same(name: str) -> None:
    make, ask, stream = CLIENTS[name]
    with serving([LONG], compresses=True) as provider, closing(make(provider)) as client:
        assert ask(client) == stream(client) == LONG


def test_bodies_come_packed_or_in_chunks() -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": ASK}).encode()
    with serving(["Hi."], compresses=True) as provider:
        url, key = f"{provider.url}/v1/messages", {"x-api-key": "none"}
        packed = httpx.post(url, content=gzip.compress(body), headers={**key, "Content-Encoding": "gzip"})
        chunked = httpx.post(url, content=iter([body[:9], body[9:]]), headers=key)
        damaged = httpx.post(url, content=b"not packed", headers={**key, "Content-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.json()["content"] == chunked.json()["content"]
        assert (packed.status_code, chunked.status_code, damaged.status_code) == (200, 200, 413)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_body_over_the_limit_is_refused_by_its_size(name: str) -> None:
    make, ask, _ = CLIENTS[name]
    with serving(["Hi."], max_bytes=20) as provider, closing(make(provider)) as client:
        with pytest.raises(REFUSED) as refused:
            ask(client)
        assert status_of(refused.value) == (400 if name == "gemini" else 413)
    assert provider.requests == []


# --- sizes


def test_each_provider_that_counts_answers_what_it_bills() -> None:
    with serving(["Hi."]) as provider:
        with closing(gpt(provider)) as client:
            counted = client.responses.input_tokens.count(model="gpt-4o", input="Hello")
            assert counted.object == "response.input_tokens"
            usage = client.responses.create(model="gpt-4o", input="Hello").usage
            assert counted.input_tokens == usage.input_tokens
        with closing(gemini(provider)) as client:
            tokens = client.models.count_tokens(model="gemini-2.5-flash", contents="Hello").total_tokens
            billed = client.models.generate_content(model="gemini-2.5-flash", contents="Hello").usage_metadata
            assert tokens == billed.prompt_token_count
        with closing(bedrock(provider)) as client:
            model = "anthropic.claude-sonnet-5"
            tokens = client.count_tokens(modelId=model, input={"converse": {"messages": TALK}})["inputTokens"]
            assert tokens == client.converse(modelId=model, messages=TALK)["usage"]["inputTokens"]
            with pytest.raises(ClientError, match="messages field is empty"):
                client.count_tokens(modelId=model, input={"invokeModel": {"body": b"{}"}})
    assert [request.counting for request in provider.requests].count(True) == 4
    assert len(provider.accepted) == 3


# --- refusals inside a stream


@pytest.mark.parametrize("name", CLIENTS)
def test_a_stream_can_fail_behind_its_first_words(name: str) -> None:
    make, _, stream = CLIENTS[name]
    late = Refusal(500, "It broke.", late=True, behind=LONG)
    with serving([late]) as provider, closing(make(provider)) as client:
        if name == "responses":
            assert stream(client) == LONG
            events = client.responses.create(model="gpt-4o", input="Hello", stream=True)
            assert [event.type for event in events][-1] == "response.failed"
        else:
            with pytest.raises(Exception, match=r"It broke\."):
                stream(client)


# --- turns

TOOLS: Any = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]
STEPS: list[Any] = [Reply("First.", [Call("read", {"n": 1}), Call("read", {"n": 2})]), Reply("", [Call("read", {"n": 3})]), "Done."]  # fmt: skip


def loop(client: Any, messages: list[Any], keep: int = 100) -> list[Any]:
    """A tool loop of Anthropic's client that keeps only its newest messages."""
    while True:
        reply = client.messages.create(
            model="claude-sonnet-5", max_tokens=9, messages=messages[:1] + messages[1:][-keep:], tools=TOOLS
        )
        content = [block.to_dict() for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if not calls:
            return messages
        results = [{"type": "tool_result", "tool_use_id": each, "content": "x"} for each in calls]
        messages.append({"role": "user", "content": results})


def test_a_script_answers_by_turn_whatever_was_compacted() -> None:
    with serving(by_turn([*STEPS, *STEPS], "A title")) as provider, closing(claude(provider)) as client:
        assert ask_claude(client) == "A title", "without tools it is beside the conversation"
        for keep in (100, 2):
            messages = loop(client, [*ASK], keep)
            assert [len(each["content"]) for each in messages if each["role"] == "assistant"] == [3, 1, 1]
            messages.append({"role": "user", "content": "Again"})
            messages = loop(client, messages, 100)
            assert messages[-1]["content"][0]["text"] == "Done."
    with_tools = [request.turn for request in provider.requests if request.has_tools]
    assert with_tools == [0, 1, 2, 3, 4, 5] * 2


@pytest.mark.parametrize("name", ["chat", "responses", "gemini", "bedrock"])
def test_the_turn_is_known_in_every_dialect(name: str) -> None:
    make = CLIENTS[name][0]
    seen: list[Received] = []

    def script(request: Received) -> Reply:
        seen.append(request)
        return Reply("Look.", [Call("read", {"n": request.turn})])

    with serving(script) as provider, closing(make(provider)) as client:
        history: list[Any] = []
        for _ in range(3):
            history = TURNS[name](client, history)
    assert [request.turn for request in seen] == [0, 1, 2]
    assert all(request.has_tools for request in seen)


def chat_turn(client: Any, history: list[Any]) -> list[Any]:
    messages = history or [*ASK]
    tool: Any = {"type": "function", "function": {"name": "read"}}
    said = client.chat.completions.create(model="gpt-4o", messages=messages, tools=[tool]).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in said.tool_calls]
    return [*messages, said.to_dict(), *results]


def items_turn(client: Any, history: list[Any]) -> list[Any]:
    items = history or [*ASK]
    tool: Any = {"type": "function", "name": "read", "parameters": {}, "strict": False}
    output = [
        item.to_dict() for item in client.responses.create(model="gpt-4o", input=items, tools=[tool]).output
    ]
    calls = [item["call_id"] for item in output if item["type"] == "function_call"]
    return [
        *items,
        *output,
        *({"type": "function_call_output", "call_id": each, "output": "x"} for each in calls),
    ]


def gemini_turn(client: Any, history: list[Any]) -> list[Any]:
    contents = history or [{"role": "user", "parts": [{"text": "Hello"}]}]
    reply = client.models.generate_content(
        model="gemini-2.5-flash",
        contents=contents,
        config={"tools": [{"function_declarations": [{"name": "read"}]}]},
    )
    answers = [
        {"function_response": {"id": call.id, "name": call.name, "response": {}}}
        for call in reply.function_calls
    ]
    return [*contents, reply.candidates[0].content, {"role": "user", "parts": answers}]


def bedrock_turn(client: Any, history: list[Any]) -> list[Any]:
    messages = history or [*TALK]
    tools = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}]}
    said = client.converse(modelId="anthropic.claude-sonnet-5", messages=messages, toolConfig=tools)
    message = said["output"]["message"]
    uses = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
    results = [{"toolResult": {"toolUseId": each, "content": [{"text": "x"}]}} for each in uses]
    return [*messages, message, {"role": "user", "content": results}]


TURNS = {"chat": chat_turn, "responses": items_turn, "gemini": gemini_turn, "bedrock": bedrock_turn}


def test_an_answer_may_take_several_tries() -> None:
    script = by_turn([[Fault("overloaded"), Fault("rate_limited"), "Now."], "Later."])
    with serving(script) as provider, closing(claude(provider)) as client:

        def ask() -> str:
            reply = client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=ASK, tools=TOOLS)
            return str(reply.content[0].text)

        for _ in range(2):
            with pytest.raises(anthropic.APIStatusError):
                ask()
        assert ask() == ask() == "Now."


def test_bodies_need_not_be_kept() -> None:
    with serving(["Hi."], keeps_bodies=False) as provider, closing(claude(provider)) as client:
        ask_claude(client)
    assert provider.requests[0].body == {}
    assert provider.requests[0].tokens > 0


def test_a_stand_in_says_that_it_is_there_and_gives_nothing_away() -> None:
    with serving(["Hi."]) as provider:
        assert httpx.head(provider.url).status_code == 200
        assert httpx.get(f"{provider.url}/v1/models", headers={"x-api-key": "none"}).json()["type"] == "error"
        assert httpx.get(f"{provider.url}/v1/models").status_code == 404
