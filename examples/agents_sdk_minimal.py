"""The smallest setup with the OpenAI Agents SDK. Every decision of compact is printed to the console."""

from __future__ import annotations

import asyncio

import offline_model
from agents import Agent, RunConfig, Runner, function_tool
from outcome import print_outcome

from compact import CompactConfig, CompactManager
from compact.integrations.openai_agents import compact_filter


@function_tool
def measure(station: int) -> str:
    """Return the measurements of a station."""
    return "\n".join(f"station {station}, hour {hour}: {station * 7 + hour} mm of rain" for hour in range(48))


async def main() -> None:
    with offline_model.model(calls=40) as name:
        config = CompactConfig(
            model=name,
            max_context_tokens=offline_model.WINDOW,
            tracing={"exporters": ["console"]},
        )
        with CompactManager(config) as manager:
            agent = Agent(
                "meteorologist", instructions="Find the wettest station.", model=name, tools=[measure]
            )
            run_config = RunConfig(call_model_input_filter=compact_filter(manager))
            question = "Look at stations 1 to 40. Which one is the wettest?"
            result = await Runner.run(agent, question, run_config=run_config, max_turns=60)
        print(result.final_output)
        print_outcome(manager)


if __name__ == "__main__":
    asyncio.run(main())
