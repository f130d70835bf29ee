"""Research in several rounds with the OpenAI Agents SDK: a stored session, and rounds that outgrow the window.

`CompactSession` compacts what a round starts with, and `CompactModel` compacts every request inside it. Both use the same session.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import offline_model
from agents import Agent, OpenAIProvider, Runner, SQLiteSession, function_tool
from outcome import print_outcome

from compact import CompactConfig, CompactManager
from compact.integrations.openai_agents import CompactModel, CompactSession, recovery_tools

ROUNDS = (
    "Collect what is known about the history of the river. Always note the year of a source.",
    "Now research the floods, and what was done to prevent them.",
    "Name the three measures that helped most, and say why.",
)


@function_tool
def look_up(topic: str) -> str:
    """Look up a topic in the library."""
    return "\n".join(
        f"{topic}, source {n} ({1800 + n * 3}): the level rose by {n * 11 % 90} cm in a week"
        for n in range(40)
    )


async def main() -> None:
    with offline_model.model(calls=20) as name, tempfile.TemporaryDirectory() as folder:
        config = CompactConfig(model=name, max_context_tokens=offline_model.WINDOW)
        with CompactManager(config) as manager:
            model = CompactModel(OpenAIProvider().get_model(name), manager)
            tools = [look_up, *recovery_tools(manager, "research")]
            agent = Agent("researcher", instructions="You research thoroughly.", model=model, tools=tools)
            stored = SQLiteSession("research", Path(folder) / "sessions.db")
            for number, task in enumerate(ROUNDS, 1):
                session = CompactSession(stored, manager, agent=agent)
                result = await Runner.run(agent, task, session=session, max_turns=40)
                full, kept = await stored.get_items(), await session.get_items()
                print(f"round {number}: {result.final_output}")
                for what, items in (("stored", full), ("in the context", kept)):
                    print(f"  {what}: {len(items)} items, {manager.estimate(items).total} tokens")
            stored.close()
        print_outcome(manager)


if __name__ == "__main__":
    asyncio.run(main())
