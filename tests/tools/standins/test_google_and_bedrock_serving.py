"""The stand-ins speak to the clients of Google and of AWS: answers, streams, errors, sizes, signatures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, EventStreamError  # type: ignore[import-untyped]
from google import genai
from google.genai import errors, types

from compact.errors import says_overflow
from compact.runtime.overflow import recognise
from compact.tools.standins import Call, Provider, Refusal, Reply, prefix_breaks, serving

REPLY = Reply(
    "It is done, all of it, and nothing is left to do.",
    [Call("read", {"path": "a.txt"}), Call("ls")],
    "Let me think.",
)
MODEL = "gemini-3-pro"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOLS: Any = {
    "tools": [
        {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in ("read", "ls")
    ]
}


@contextmanager
def google(provider: Provider) -> Iterator[genai.Client]:
    client = genai.Client(api_key="none", vertexai=False, http_options={"base_url": provider.url})
    with client:
        yield client


@contextmanager
def bedrock(provider: Provider) -> Iterator[Any]:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        endpoint_url=provider.url,
        config=Config(retries={"total_max_attempts": 1}),
    )
    with closing(client):
        yield client


def ask(text: str = "Hello") -> Any:
    return {"role": "user", "content": [{"text": text}]}


def test_google_answers_the_same_streamed_or_not() -> None:
    with serving([REPLY]) as provider, google(provider) as client:
        whole = client.models.generate_content(model=MODEL, contents="Hello")
        chunks = list(client.models.generate_content_stream(model=MODEL, contents="Hello"))
    assert whole.text == "".join(chunk.text or "" for chunk in chunks) == REPLY.text
    assert [call.name for call in whole.function_calls or ()] == ["read", "ls"]
    assert [call.args for chunk in chunks for call in chunk.function_calls or ()] == [{"path": "a.txt"}, {}]
    assert whole.usage_metadata is not None
    assert whole.usage_metadata.prompt_token_count == provider.requests[0].tokens > 0
    assert provider.requests[0].model == MODEL


def test_google_takes_its_own_answer_back_and_refuses_a_changed_one() -> None:
    with serving([REPLY, "Done."]) as provider, google(provider) as client:
        provider.rules = type(provider.rules)(signing_key=b"stand-in", thought_signatures=True)
        reply = client.models.generate_content(model=MODEL, contents="Hello").candidates[0].content  # type: ignore[index]
        assert reply is not None
        assert reply.parts is not None
        asked = [part.function_call for part in reply.parts if part.function_call]
        answers = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "x"})
            )
            for call in asked
        ]
        history: list[Any] = [types.UserContent("Hello"), reply, types.UserContent(answers)]
        assert client.models.generate_content(model=MODEL, contents=history).text == "Done."
        for part in reply.parts:
            if part.function_call:
                part.function_call.args = {"path": "b.txt"}
        with pytest.raises(errors.ClientError, match="Corrupted thought signature"):
            client.models.generate_content(model=MODEL, contents=history)


def test_google_counts_and_refuses_what_is_too_long() -> None:
    with serving(["Yes."], window=100) as provider, google(provider) as client:
        counted = client.models.count_tokens(model=MODEL, contents="Hello").total_tokens
        assert counted == provider.requests[0].tokens
        with pytest.raises(errors.ClientError) as refused:
            client.models.generate_content(model=MODEL, contents="word " * 500)
        with pytest.raises(errors.ClientError):
            client.models.generate_content(model=MODEL, contents=[{"role": "user", "parts": []}])
    assert refused.value.code == 400
    assert refused.value.status == "INVALID_ARGUMENT"
    assert says_overflow(refused.value.message or "")
    assert recognise(refused.value) is not None


def test_google_refuses_late_where_the_stream_has_begun() -> None:
    with serving(["Yes."], window=100, late_refusals=True) as provider, google(provider) as client:
        chunks = client.models.generate_content_stream(model=MODEL, contents="word " * 500)
        with pytest.raises(errors.ClientError) as refused:
            list(chunks)
    assert recognise(refused.value) is not None


def test_bedrock_answers_the_same_streamed_or_not() -> None:
    with serving([REPLY]) as provider, bedrock(provider) as client:
        whole = client.converse(modelId=CLAUDE, messages=[ask()], toolConfig=TOOLS)
        events = list(client.converse_stream(modelId=CLAUDE, messages=[ask()], toolConfig=TOOLS)["stream"])
    blocks = whole["output"]["message"]["content"]
    assert [next(iter(block)) for block in blocks] == ["reasoningContent", "text", "toolUse", "toolUse"]
    assert whole["stopReason"] == "tool_use"
    assert whole["usage"]["inputTokens"] == provider.requests[0].tokens > 0
    assert provider.requests[0].model == CLAUDE
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert "".join(delta.get("text", "") for delta in deltas) == REPLY.text
    assert "".join(delta.get("toolUse", {}).get("input", "") for delta in deltas) == '{"path": "a.txt"}{}'
    assert events[-1]["metadata"]["usage"]["inputTokens"] == provider.requests[1].tokens


def test_bedrock_takes_its_own_answer_back_and_refuses_a_changed_one() -> None:
    with serving([REPLY, "Done."]) as provider, bedrock(provider) as client:
        reply = client.converse(modelId=CLAUDE, messages=[ask()], toolConfig=TOOLS)["output"]["message"]
        ids = [block["toolUse"]["toolUseId"] for block in reply["content"] if "toolUse" in block]
        results = [{"toolResult": {"toolUseId": each, "content": [{"text": "x"}]}} for each in ids]
        history = [ask(), reply, {"role": "user", "content": results}]
        said = client.converse(modelId=CLAUDE, messages=history, toolConfig=TOOLS)
        assert said["output"]["message"]["content"] == [{"text": "Done."}]
        assert prefix_breaks(provider.requests) == 0
        reply["content"][0]["reasoningContent"]["reasoningText"]["text"] = "Another thought."
        with pytest.raises(ClientError, match="Invalid `signature`"):
            client.converse(modelId=CLAUDE, messages=history, toolConfig=TOOLS)


def test_bedrock_refuses_what_is_too_long_early_or_late() -> None:
    with serving(["Yes."], window=100) as provider, bedrock(provider) as client:
        for send in (client.converse, client.converse_stream):
            with pytest.raises(ClientError) as refused:
                send(modelId=CLAUDE, messages=[ask("word " * 500)])
            assert refused.value.response["Error"]["Code"] == "ValidationException"
            assert recognise(refused.value) is not None
        provider.late_refusals = True
        stream = client.converse_stream(modelId=CLAUDE, messages=[ask("word " * 500)])["stream"]
        with closing(stream), pytest.raises(EventStreamError) as late:
            list(stream)
    assert recognise(late.value) is not None


def test_a_script_may_refuse_and_a_key_is_asked_for() -> None:
    busy = Refusal(429, "Slow down.")
    with serving([busy]) as provider, google(provider) as client, bedrock(provider) as other:
        with pytest.raises(errors.ClientError) as refused:
            client.models.generate_content(model=MODEL, contents="Hello")
        assert refused.value.status == "RESOURCE_EXHAUSTED"
        with pytest.raises(ClientError) as throttled:
            other.converse(modelId=CLAUDE, messages=[ask()])
    assert throttled.value.response["Error"]["Code"] == "ThrottlingException"
