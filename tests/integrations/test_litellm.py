"""Real LiteLLM, against a provider on this machine."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import litellm
import pytest
from support_integrations import Provider, agent_manager, calls_then_text, report, serving

from compact.integrations.litellm import CompactHook

# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TASK = "Read all reports and never change the units. " * 3
PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
FUNCTION = {"name": "get_report", "description": "Gives a report.", "parameters": PARAMETERS}


def request_for(provider: Provider, kind: str, messages: list[Any]) -> dict[str, Any]:
    where = {"chat": ("openai/gpt-4o", f"{provider.url}/v1"), "anthropic": ("anthropic/claude-3-5-sonnet-20241022", provider.url)}
    model, base = where[kind]
    return {
        "model": model,
        "api_base": base,
        "api_key": "none",
        "num_retries": 0,
        "messages": messages,
        "tools": [{"type": "function", "function": FUNCTION}],
    }


def took(messages: list[Any], message: Any) -> str | None:
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or ():
        output = report(json.loads(call.function.arguments)["number"])
        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
    return None if message.tool_calls else message.content


def go(provider: Provider, hook: CompactHook, kind: str, way: str) -> str:
    messages: list[Any] = [{"role": "system", "content": "You read reports."}, {"role": "user", "content": TASK}]

    async def awaited() -> str:
        completion = hook(litellm.acompletion)
        while True:
            reply = await completion(**request_for(provider, kind, messages))
            said = took(messages, reply.choices[0].message)
            if said is not None:
                return said

    if way == "async":
        return asyncio.run(awaited())
    completion = hook(litellm.completion)
    while True:
        request = request_for(provider, kind, messages)
        if way == "streamed":
            reply: Any = litellm.stream_chunk_builder(list(completion(**request, stream=True)))
        else:
            reply = completion(request.pop("model"), request.pop("messages"), **request)
        said = took(messages, reply.choices[0].message)
        if said is not None:
            return said


@pytest.mark.parametrize("way", ["whole", "streamed", "async"])
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_a_loop_past_its_window_sends_nothing_that_is_refused(kind: str, way: str) -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(30)) as provider, manager:
        assert go(provider, CompactHook(manager), kind, way) == "Done after 30 reports."
    assert provider.refused == []
    assert len(provider.requests) == 31
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)) >= 2
    assert {event["session_id"] for event in seen.events} == {"litellm"}
