"""An async agent that yields events. compact manages its context before each call and its tool results as they arrive.

It uses the names of the progressive compaction addendum. The agent below is a stand-in without a model; replace
`Crawler.run_stream` with your own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from outcome import print_outcome

from compact.middleware import ContextConfig, ContextManagementMiddleware

MODEL = "gpt-4o"
REPORT = (
    "Round {0} is done. Its three pages describe the same part of the site from different sides. The second one is long: it lists "
    "every paragraph of chapter {0}, and the other two refer to it. Nothing there contradicts the earlier rounds, so the outline "
    "stays as it was, with chapter {0} added at its end."
)


class Crawler:
    """A stand-in agent that reads a few pages in each round and reports what it read."""

    async def run_stream(self, given: dict[str, Any], *, round_number: int) -> AsyncIterator[dict[str, Any]]:
        yield {"type": "text-delta", "text": f"I was given {len(given['messages'])} messages. "}
        for page in range(3):
            call_id = f"call_{round_number}_{page}"
            arguments = {"url": f"https://example.org/{round_number}/{page}"}
            yield {"type": "tool-call", "toolName": "fetch", "toolCallId": call_id, "args": arguments}
            size = 4000 if page == 1 else 200
            body = "\n".join(f"paragraph {n} of page {round_number}.{page}" for n in range(size))
            yield {"type": "tool-result", "toolName": "fetch", "toolCallId": call_id, "result": body}
        yield {"type": "text-delta", "text": REPORT.format(round_number)}


class ManagedCrawler:
    """The same agent, with its context managed by compact."""

    def __init__(self, context: ContextManagementMiddleware) -> None:
        self._agent = Crawler()
        self._context = context

    async def run(self, messages: list[Any], round_number: int) -> AsyncIterator[dict[str, Any]]:
        messages[:] = await self._context.manage_context(messages, MODEL)
        async for event in self._agent.run_stream({"messages": messages}, round_number=round_number):
            if event["type"] == "tool-result":
                result, tool, call_id = event["result"], event["toolName"], event["toolCallId"]
                yield {**event, "result": self._context.process_tool_result(result, tool, call_id)}
            else:
                yield event


def record(messages: list[Any], event: dict[str, Any]) -> None:
    """Append an event to the conversation as AI SDK parts."""
    call = {"toolCallId": event.get("toolCallId"), "toolName": event.get("toolName")}
    if event["type"] == "tool-call":
        messages.append(
            {"role": "assistant", "content": [{"type": "tool-call", **call, "args": event["args"]}]}
        )
    elif event["type"] == "tool-result":
        messages.append(
            {"role": "tool", "content": [{"type": "tool-result", **call, "result": event["result"]}]}
        )
    elif event["text"].startswith("Round"):
        messages.append({"role": "assistant", "content": event["text"]})


async def main() -> None:
    settings = ContextConfig(model_context_limits={MODEL: 14_000}, large_result_tokens=5_000)
    context = ContextManagementMiddleware(settings)
    agent, messages = ManagedCrawler(context), [{"role": "user", "content": "Read the whole site."}]
    for round_number in range(1, 41):
        async for event in agent.run(messages, round_number):
            record(messages, event)
    stats = context.get_compaction_stats()
    print(f"{len(messages)} messages left; tokens saved: {stats['by_strategy']}")
    context.close()
    print_outcome(context.manager)


if __name__ == "__main__":
    asyncio.run(main())
