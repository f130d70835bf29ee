"""What every integration takes: a manager or a configuration, the request's own model; and what it says to anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, SQLiteSession
from langchain.agents import create_agent
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from support.hosts import TASK, get_report, langchain_model, openai_client, sdk_run
from support.integrations import Provider, agent_manager, calls_then_text, serving

from compact import CompactConfig, CompactManager, ConfigError
from compact.integrations.hooks import abefore_model_call, before_model_call
from compact.integrations.langchain import CompactMiddleware
from compact.integrations.litellm import CompactHook
from compact.integrations.openai_agents import (
    CompactHooks,
    CompactModel,
    CompactSession,
    compact_filter,
    recall_tools,
)
from compact.integrations.pydantic_ai import CompactHistory
from compact.integrations.recall import RecallTools
from compact.tokens.windows import window_of

MODEL: Any = OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI(base_url="http://127.0.0.1:9", api_key="none"))
TAKERS: dict[str, Callable[[Any], Any]] = {
    "CompactMiddleware": CompactMiddleware,
    "CompactHistory": CompactHistory,
    "compact_filter": compact_filter,
    "CompactModel": lambda manager: CompactModel(MODEL, manager),
    "CompactSession": lambda manager: CompactSession(SQLiteSession("s"), manager),
}
SHARERS: dict[str, Callable[[Any], Any]] = {
    "RecallTools": RecallTools,
    "recall_tools": recall_tools,
    "CompactHooks": CompactHooks,
    "CompactHook": CompactHook,
    "before_model_call": before_model_call,
    "abefore_model_call": abefore_model_call,
}


@pytest.mark.parametrize("wrong", ["gpt-4o", 42, {"model": "gpt-4o"}, CompactManager], ids=repr)
@pytest.mark.parametrize("name", [*TAKERS, *SHARERS])
def test_what_is_no_manager_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{name} takes a CompactManager") as refused:
        {**TAKERS, **SHARERS}[name](wrong)
    assert (wrong if isinstance(wrong, type) else type(wrong)).__name__ in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("name", TAKERS)
def test_a_configuration_or_nothing_makes_a_manager(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert TAKERS[name](CompactConfig(model="gpt-4o", archive={"adapter": "memory"})) is not None
    assert TAKERS[name](None) is not None


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda manager: CompactModel(manager, MODEL), "CompactModel wraps a Model"),
        (lambda manager: CompactModel("gpt-4o", manager), "CompactModel wraps a Model"),  # type: ignore[arg-type]
        (lambda manager: CompactSession("chat-7", manager), "CompactSession wraps a session"),  # type: ignore[arg-type]
        (lambda manager: CompactSession(manager, SQLiteSession("s")), "CompactSession wraps a session"),  # type: ignore[arg-type]
        (lambda manager: CompactMiddleware(manager, recall_tools="yes"), "recall_tools must be"),  # type: ignore[arg-type]
        (lambda manager: CompactHistory(manager, recall_tools="on"), "recall_tools must be"),  # type: ignore[arg-type]
        (lambda manager: RecallTools(manager, 42), "session_id"),  # type: ignore[arg-type]
        (lambda manager: recall_tools(manager, ""), "session_id"),
    ],
)
def test_other_arguments_of_the_wrong_kind_are_refused_by_name(
    make: Callable[[Any], Any], named: str
) -> None:
    manager, _ = agent_manager()
    with manager, pytest.raises(ConfigError, match=named):
        make(manager)


@pytest.mark.parametrize("wrong", ["", " \n", 7, [], {"id": 1}, True], ids=repr)
@pytest.mark.parametrize("make", [CompactMiddleware, CompactHistory, CompactHook])
def test_a_session_that_nothing_can_name_is_refused_when_the_part_is_made(
    make: Callable[..., Any], wrong: Any
) -> None:
    manager, _ = agent_manager()
    with manager:
        with pytest.raises(ConfigError, match="session_id must"):
            make(manager, session_id=wrong)
        for right in (None, "s", lambda call: "s"):
            make(manager, session_id=right)


# --- the request's own model


def on_langchain(provider: Provider, manager: CompactManager, model: str) -> None:
    chat = langchain_model(provider, "chat")
    chat.model_name = model
    agent: Any = create_agent(chat, [get_report], middleware=[CompactMiddleware(manager)])
    agent.invoke({"messages": TASK})


def on_pydantic(provider: Provider, manager: CompactManager, model: str) -> None:
    client = OpenAIProvider(openai_client=openai_client(provider, True))
    chat = OpenAIChatModel(model, provider=client)
    agent: Any = PydanticAgent(chat, capabilities=[CompactHistory(manager)])
    asyncio.run(agent.run(TASK))


def on_agents(part: str) -> Callable[[Provider, CompactManager, str], None]:
    def run(provider: Provider, manager: CompactManager, model: str) -> None:
        chat: Any = OpenAIChatCompletionsModel(model, openai_client(provider, True))
        config = RunConfig(call_model_input_filter=compact_filter(manager)) if part == "filter" else None
        agent: Agent[Any] = Agent("a", model=CompactModel(chat, manager) if part == "model" else chat)
        session = CompactSession(SQLiteSession("s"), manager, agent=agent) if part == "session" else None
        for _ in range(2):
            asyncio.run(sdk_run(agent, TASK, run_config=config, session=session))

    return run


@pytest.mark.parametrize("model", ["gpt-4", "openai/gpt-4-32k", "models/gemini-2.5-pro"])
@pytest.mark.parametrize(
    "host",
    [on_langchain, on_pydantic, on_agents("filter"), on_agents("model"), on_agents("session")],
    ids=["langchain", "pydantic", "agents-filter", "agents-model", "agents-session"],
)
def test_the_requests_model_decides_the_window(host: Any, model: str) -> None:
    manager, seen = agent_manager(128_000)
    with serving(calls_then_text(0), window=128_000) as provider, manager:
        host(provider, manager, model)
    counted = [event["properties"] for event in seen.named("token_estimate")]
    assert {each["model"] for each in counted} == {model}
    assert {each["max_tokens"] for each in counted} == {window_of(model, windows={}).tokens}


@pytest.mark.parametrize(
    ("prefixed", "plain"),
    [
        ("openai:gpt-4", "gpt-4"),
        ("openai-responses:gpt-4o-mini", "gpt-4o-mini"),
        ("litellm/openai/gpt-4", "gpt-4"),
        ("litellm/anthropic/claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("any-llm/openai/gpt-4o", "gpt-4o"),
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("google-gla:gemini-2.5-pro", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("azure/gpt-4o", "gpt-4o"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "gpt-4o-mini"),
    ],
)
def test_a_name_with_a_providers_prefix_is_the_model(prefixed: str, plain: str) -> None:
    with CompactManager(CompactConfig(archive={"adapter": "memory"})) as manager:
        assert manager.models.window(prefixed) == manager.models.window(plain)
        assert manager.models.window(prefixed).known
        assert manager.meter(prefixed).count_text("some text") == manager.meter(plain).count_text("some text")
