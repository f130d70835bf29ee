"""The shape of the progressive compaction addendum: an async agent whose stream yields `tool-result` events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from support.integrations import agent_manager, report

from compact import CompactManager
from compact.checks import violations

Event = dict[str, Any]
PATH = re.compile(r"/tool_outputs/[^\s\"]+\.txt")


def large(turn: int) -> str:
    return "\n".join(report(turn * 10 + n) for n in range(10))


class Agent:
    """Calls two tools a turn; every third turn one of them gives back a lot. It keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[list[Any]] = []

    async def run_stream(self, given: dict[str, Any], turn: int) -> AsyncIterator[Event]:
        self.given.append(list(given["messages"]))
        for k in range(2):
            call = {"toolName": "fetch", "toolCallId": f"call_{turn}_{k}"}
            yield {"type": "tool-call", **call, "args": {"page": turn}}
            yield {
                "type": "tool-result",
                **call,
                "result": large(turn) if (turn % 3, k) == (0, 1) else report(turn),
            }
        yield {"type": "text", "text": f"Turn {turn} is done."}


async def managed(
    manager: CompactManager, agent: Agent, messages: list[Any], turn: int
) -> AsyncIterator[Event]:
    messages[:] = await manager.manage_context(messages)
    async for event in agent.run_stream({"messages": messages}, turn):
        if event["type"] == "tool-result":
            shown = manager.process_tool_result(event["result"], event["toolName"], event["toolCallId"])
            yield {**event, "result": shown}
        else:
            yield event


def added(messages: list[Any], event: Event) -> None:
    part = {key: value for key, value in event.items() if key != "text"}
    if event["type"] == "tool-call":
        messages.append({"role": "assistant", "content": [part]})
    elif event["type"] == "tool-result":
        messages.append({"role": "tool", "content": [part]})
    else:
        messages.append({"role": "assistant", "content": event["text"]})


def test_results_pass_through_on_their_way_and_the_context_before_each_call() -> None:
    manager, seen = agent_manager(offload={"large_result_tokens": 2_000})
    agent, messages, shown = Agent(), [{"role": "user", "content": "Read everything."}], []

    async def work() -> None:
        for turn in range(12):
            async for event in managed(manager, agent, messages, turn):
                added(messages, event)
                shown.append(event)
        path = next(found[0] for event in shown if (found := PATH.search(str(event.get("result")))))
        stored.append(manager.recovery_tools()["read_file"](path, limit=3))

    stored: list[str] = []
    with manager:
        asyncio.run(work())
    offloaded = [event["properties"]["file_path"] for event in seen.named("offload")]
    assert len(offloaded) == 4
    assert "report 0" in stored[0]
    results = [event["result"] for event in shown if event["type"] == "tool-result"]
    assert sum(path in result for path in offloaded for result in results) == 4
    assert large(0) not in results
    assert all(violations(given, "ai_sdk") == [] for given in agent.given)
    assert all(manager.estimate(given).total <= 6_500 for given in agent.given)
    assert seen.named("summary_created")
