"""Real OpenAI and Anthropic clients, wrapped, against a provider on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from support_integrations import Provider, Reply, agent_manager, calls_then_text, report, serving

from compact import CompactManager
from compact.errors import ConfigError
from compact.integrations.recovery import RecoveryTools

TASK = "Read all reports and never change the units. " * 3
SYSTEM = "You read reports."
PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def openai_at(provider: Provider, asynchronous: bool = False) -> Any:
    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return kind(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)


def anthropic_at(provider: Provider, asynchronous: bool = False) -> Any:
    kind = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    return kind(base_url=provider.url, api_key="none", max_retries=0)


class Chat:
    """A plain loop over chat completions, as people write it."""

    at = staticmethod(openai_at)

    def __init__(self) -> None:
        function = {"name": "get_report", "description": "Gives a report.", "parameters": PARAMETERS}
        self.tools = [{"type": "function", "function": function}]
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        return {"model": "gpt-4o", "messages": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.chat.completions.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.chat.completions.stream(**self.request(), stream_options={"include_usage": True})

    def final(self, stream: Any) -> Any:
        return stream.get_final_completion()

    def took(self, reply: Any) -> str | None:
        message = reply.choices[0].message
        self.messages.append(message)
        for call in message.tool_calls or ():
            output = report(json.loads(call.function.arguments)["number"])
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
        return None if message.tool_calls else message.content


class Responses(Chat):
    def __init__(self) -> None:
        self.tools = [
            {"type": "function", "name": "get_report", "description": "Gives a report.", "parameters": PARAMETERS, "strict": False}
        ]
        self.messages = [{"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        return {"model": "gpt-4o", "instructions": SYSTEM, "input": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.responses.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.responses.stream(**self.request())

    def final(self, stream: Any) -> Any:
        return stream.get_final_response()

    def took(self, reply: Any) -> str | None:
        self.messages += reply.output
        calls = [item for item in reply.output if item.type == "function_call"]
        for call in calls:
            output = report(json.loads(call.arguments)["number"])
            self.messages.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        return None if calls else reply.output_text


class Anthropic(Chat):
    at = staticmethod(anthropic_at)

    def __init__(self) -> None:
        self.tools = [{"name": "get_report", "description": "Gives a report.", "input_schema": PARAMETERS}]
        self.messages = [{"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        return {"model": "claude-x", "max_tokens": 500, "system": SYSTEM, "messages": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.messages.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.messages.stream(**self.request())

    def final(self, stream: Any) -> Any:
        return stream.get_final_message()

    def took(self, reply: Any) -> str | None:
        self.messages.append({"role": "assistant", "content": reply.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": report(block.input["number"])}
            for block in reply.content
            if block.type == "tool_use"
        ]
        if results:
            self.messages.append({"role": "user", "content": results})
        return None if results else reply.content[0].text


Loop = Callable[[], Chat]
LOOPS = [Chat, Responses, Anthropic]


def whole(loop: Chat, client: Any) -> str:
    while True:
        said = loop.took(loop.create(client))
        if said is not None:
            return said


def streamed(loop: Chat, client: Any) -> str:
    while True:
        with loop.stream(client) as stream:
            reply = loop.final(stream)
        said = loop.took(reply)
        if said is not None:
            return said


def whole_async(loop: Chat, client: Any) -> str:
    async def go() -> str:
        while True:
            said = loop.took(await loop.create(client))
            if said is not None:
                return said

    return asyncio.run(go())


def streamed_async(loop: Chat, client: Any) -> str:
    async def go() -> str:
        while True:
            async with loop.stream(client) as stream:
                reply = await loop.final(stream)
            said = loop.took(reply)
            if said is not None:
                return said

    return asyncio.run(go())


WAYS = [whole, streamed, whole_async, streamed_async]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_wrapped_client_sends_nothing_that_is_refused(loop: type[Chat], way: Callable[[Chat, Any], str]) -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(30)) as provider, manager:
        client = manager.wrap(loop.at(provider, "async" in way.__name__))
        assert way(loop(), client) == "Done after 30 reports."
    assert provider.refused == []
    assert len(provider.requests) == 31
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) >= 2
    assert len(summarized) == len(set(summarized))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_provider_with_a_smaller_window_than_was_said_is_not_noticed(
    loop: type[Chat], way: Callable[[Chat, Any], str]
) -> None:
    manager, seen = agent_manager(window=16_000)
    with serving(calls_then_text(22), window=9_000, late_refusals=True) as provider, manager:
        client = manager.wrap(loop.at(provider, "async" in way.__name__))
        assert way(loop(), client) == "Done after 22 reports."
    assert set(provider.refused) == {"too long"}
    assert len(provider.refused) <= 4, "what the provider refused once is remembered"
