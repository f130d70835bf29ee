"""Real pydantic-ai with its real OpenAI and Anthropic models, against a provider on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from support_integrations import Provider, agent_manager, calls_then_text, report, serving

from compact.integrations.pydantic_ai import CompactHistory

TASK = "Read all reports and never change the units. " * 3


def model_at(provider: Provider, kind: str) -> Any:
    if kind == "anthropic":
        client = AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0)
        return AnthropicModel("claude-x", provider=AnthropicProvider(anthropic_client=client))
    openai = OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0))
    return OpenAIResponsesModel("gpt-4o", provider=openai) if kind == "responses" else OpenAIChatModel("gpt-4o", provider=openai)


def agent_at(provider: Provider, kind: str, capability: CompactHistory) -> Agent[Any, str]:
    agent: Agent[Any, str] = Agent(
        model_at(provider, kind), instructions="You read reports.", capabilities=[capability]
    )

    @agent.tool_plain
    def get_report(number: int) -> str:
        """Gives a report."""
        return report(number)

    return agent


async def run(agent: Agent[Any, str], streamed: bool, text: str = TASK, **more: Any) -> str:
    limits = UsageLimits(request_limit=100)

    async def seen(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    handler = seen if streamed else None
    return (await agent.run(text, usage_limits=limits, event_stream_handler=handler, **more)).output


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
def test_an_agent_past_its_window_sends_nothing_that_is_refused(kind: str, streamed: bool) -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(30)) as provider, manager:
        agent = agent_at(provider, kind, CompactHistory(manager))
        assert asyncio.run(run(agent, streamed)) == "Done after 30 reports."
    assert provider.refused == []
    assert len(provider.requests) == 31
    assert {request.kind for request in provider.requests} == {kind}
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)) >= 2
    assert len({event["session_id"] for event in seen.events}) == 1
