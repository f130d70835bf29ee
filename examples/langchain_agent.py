"""A LangChain agent with the middleware. The same middleware works in `deepagents.create_deep_agent`."""

from __future__ import annotations

import offline_model
from langchain.agents import create_agent
from outcome import print_outcome

from compact import CompactConfig, CompactManager
from compact.integrations.langchain import CompactMiddleware


def read_log(day: int) -> str:
    """Return the log of a day."""
    return "\n".join(
        f"day {day}, {hour:02}:00: {day * 13 + hour} requests, {hour % 3} errors"
        for hour in range(24)
        for _ in "ab"
    )


def main() -> None:
    with offline_model.model(calls=40) as name:
        with CompactManager(CompactConfig(model=name, max_context_tokens=offline_model.WINDOW)) as manager:
            agent = create_agent(f"openai:{name}", [read_log], middleware=[CompactMiddleware(manager)])
            task = {
                "messages": [{"role": "user", "content": "Read the logs of days 1 to 40. What stands out?"}]
            }
            result = agent.invoke(task, {"recursion_limit": 400, "configurable": {"thread_id": "logs"}})
            print(result["messages"][-1].text)
        print_outcome(manager)


if __name__ == "__main__":
    main()
