"""The plain hook: any object with `session_id` and `messages`."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from support.engine import turns
from support.hosts import TASK, sdk_agent, sdk_model, sdk_run
from support.integrations import agent_manager, calls_then_text, serving

from compact.integrations.hooks import abefore_model_call, before_model_call


def test_the_literal_form_of_the_compaction_specification_works() -> None:
    """In a run of the OpenAI Agents SDK past the window, against a provider that refuses what a real one would."""
    from agents import RunConfig
    from agents.run import CallModelData, ModelInputData

    manager, seen = agent_manager()

    def hook(ctx: Any) -> None:
        ctx.messages = manager.preflight(ctx.session_id, ctx.messages)

    def before_the_call(data: CallModelData[Any]) -> ModelInputData:
        ctx = SimpleNamespace(session_id="s", messages=data.model_data.input)
        hook(ctx)
        return ModelInputData(input=list(ctx.messages), instructions=data.model_data.instructions)

    with serving(calls_then_text(20)) as provider, manager:
        config = RunConfig(call_model_input_filter=before_the_call)
        said = asyncio.run(sdk_run(sdk_agent(sdk_model(provider)), TASK, run_config=config))
    assert said == "Done after 20 reports."
    assert provider.refused == []
    assert seen.named("summary_created")


def test_the_ready_made_hook_does_the_same_sync_and_async_and_counts_what_it_sees() -> None:
    manager, seen = agent_manager(4_000, guard={"min_context_tokens": 1000})
    given = turns(20)
    first = SimpleNamespace(session_id="a", messages=given, tools=[{"name": "t"}], system="You are kind.")
    second = SimpleNamespace(session_id="b", messages=given, tools=[{"name": "t"}], system="You are kind.")
    with manager:
        before_model_call(manager)(first)
        asyncio.run(abefore_model_call(manager)(second))
    assert first.messages == second.messages
    assert len(first.messages) < 40
    shares = seen.named("token_estimate")[0]["properties"]["breakdown"]
    assert shares["system"] > 0 < shares["tools_schema"]
