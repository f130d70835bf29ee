"""Deep Agents bring a summarization, a `read_file` and sub-agents of their own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from support.hosts import SYSTEM, TASK, get_report, langchain_model
from support.integrations import WINDOW, Provider, Reply, agent_manager, calls_then_text, serving

from compact.integrations.langchain import CompactMiddleware

OWN = 4_000
"""Tokens of the prompts and tools that Deep Agents bring."""
REPORTS = 30


def deep_agent(provider: Provider, middleware: list[Any], **settings: Any) -> Any:
    model = langchain_model(provider, "chat")
    # Deep Agents summarize at a share of what the model's profile says.
    model.profile = {"max_input_tokens": WINDOW + OWN}
    return create_deep_agent(model, [get_report], system_prompt=SYSTEM, middleware=middleware, **settings)


def run(agent: Any, text: str = TASK) -> str:
    given = {"messages": [{"role": "user", "content": text}]}
    config: Any = {"recursion_limit": 400, "configurable": {"thread_id": "thread"}}
    return str(asyncio.run(agent.ainvoke(given, config))["messages"][-1].text)


def asked_for_summaries(provider: Provider) -> int:
    """Requests that an agent's own turn does not make: they offer no tools."""
    return sum(not request.body.get("tools") for request in provider.requests)


def test_without_compact_deep_agents_ask_for_summaries() -> None:
    """What the next test would see if their own summarization ran."""
    with serving(calls_then_text(REPORTS), window=10 * WINDOW) as provider:
        run(deep_agent(provider, []))
    assert asked_for_summaries(provider) > 0


def test_compact_takes_the_place_of_their_summarization() -> None:
    manager, seen = agent_manager(WINDOW + OWN)
    with serving(calls_then_text(REPORTS), window=WINDOW + OWN) as provider, manager:
        said = run(deep_agent(provider, [CompactMiddleware(manager)]))
    assert said == f"Done after {REPORTS} reports."
    assert provider.refused == []
    assert asked_for_summaries(provider) == 0
    assert len(provider.requests) == REPORTS + 1
    assert seen.named("summary_created")


def test_their_sub_agents_are_compacted_too_each_in_a_session_of_its_own() -> None:
    manager, seen = agent_manager(WINDOW + OWN)

    def script(n: int) -> Reply:
        if n == 1:
            task = {"description": "Read all reports.", "subagent_type": "general-purpose"}
            return Reply(calls=(("ask_1", "task", task),))
        return calls_then_text(REPORTS)(n) if n <= REPORTS else Reply("All read.")

    with serving(script, window=WINDOW + OWN) as provider, manager:
        assert run(deep_agent(provider, [CompactMiddleware(manager)])) == "All read."
    assert provider.refused == []
    assert asked_for_summaries(provider) == 0
    assert {event["session_id"] for event in seen.named("summary_created")} == {"thread.2"}
    assert {event["session_id"] for event in seen.events} == {"thread", "thread.2"}


def test_their_own_read_file_stays_theirs() -> None:
    manager, _ = agent_manager(WINDOW + OWN)

    def script(n: int) -> Reply:
        if n == 1:
            written = {"file_path": "/notes.txt", "content": "kept by the agent itself"}
            return Reply(calls=(("w", "write_file", written),))
        if n == REPORTS:
            return Reply(calls=(("r", "read_file", {"file_path": "/notes.txt"}),))
        return calls_then_text(REPORTS)(n)

    with serving(script, window=WINDOW + OWN) as provider, manager:
        run(deep_agent(provider, [CompactMiddleware(manager)]))
    (answer,) = [
        message["content"] for message in provider.requests[-1].messages if message.get("tool_call_id") == "r"
    ]
    assert "kept by the agent itself" in answer
    names = [tool["function"]["name"] for tool in provider.requests[-1].body["tools"]]
    assert len(names) == len(set(names))
    assert {"read_file", "grep", "ls", "archive_read_file", "archive_search"} <= set(names)


def test_beside_langchains_own_summarization_it_is_refused() -> None:
    """Both would shorten the same history. LangChain refuses two middleware of one name."""
    manager, _ = agent_manager()
    with serving(calls_then_text(1)) as provider, manager:
        model = langchain_model(provider, "chat")
        both: list[Any] = [SummarizationMiddleware(model), CompactMiddleware(manager)]
        with pytest.raises(AssertionError, match="duplicate middleware"):
            create_agent(model, [get_report], middleware=both)
    assert json.dumps(provider.requests) == "[]"
