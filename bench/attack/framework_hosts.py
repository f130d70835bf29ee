"""One agent of each framework, as people build it for all their users: without an id for the conversation.

The packages take seconds to import, so each is imported when its host is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextvars import ContextVar
from random import Random
from typing import Any

from compact import CompactManager

WHO: ContextVar[str] = ContextVar("whose_file")


def get_report() -> str:
    """Gives the report."""
    return WHO.get()


class OnLangChain:
    """`create_agent` with one middleware."""

    def __init__(self, manager: CompactManager, provider: Any, prompt: str, seed: Random) -> None:
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI

        from compact.integrations.langchain import CompactMiddleware

        self.form = seed.choice(("chat", "responses"))
        settings: Any = {"base_url": provider.openai_url, "api_key": "none", "max_retries": 0}
        model = ChatOpenAI(model="gpt-4o", use_responses_api=self.form == "responses", **settings)
        middleware: Any = [CompactMiddleware(manager)]
        self._agent: Any = create_agent(
            model, [get_report], system_prompt=prompt or None, middleware=middleware
        )

    async def say(self, person: Any, text: str, recall: Collection[str]) -> list[str]:
        """One run. Returns what the recall tools said."""
        given = {"messages": [*person.items, {"role": "user", "content": text}]}
        before = len(person.items)
        person.items = (await self._agent.ainvoke(given))["messages"]
        return [str(m.content) for m in person.items[before:] if m.type == "tool" and m.name in recall]


class OnPydantic:
    """An `Agent` with one capability."""

    def __init__(self, manager: CompactManager, provider: Any, prompt: str, seed: Random) -> None:
        from openai import AsyncOpenAI
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from compact.integrations.pydantic_ai import CompactHistory

        self.form = seed.choice(("chat", "responses"))

        def make() -> Any:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)
            kind: Any = OpenAIChatModel if self.form == "chat" else OpenAIResponsesModel
            return kind("gpt-4o", provider=OpenAIProvider(openai_client=client))

        self._make = make
        self._agent: Any = Agent(
            instructions=prompt or None, capabilities=[CompactHistory(manager)], tools=[get_report]
        )

    async def say(self, person: Any, text: str, recall: Collection[str]) -> list[str]:
        """One run. Returns what the recall tools said."""
        result = await self._agent.run(text, message_history=person.items or None, model=self._make())
        person.items = result.all_messages()
        return [
            str(part.content)
            for message in result.new_messages()
            for part in message.parts
            if part.part_kind == "tool-return" and part.tool_name in recall
        ]


class OnAgentsSdk:
    """An `Agent` with recall tools, and the filter, the model or both."""

    def __init__(self, manager: CompactManager, provider: Any, prompt: str, seed: Random) -> None:
        from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
        from openai import AsyncOpenAI

        from compact.integrations.openai_agents import CompactModel, compact_filter, recall_tools

        set_tracing_disabled(True)
        self.form = seed.choice(("filter", "model", "filter and model"))

        def make() -> Any:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)
            model: Any = OpenAIChatCompletionsModel("gpt-4o", client)
            if "model" in self.form:
                model = CompactModel(model, manager)
            tools: list[Any] = [function_tool(get_report), *recall_tools(manager)]
            return Agent("reader", instructions=prompt or None, model=model, tools=tools)

        self._make = make
        self._filter = compact_filter(manager) if "filter" in self.form else None

    async def say(self, person: Any, text: str, recall: Collection[str]) -> list[str]:
        """One run. Returns what the recall tools said."""
        from agents import RunConfig, Runner

        given = [*person.items, {"role": "user", "content": text}]
        config = RunConfig(call_model_input_filter=self._filter)
        result = await Runner.run(self._make(), given, run_config=config, max_turns=20)
        person.items = result.to_input_list()
        calls = {
            item["call_id"]: item["name"] for item in person.items if item.get("type") == "function_call"
        }
        outputs = [item for item in person.items[len(given) :] if item.get("type") == "function_call_output"]
        return [str(item["output"]) for item in outputs if calls[item["call_id"]] in recall]


FRAMEWORKS: dict[str, Callable[[CompactManager, Any, str, Random], Any]] = {
    "langchain": OnLangChain,
    "pydantic_ai": OnPydantic,
    "openai_agents": OnAgentsSdk,
}
