"""A pydantic-ai agent with the `CompactHistory` capability."""

from __future__ import annotations

import asyncio

import offline_model
from outcome import print_outcome
from pydantic_ai import Agent

from compact import CompactConfig, CompactManager
from compact.integrations.pydantic_ai import CompactHistory


async def main() -> None:
    with offline_model.model(calls=40) as name:
        with CompactManager(CompactConfig(model=name, max_context_tokens=offline_model.WINDOW)) as manager:
            agent = Agent(f"openai-chat:{name}", capabilities=[CompactHistory(manager)])

            @agent.tool_plain
            def read_chapter(number: int) -> str:
                """Read a chapter of the manual."""
                return "\n".join(
                    f"chapter {number}, step {step}: turn valve {step} to {number}" for step in range(60)
                )

            result = await agent.run("Read chapters 1 to 40 and tell me which valve matters.")
            print(result.output)
        print_outcome(manager)


if __name__ == "__main__":
    asyncio.run(main())
