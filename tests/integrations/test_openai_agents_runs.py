"""Runs of different people, one after the other in one task: the id of a stored session ends with its run."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession, trace
from openai import AsyncOpenAI

from compact import CompactManager
from compact.integrations.openai_agents import CompactModel, CompactSession, compact_filter, recall_tools
from compact.tools.standins import Call, Provider, Reply, serving

WINDOW = 8_000


def script(request: Any) -> Any:
    newest = request.body["messages"][-1]
    if newest.get("role") == "user" and "GREP" in str(newest["content"]):
        return Reply("", [Call("grep", {"pattern": r"-\d+"})])
    return "ok"


def a_manager() -> CompactManager:
    return CompactManager(model="gpt-4o", max_context_tokens=WINDOW, archive={"adapter": "memory"})


def an_agent(manager: CompactManager, provider: Provider, part: str) -> Agent[Any]:
    client = AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel("gpt-4o", client)
    return Agent(
        "a",
        model=CompactModel(model, manager) if "model" in part else model,
        tools=list(recall_tools(manager)),
    )


async def talk_in_a_session(agent: Agent[Any], session: CompactSession, config: RunConfig) -> None:
    await Runner.run(agent, "Hi", session=session, run_config=config)
    for n in range(10):
        own = f"Bob keeps file {n} under the code Bob-{n * 7919}. " * 60
        await Runner.run(agent, own, session=session, run_config=config)


@pytest.mark.parametrize("part", ["model", "filter", "filter model"])
@pytest.mark.parametrize("named", ["by its group", "by nothing", "inside one trace"])
@pytest.mark.parametrize("managers", ["one manager", "another manager"])
def test_a_run_without_a_session_is_not_of_the_session_before_it(
    part: str, named: str, managers: str
) -> None:
    with a_manager() as manager, a_manager() as another, serving(script, window=WINDOW) as provider:

        def config(chosen: CompactManager, group: str | None = None) -> RunConfig:
            chosen_filter = compact_filter(chosen) if "filter" in part else None
            return RunConfig(group_id=group, call_model_input_filter=chosen_filter)

        async def run() -> list[Any]:
            agent = an_agent(manager, provider, part)
            session = CompactSession(SQLiteSession("Bob"), manager, agent=agent)
            with trace("requests") if named == "inside one trace" else nullcontext():
                await talk_in_a_session(agent, session, config(manager))
                assert manager.archive.sessions() == ["Bob"]
                chosen = manager if managers == "one manager" else another
                agent = an_agent(chosen, provider, part)
                settings = config(chosen, "Ann" if named == "by its group" else None)
                said = await Runner.run(agent, "Hi", run_config=settings)
                asked: list[Any] = [
                    *said.to_input_list(),
                    {"role": "user", "content": "GREP please, I am Ann"},
                ]
                return (await Runner.run(agent, asked, run_config=settings)).to_input_list()

        found = [item["output"] for item in asyncio.run(run()) if item.get("type") == "function_call_output"]
        assert len(found) == 1
        assert "no line matches" in found[0]
        assert "Bob" not in found[0]
        assert "Bob" not in another.archive.sessions()
        assert provider.refused == []


@pytest.mark.parametrize("part", ["model", "filter", "filter model"])
def test_an_opening_that_many_are_sent_is_one_session_per_run(part: str) -> None:
    """The filter and the model see each list in turn, and are of one mind about it."""
    with a_manager() as manager, serving(["ok"], window=WINDOW) as provider:
        start: Any = {"role": "user", "content": "Begin the interview."}
        agent = an_agent(manager, provider, part)
        chosen_filter = compact_filter(manager) if "filter" in part else None
        config = RunConfig(call_model_input_filter=chosen_filter)

        async def run() -> None:
            for who in ("Ann", "Bob"):
                items: list[Any] = [start]
                for n in range(10):
                    said = await Runner.run(agent, items, run_config=config)
                    own = f"{who} keeps file {n} under the code {who}-{n * 7919}. " * 60
                    items = [*said.to_input_list(), {"role": "user", "content": own}]

        asyncio.run(run())
        names = manager.archive.sessions()
        texts = {name: str(manager.recall_tools(name)["grep"](pattern=r"(Ann|Bob)-\d+")) for name in names}
        assert len([name for name in names if manager.archive.steps(name)]) == 2
        assert all(("Ann-" in text) != ("Bob-" in text) for text in texts.values() if "file" in text)
