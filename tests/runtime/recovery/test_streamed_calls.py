"""`manager.call` with a model call that streams: a refusal before the first content is survived, and one behind it is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import boto3  # type: ignore[import-untyped]
import httpx
import openai
import pytest
from botocore.config import Config  # type: ignore[import-untyped]
from google import genai

from compact import CompactConfig, CompactManager, ContextOverflow
from compact.testing import Provider, Received, Refusal, serving

WINDOW = 2_500
MODEL = {
    "anthropic": "claude-sonnet-5",
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "gemini": "gemini-2.5-flash",
    "converse": "m",
}


def turn(dialect: str, n: int) -> list[Any]:
    """A question with its answer, in the words of a dialect."""
    asks, says = f"Question {n}?", f"Answer {n}: " + "it depends on the weather. " * 30
    if dialect == "gemini":
        return [{"role": "user", "parts": [{"text": asks}]}, {"role": "model", "parts": [{"text": says}]}]
    if dialect == "converse":
        return [
            {"role": "user", "content": [{"text": asks}]},
            {"role": "assistant", "content": [{"text": says}]},
        ]
    return [{"role": "user", "content": asks}, {"role": "assistant", "content": says}]


def history(dialect: str) -> list[Any]:
    return [*(each for n in range(24) for each in turn(dialect, n)), turn(dialect, 99)[0]]


class Streaming:
    """One streamed request to each provider, and the texts in its events."""

    def __init__(self, provider: Provider, dialect: str) -> None:
        self.dialect, self.provider = dialect, provider
        self.client: Any = getattr(self, f"make_{dialect}")()

    def make_anthropic(self) -> Any:
        return anthropic.Anthropic(base_url=self.provider.url, api_key="none", max_retries=0)

    def make_chat(self) -> Any:
        return openai.OpenAI(base_url=self.provider.openai_url, api_key="none", max_retries=0)

    make_responses = make_chat

    def make_gemini(self) -> Any:
        return genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=self.provider.url))

    def make_converse(self) -> Any:
        return boto3.client(
            "bedrock-runtime",
            endpoint_url=self.provider.url,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}),
        )

    def send(self, messages: Any) -> Any:
        model, client = MODEL[self.dialect], self.client
        match self.dialect:
            case "anthropic":
                return client.messages.create(model=model, max_tokens=9, messages=messages, stream=True)
            case "chat":
                return client.chat.completions.create(model=model, messages=messages, stream=True)
            case "responses":
                return client.responses.create(model=model, input=messages, stream=True)
            case "gemini":
                return client.models.generate_content_stream(model=model, contents=messages)
            case _:
                return self.events(client.converse_stream(modelId=model, messages=messages)["stream"])

    def events(self, stream: Any) -> Iterator[Any]:
        """boto3's events as an iterator that ends with its connection."""
        try:
            yield from stream
        finally:
            stream.close()

    def text(self, stream: Any) -> str:
        return "".join(map(text_of, stream))


def text_of(event: Any) -> str:
    if isinstance(event, dict):
        return str(event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""))
    if hasattr(event, "candidates"):
        return event.text or ""
    if hasattr(event, "choices"):
        return (event.choices[0].delta.content or "") if event.choices else ""
    delta = getattr(event, "delta", "")
    return delta if isinstance(delta, str) else getattr(delta, "text", "") or ""


@contextmanager
def session(script: Any, dialect: str, **settings: Any) -> Iterator[tuple[CompactManager, Streaming]]:
    config = CompactConfig(
        model=MODEL[dialect],
        max_context_tokens=100_000,
        windows={MODEL[dialect]: 100_000},
        archive={"adapter": "memory"},
    )
    with CompactManager(config) as manager, serving(script, **settings) as provider:
        streaming = Streaming(provider, dialect)
        yield manager, streaming
        streaming.client.close()


def reads(request: Received) -> str:
    return f"All {len(request.messages)} read."


@pytest.mark.parametrize("dialect", MODEL)
def test_a_refusal_before_the_first_content_is_survived(dialect: str) -> None:
    with session(reads, dialect, window=WINDOW, late_refusals=True) as (manager, streaming):
        stream = manager.call("s", history(dialect), streaming.send, dialect=dialect)
        text = streaming.text(stream)
        provider = streaming.provider
        assert provider.refused
        assert len(provider.accepted) == 1
        assert text == f"All {len(provider.accepted[0].messages)} read.", "nothing of the stream is lost"
        assert len(provider.accepted[0].messages) < len(history(dialect))


