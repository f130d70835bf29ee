"""The shapes of requests and replies, held against the types of the providers' own packages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import httpx
import pytest
from anthropic.types import ErrorResponse, Message, MessageParam, MessageTokensCount, RawMessageStreamEvent
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from google.genai import types as google
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.responses import Response, ResponseInputItemParam, ResponseStreamEvent
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from openai.types.shared import ErrorObject
from pydantic import BaseModel, TypeAdapter
from support.claude_and_openai_requests import LEGAL_ANTHROPIC, LEGAL_CHAT, LEGAL_RESPONSES
from support.google_and_bedrock_requests import LEGAL_BEDROCK, LEGAL_GOOGLE

from compact.tools.standins import Call, Fault, Provider, Refusal, Reply, serving

ASK: Any = [{"role": "user", "content": "Hello, and read the file."}]
SAYS: Any = [{"role": "user", "parts": [{"text": "Hello, and read the file."}]}]
TALK: Any = [{"role": "user", "content": [{"text": "Hello, and read the file."}]}]
REPLY = Reply(
    "Let me look at that, in some detail.", [Call("read", {"path": "a.txt"}), Call("ls")], "Hm, well."
)
BODIES: dict[str, tuple[str, Any]] = {
    "anthropic": ("/v1/messages", {"model": "claude-sonnet-5", "max_tokens": 9, "messages": ASK}),
    "chat": ("/v1/chat/completions", {"model": "gpt-4o", "messages": ASK}),
    "responses": ("/v1/responses", {"model": "gpt-4o", "input": ASK}),
    "gemini": ("/v1beta/models/gemini-2.5-flash:generateContent", {"contents": SAYS}),
    "converse": ("/model/anthropic.claude-sonnet-5/converse", {"messages": TALK}),
}
KEYS = {"x-api-key": "none", "authorization": "Bearer none"}
SERVICE = botocore.session.get_session().get_service_model("bedrock-runtime")


def post(provider: Provider, name: str, path: str = "", **more: Any) -> httpx.Response:
    own, body = BODIES[name]
    return httpx.post(f"{provider.url}{path or own}", json={**body, **more}, headers=KEYS)


def check_known(value: Any) -> None:
    """Every field is one that the package knows."""
    if isinstance(value, BaseModel):
        assert not value.model_extra, (type(value), value.model_extra)
        for name in type(value).model_fields:
            check_known(getattr(value, name))
    elif isinstance(value, list):
        for each in value:
            check_known(each)


def events_of(answer: httpx.Response) -> Iterator[Any]:
    for line in answer.text.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def check_aws(shape: Any, found: Any) -> None:
    report = ParamValidator().validate(found, shape)
    assert not report.has_errors(), report.generate_report()


# --- replies


@pytest.mark.parametrize(
    ("name", "whole", "event"),
    [
        ("anthropic", Message, TypeAdapter(RawMessageStreamEvent)),
        ("chat", ChatCompletion, TypeAdapter(ChatCompletionChunk)),
        ("responses", Response, TypeAdapter(ResponseStreamEvent)),
    ],
)
def test_replies_and_events_are_of_the_packages_types(name: str, whole: Any, event: Any) -> None:
    with serving([REPLY]) as provider:
        reply = post(provider, name).json()
        check_known(whole.model_validate(reply))
        events = list(events_of(post(provider, name, stream=True)))
        assert len(events) > 5
        for each in events:
            if each["type"] != "ping" if name == "anthropic" else True:
                check_known(event.validate_python(each))


def test_googles_replies_and_chunks_are_of_its_types() -> None:
    with serving([REPLY]) as provider:
        path = BODIES["gemini"][0]
        google.GenerateContentResponse.model_validate(post(provider, "gemini").json())
        streamed = post(provider, "gemini", path.replace(":generate", ":streamGenerate"))
        chunks = [google.GenerateContentResponse.model_validate(each) for each in events_of(streamed)]
        assert len(chunks) > 2
        counted = post(provider, "gemini", path.replace(":generateContent", ":countTokens")).json()
        assert google.CountTokensResponse.model_validate(counted).total_tokens


def test_bedrocks_replies_and_events_are_of_its_shapes() -> None:
    with serving([REPLY]) as provider:
        check_aws(SERVICE.shape_for("ConverseResponse"), post(provider, "converse").json())
        path = BODIES["converse"][0]
        buffer = EventStreamBuffer()
        buffer.add_data(post(provider, "converse", f"{path}-stream").content)
        shapes = SERVICE.shape_for("ConverseStreamOutput").members
        kinds = []
        for event in buffer:
            kind = event.headers[":event-type"]
            kinds.append(kind)
            check_aws(shapes[kind], json.loads(event.payload))
        assert kinds[0] == "messageStart"
        assert kinds[-1] == "metadata"
        counted = httpx.post(
            f"{provider.url}{path.replace('converse', 'count-tokens')}",
            json={"input": {"converse": {"messages": TALK}}},
            headers=KEYS,
        ).json()
        check_aws(SERVICE.shape_for("CountTokensResponse"), counted)


def test_counts_are_of_the_packages_types() -> None:
    with serving([REPLY]) as provider:
        claude = post(provider, "anthropic", "/v1/messages/count_tokens").json()
        check_known(MessageTokensCount.model_validate(claude))
        items = post(provider, "responses", "/v1/responses/input_tokens").json()
        check_known(InputTokenCountResponse.model_validate(items))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("answer", [Fault("rate_limited"), Fault("server_error"), Fault("overloaded"), Refusal(400, "No.")])  # fmt: skip
def test_errors_are_of_the_providers_shape(name: str, answer: Any) -> None:
    with serving([answer]) as provider:
        found = post(provider, name)
    body = found.json()
    if name == "anthropic":
        check_known(ErrorResponse.model_validate(body))
    elif name in ("chat", "responses"):
        check_known(ErrorObject.model_validate(body["error"]))
    elif name == "gemini":
        assert body["error"].keys() == {"code", "message", "status"}
        assert body["error"]["code"] == found.status_code
        assert body["error"]["status"].isupper()
    else:
        kind = found.headers["x-amzn-ErrorType"]
        assert kind in {shape.name for shape in SERVICE.operation_model("Converse").error_shapes}
        check_aws(SERVICE.shape_for(kind), body)


# --- requests


def exhausted(value: Any) -> Any:
    """A validated value with what is validated only while it is read."""
    if isinstance(value, Mapping):
        return {key: exhausted(each) for key, each in value.items()}
    if isinstance(value, str | bytes | int | float) or value is None:
        return value
    return [exhausted(each) for each in value]


def check_request(adapter: TypeAdapter[Any], messages: Any) -> None:
    for message in [messages] if isinstance(messages, str) else messages:
        exhausted(adapter.validate_python(message))


@pytest.mark.parametrize("name", LEGAL_ANTHROPIC)
def test_what_anthropic_accepts_is_of_its_types(name: str) -> None:
    check_request(TypeAdapter(MessageParam), LEGAL_ANTHROPIC[name]["messages"])


@pytest.mark.parametrize("name", LEGAL_CHAT)
def test_what_chat_accepts_is_of_its_types(name: str) -> None:
    check_request(TypeAdapter(ChatCompletionMessageParam), LEGAL_CHAT[name]["messages"])


# The package asks for an id, the API does not: what is encrypted needs none.
@pytest.mark.parametrize("name", [name for name in LEGAL_RESPONSES if "without id" not in name])
def test_what_responses_accept_is_of_its_types(name: str) -> None:
    items = LEGAL_RESPONSES[name]["input"]
    if not isinstance(items, str):
        check_request(TypeAdapter(ResponseInputItemParam), items)


@pytest.mark.parametrize("name", LEGAL_GOOGLE)
def test_what_google_accepts_is_of_its_types(name: str) -> None:
    for content in LEGAL_GOOGLE[name]["contents"]:
        google.Content.model_validate(content)


@pytest.mark.parametrize("name", LEGAL_BEDROCK)
def test_what_bedrock_accepts_is_of_its_shapes(name: str) -> None:
    body = {"modelId": "m", **LEGAL_BEDROCK[name]}
    check_aws(SERVICE.shape_for("ConverseRequest"), body)
