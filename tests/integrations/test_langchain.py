"""Real LangChain and Deep Agents, with their real OpenAI and Anthropic models, against a provider on this machine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from support_integrations import Provider, agent_manager, calls_then_text, report, serving

from compact.integrations.langchain import CompactMiddleware
from compact.integrations.langchain.messages import View

TASK = "Read all reports and never change the units. " * 3


def get_report(number: int) -> str:
    """Gives a report."""
    return report(number)


def model_at(provider: Provider, kind: str) -> Any:
    if kind == "anthropic":
        return ChatAnthropic(model_name="claude-x", base_url=provider.url, api_key="none", max_retries=0)
    return ChatOpenAI(
        model="gpt-4o",
        base_url=f"{provider.url}/v1",
        api_key="none",
        max_retries=0,
        use_responses_api=kind == "responses",
    )


def go(agent: Any, asynchronous: bool = False) -> str:
    given = {"messages": [{"role": "user", "content": TASK}]}
    config = {"recursion_limit": 200, "configurable": {"thread_id": "t1"}}
    result = asyncio.run(agent.ainvoke(given, config)) if asynchronous else agent.invoke(given, config)
    return str(result["messages"][-1].text)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
def test_an_agent_past_its_window_sends_nothing_that_is_refused(kind: str, asynchronous: bool) -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(30)) as provider, manager:
        agent = create_agent(
            model_at(provider, kind), [get_report], system_prompt="You read reports.", middleware=[CompactMiddleware(manager)]
        )
        assert go(agent, asynchronous) == "Done after 30 reports."
    assert provider.refused == []
    assert len(provider.requests) == 31
    assert {request.kind for request in provider.requests} == {kind}
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)) >= 2
    assert {event["session_id"] for event in seen.events} == {"t1"}
