"""The real OpenAI Agents SDK, its real OpenAI client, and a provider on this machine that refuses what a real one would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from support_integrations import Provider, agent_manager, calls_then_text, report, serving

from compact import CompactManager
from compact.integrations.openai_agents import CompactHooks, CompactModel, CompactSession, compact_filter

TASK = "Read all reports and never change the units. " * 3


@function_tool
def get_report(number: int) -> str:
    """Gives a report."""
    return report(number)


@pytest.fixture(autouse=True)
def _no_upload() -> None:
    set_tracing_disabled(True)


def model_at(provider: Provider, kind: str = "responses") -> Model:
    client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    if kind == "chat":
        return OpenAIChatCompletionsModel("gpt-4o", client)
    return OpenAIResponsesModel("gpt-4o", client)


def agent_with(model: Model) -> Agent[Any]:
    return Agent("reader", instructions="You read reports.", model=model, tools=[get_report])


async def run(agent: Agent[Any], text: Any, streamed: bool, **settings: Any) -> str:
    if not streamed:
        return str((await Runner.run(agent, text, max_turns=100, **settings)).final_output)
    result = Runner.run_streamed(agent, text, max_turns=100, **settings)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def as_filter(manager: CompactManager, model: Model) -> tuple[Agent[Any], dict[str, Any]]:
    config = RunConfig(call_model_input_filter=compact_filter(manager))
    return agent_with(model), {"run_config": config, "hooks": CompactHooks(manager)}


def as_model(manager: CompactManager, model: Model) -> tuple[Agent[Any], dict[str, Any]]:
    return agent_with(CompactModel(model, manager)), {}


def as_both(manager: CompactManager, model: Model) -> tuple[Agent[Any], dict[str, Any]]:
    config = RunConfig(call_model_input_filter=compact_filter(manager))
    return agent_with(CompactModel(model, manager)), {"run_config": config}


Setting = Callable[[CompactManager, Model], tuple[Agent[Any], dict[str, Any]]]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["responses", "chat"])
@pytest.mark.parametrize("setting", [as_filter, as_model, as_both])
def test_sixty_turns_with_tools_past_the_window_and_nothing_is_refused(
    setting: Setting, kind: str, streamed: bool
) -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(60)) as provider, manager:
        agent, settings = setting(manager, model_at(provider, kind))
        output = asyncio.run(run(agent, TASK, streamed, **settings))
    assert output == "Done after 60 reports."
    assert provider.refused == []
    assert len(provider.requests) == 61
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) >= 2
    assert len(summarized) == len(set(summarized)) < 20, "one summary a step, not one a turn"
    assert {event["properties"]["code"] for event in seen.named("warning")} <= {"small_window"}