@pytest.mark.parametrize("dialect", MODEL)
def test_a_refusal_behind_the_first_content_is_raised_as_it_is(dialect: str) -> None:
    long = Refusal(400, "prompt is too long: 9 tokens > 5 maximum", late=True, behind="It begins. ")
    seen: list[str] = []
    with session([long], dialect) as (manager, streaming):
        stream = manager.call("s", history(dialect), streaming.send, dialect=dialect)
        read = map(seen.append, map(text_of, stream))
        if dialect == "responses":  # its package hands out the event and does not raise
            list(read)
        else:
            with pytest.raises(Exception, match="prompt is too long") as raised:
                list(read)
            assert not isinstance(raised.value, ContextOverflow)
        assert "".join(seen) == "It begins. "
        assert len(streaming.provider.requests) == 1


@pytest.mark.parametrize("dialect", ["anthropic", "chat", "responses", "gemini"])
def test_a_stream_on_an_event_loop_is_survived_too(dialect: str) -> None:
    def async_client(provider: Provider) -> Any:
        if dialect == "anthropic":
            return anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0)
        if dialect == "gemini":
            options = genai.types.HttpOptions(
                base_url=provider.url, async_client_args={"transport": httpx.AsyncHTTPTransport()}
            )
            return genai.Client(api_key="none", http_options=options).aio
        return openai.AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)

    async def run(manager: CompactManager, streaming: Streaming) -> str:
        streaming.client.close()
        streaming.client = client = async_client(streaming.provider)

        async def send(messages: Any) -> Any:
            return await streaming.send(messages)

        stream = await manager.acall("s", history(dialect), send, dialect=dialect)
        text = "".join([text_of(event) async for event in stream])
        await (client.aclose() if dialect == "gemini" else client.close())
        streaming.client = Closed()
        return text

    with session(reads, dialect, window=WINDOW, late_refusals=True) as (manager, streaming):
        text = asyncio.run(run(manager, streaming))
        provider = streaming.provider
        assert provider.refused
        assert len(provider.accepted) == 1
        assert text == f"All {len(provider.accepted[0].messages)} read."


class Closed:
    """A client that is closed already."""

    def close(self) -> None:
        """Do nothing."""


def test_a_sync_stream_of_an_async_call_is_read_in_a_thread() -> None:
    with session(reads, "chat", window=WINDOW, late_refusals=True) as (manager, streaming):

        async def run() -> str:
            return streaming.text(await manager.acall("s", history("chat"), streaming.send, dialect="chat"))

        assert asyncio.run(run()).startswith("All ")
        assert streaming.provider.refused


Chunks = Callable[[Any], Iterator[Any]]


def plain_chunks(*refused: Any) -> tuple[Chunks, list[int]]:
    """A host's own generator of dicts, as they come off the wire: first these, then on the next call an answer."""
    sizes: list[int] = []

    def send(messages: Any) -> Iterator[Any]:
        sizes.append(len(messages))
        if len(sizes) == 1:
            yield from refused
        else:
            yield {"choices": [{"delta": {"content": "Read."}}]}

    return send, sizes


LENGTH = {"code": "context_length_exceeded", "message": "This model's maximum context length is 2500 tokens."}
OPENED = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}


@pytest.mark.parametrize(
    "events",
    [
        [{"error": LENGTH}],
        [OPENED, {"error": LENGTH}],
        [{"type": "response.created"}, {"type": "error", **LENGTH}],
        [{"type": "response.created"}, {"type": "response.failed", "response": {"error": LENGTH}}],
        [{"type": "message_start"}, {"type": "ping"}, {"type": "error", "error": {"message": "prompt is too long: 9000 tokens > 2500 maximum"}}],
    ],
)  # fmt: skip
def test_a_hosts_own_generator_of_events_is_survived(events: list[Any]) -> None:
    send, sizes = plain_chunks(*events)
    with session(reads, "chat") as (manager, _):
        found = list(manager.call("s", history("chat"), send, dialect="chat"))
    assert found == [{"choices": [{"delta": {"content": "Read."}}]}]
    assert sizes[1] < sizes[0]


def test_another_error_in_a_stream_reaches_the_host_with_everything_before_it() -> None:
    tired = {"error": {"code": "server_error", "message": "The server is tired."}}
    send, sizes = plain_chunks(OPENED, tired, {"choices": []})
    with session(reads, "chat") as (manager, _):
        assert list(manager.call("s", history("chat"), send, dialect="chat")) == [
            OPENED,
            tired,
            {"choices": []},
        ]
    assert len(sizes) == 1
