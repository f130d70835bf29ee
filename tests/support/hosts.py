"""The same task in every host: an agent that reads reports with a tool until its model says that it is done.

Each host is the real package with its real client; only the address is that of the provider in `support.integrations`.
A package is imported when its host runs: together they take ten seconds to import.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Callable
from typing import TYPE_CHECKING, Any

from support.integrations import Provider, report

from compact import CompactManager

if TYPE_CHECKING:
    from agents import Agent, Model, Tool
    from pydantic_ai import Agent as PydanticAgent

    from compact.integrations.pydantic_ai import CompactHistory

TASK = "Read all reports and never change the units. " * 3
SYSTEM = "You read reports."
DESCRIPTION = "Gives a report."
PARAMETERS = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
GATEWAY_MODEL = "gpt-4o"
"""Behind Anthropic's interface, as gateways offer it: a model of another window would get other decisions."""
FUNCTION = {"name": "get_report", "description": DESCRIPTION, "parameters": PARAMETERS}

Host = Callable[[Provider, CompactManager], str]


def openai_client(provider: Provider, asynchronous: bool = False) -> Any:
    import openai

    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return kind(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)


def anthropic_client(provider: Provider, asynchronous: bool = False) -> Any:
    import anthropic

    kind = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    return kind(base_url=provider.url, api_key="none", max_retries=0)


# --- plain loops over a client


class ChatLoop:
    """A loop over chat completions, as people write it: it keeps the full history."""

    client = staticmethod(openai_client)

    def __init__(self) -> None:
        self.tools: list[Any] = [{"type": "function", "function": FUNCTION}]
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        return {"model": "gpt-4o", "messages": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.chat.completions.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.chat.completions.stream(**self.request(), stream_options={"include_usage": True})

    def final(self, stream: Any) -> Any:
        return stream.get_final_completion()

    def took(self, reply: Any) -> str | None:
        """Adds a reply and the results of its calls; the words of one that calls nothing."""
        message = reply.choices[0].message
        self.messages.append(message)
        for call in message.tool_calls or ():
            output = report(json.loads(call.function.arguments)["number"])
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
        return None if message.tool_calls else message.content


class ResponsesLoop(ChatLoop):
    def __init__(self) -> None:
        self.tools = [{"type": "function", **FUNCTION, "strict": True}]
        self.messages = [{"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        return {"model": "gpt-4o", "instructions": SYSTEM, "input": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.responses.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.responses.stream(**self.request())

    def final(self, stream: Any) -> Any:
        return stream.get_final_response()

    def took(self, reply: Any) -> str | None:
        self.messages += reply.output
        calls = [item for item in reply.output if item.type == "function_call"]
        for call in calls:
            output = report(json.loads(call.arguments)["number"])
            self.messages.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        return None if calls else reply.output_text


class AnthropicLoop(ChatLoop):
    client = staticmethod(anthropic_client)

    def __init__(self) -> None:
        self.tools = [{"name": "get_report", "description": DESCRIPTION, "input_schema": PARAMETERS}]
        self.messages = [{"role": "user", "content": TASK}]

    def request(self) -> dict[str, Any]:
        common = {"model": GATEWAY_MODEL, "max_tokens": 500, "system": SYSTEM}
        return {**common, "messages": self.messages, "tools": self.tools}

    def create(self, client: Any, **more: Any) -> Any:
        return client.messages.create(**self.request(), **more)

    def stream(self, client: Any) -> Any:
        return client.messages.stream(**self.request())

    def final(self, stream: Any) -> Any:
        return stream.get_final_message()

    def took(self, reply: Any) -> str | None:
        self.messages.append({"role": "assistant", "content": reply.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": report(block.input["number"])}
            for block in reply.content
            if block.type == "tool_use"
        ]
        if results:
            self.messages.append({"role": "user", "content": results})
        return None if results else reply.content[0].text


def whole(kind: type[ChatLoop]) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        loop, client = kind(), manager.wrap(kind.client(provider))
        while (said := loop.took(loop.create(client))) is None:
            pass
        return said

    return host


def streamed(kind: type[ChatLoop]) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        loop, client = kind(), manager.wrap(kind.client(provider))
        while True:
            with loop.stream(client) as stream:
                reply = loop.final(stream)
            said = loop.took(reply)
            if said is not None:
                return said

    return host


def whole_async(kind: type[ChatLoop]) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        async def go() -> str:
            loop, client = kind(), manager.wrap(kind.client(provider, True))
            while (said := loop.took(await loop.create(client))) is None:
                pass
            return said

        return asyncio.run(go())

    return host


def streamed_async(kind: type[ChatLoop]) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        async def go() -> str:
            loop, client = kind(), manager.wrap(kind.client(provider, True))
            while True:
                async with loop.stream(client) as stream:
                    reply = await loop.final(stream)
                said = loop.took(reply)
                if said is not None:
                    return said

        return asyncio.run(go())

    return host


# --- OpenAI Agents SDK


def sdk_report() -> Tool:
    from agents import function_tool

    return function_tool(get_report, description_override=DESCRIPTION)


def sdk_model(provider: Provider, kind: str = "responses") -> Model:
    from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel

    if kind == "litellm":
        from agents.extensions.models.litellm_model import LitellmModel

        return LitellmModel("anthropic/claude-3-5-sonnet-20241022", base_url=provider.url, api_key="none")
    client = openai_client(provider, True)
    if kind == "chat":
        return OpenAIChatCompletionsModel("gpt-4o", client)
    return OpenAIResponsesModel("gpt-4o", client)


def sdk_agent(model: Model, **settings: Any) -> Agent[Any]:
    from agents import Agent

    return Agent("reader", instructions=SYSTEM, model=model, tools=[sdk_report()], **settings)


async def sdk_run(agent: Agent[Any], text: Any, *, stream: bool = False, **settings: Any) -> str:
    from agents import Runner

    if not stream:
        return str((await Runner.run(agent, text, max_turns=100, **settings)).final_output)
    result = Runner.run_streamed(agent, text, max_turns=100, **settings)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def sdk(*parts: str, kind: str = "responses", stream: bool = False) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        from agents import RunConfig

        from compact.integrations.openai_agents import CompactHooks, CompactModel, compact_filter

        model = sdk_model(provider, kind)
        settings: dict[str, Any] = {}
        if "model" in parts:
            model = CompactModel(model, manager)
        if "filter" in parts:
            settings["run_config"] = RunConfig(call_model_input_filter=compact_filter(manager))
            settings["hooks"] = CompactHooks(manager)
        return asyncio.run(sdk_run(sdk_agent(model), TASK, stream=stream, **settings))

    return host


# --- LangChain and Deep Agents


def get_report(number: int) -> str:
    """Gives a report."""
    return report(number)


def langchain_model(provider: Provider, kind: str, streaming: bool = False) -> Any:
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI

    if kind == "anthropic":
        return ChatAnthropic(model_name=GATEWAY_MODEL, base_url=provider.url, api_key="none", max_retries=0)  # type: ignore[call-arg, arg-type]
    where = {"base_url": f"{provider.url}/v1", "api_key": "none", "max_retries": 0, "streaming": streaming}
    return ChatOpenAI(model="gpt-4o", use_responses_api=kind == "responses", **where)  # type: ignore[arg-type]


def langchain(kind: str, asynchronous: bool = False, deep: bool = False, streaming: bool = False) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        if deep:
            from deepagents import create_deep_agent as make
        else:
            from langchain.agents import create_agent as make  # type: ignore[assignment]

        from compact.integrations.langchain import CompactMiddleware

        agent: Any = make(
            langchain_model(provider, kind, streaming),
            [get_report],
            system_prompt=SYSTEM,
            middleware=[CompactMiddleware(manager)],
        )
        given = {"messages": [{"role": "user", "content": TASK}]}
        config = {"recursion_limit": 400, "configurable": {"thread_id": "thread"}}
        result = asyncio.run(agent.ainvoke(given, config)) if asynchronous else agent.invoke(given, config)
        return str(result["messages"][-1].text)

    return host


# --- pydantic-ai


def pydantic_model(provider: Provider, kind: str) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    if kind == "anthropic":
        client = anthropic_client(provider, True)
        return AnthropicModel(GATEWAY_MODEL, provider=AnthropicProvider(anthropic_client=client))
    made = OpenAIProvider(openai_client=openai_client(provider, True))
    return (OpenAIResponsesModel if kind == "responses" else OpenAIChatModel)("gpt-4o", provider=made)


async def pydantic_run(
    agent: PydanticAgent[Any, str], text: str, *, stream: bool = False, **more: Any
) -> Any:
    async def watching(_: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    from pydantic_ai import UsageLimits

    limits = UsageLimits(request_limit=100)
    handler = watching if stream else None
    return await agent.run(text, usage_limits=limits, event_stream_handler=handler, **more)


def pydantic_agent(provider: Provider, kind: str, capability: CompactHistory) -> PydanticAgent[Any, str]:
    from pydantic_ai import Agent as PydanticAgent

    model = pydantic_model(provider, kind)
    agent: PydanticAgent[Any, str] = PydanticAgent(model, instructions=SYSTEM, capabilities=[capability])
    agent.tool_plain(get_report)
    return agent


def pydantic(kind: str, stream: bool = False) -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        from compact.integrations.pydantic_ai import CompactHistory

        agent = pydantic_agent(provider, kind, CompactHistory(manager))
        return str(asyncio.run(pydantic_run(agent, TASK, stream=stream)).output)

    return host


# --- LiteLLM


def litellm_request(provider: Provider, kind: str, messages: list[Any]) -> dict[str, Any]:
    claude = kind == "anthropic"
    return {
        "model": "anthropic/claude-3-5-sonnet-20241022" if claude else "openai/gpt-4o",
        "api_base": provider.url if claude else f"{provider.url}/v1",
        "api_key": "none",
        "num_retries": 0,
        "messages": messages,
        "tools": [{"type": "function", "function": FUNCTION}],
    }


def via_litellm(kind: str, way: str = "whole") -> Host:
    def host(provider: Provider, manager: CompactManager) -> str:
        import litellm

        from compact.integrations.litellm import CompactHook

        loop, hook = ChatLoop(), CompactHook(manager)

        async def awaited() -> str:
            completion = hook(litellm.acompletion)
            while (
                said := loop.took(await completion(**litellm_request(provider, kind, loop.messages)))
            ) is None:
                pass
            return said

        if way == "async":
            return asyncio.run(awaited())
        completion = hook(litellm.completion)
        while True:
            request = litellm_request(provider, kind, loop.messages)
            if way == "streamed":
                reply: Any = litellm.stream_chunk_builder(list(completion(**request, stream=True)))
            else:
                reply = completion(request.pop("model"), request.pop("messages"), **request)
            said = loop.took(reply)
            if said is not None:
                return said

    return host


HOSTS: dict[str, Host] = {
    "openai-chat": whole(ChatLoop),
    "openai-chat-streamed": streamed(ChatLoop),
    "openai-chat-async": whole_async(ChatLoop),
    "openai-chat-async-streamed": streamed_async(ChatLoop),
    "openai-responses": whole(ResponsesLoop),
    "openai-responses-streamed": streamed(ResponsesLoop),
    "openai-responses-async": whole_async(ResponsesLoop),
    "openai-responses-async-streamed": streamed_async(ResponsesLoop),
    "anthropic": whole(AnthropicLoop),
    "anthropic-streamed": streamed(AnthropicLoop),
    "anthropic-async": whole_async(AnthropicLoop),
    "anthropic-async-streamed": streamed_async(AnthropicLoop),
    "agents-filter": sdk("filter"),
    "agents-filter-streamed": sdk("filter", stream=True),
    "agents-filter-chat": sdk("filter", kind="chat"),
    "agents-filter-chat-streamed": sdk("filter", kind="chat", stream=True),
    "agents-model": sdk("model"),
    "agents-model-streamed": sdk("model", stream=True),
    "agents-model-chat": sdk("model", kind="chat"),
    "agents-model-chat-streamed": sdk("model", kind="chat", stream=True),
    "agents-model-litellm": sdk("model", kind="litellm"),
    "agents-filter-and-model": sdk("filter", "model"),
    "langchain-chat": langchain("chat"),
    "langchain-chat-async": langchain("chat", True),
    "langchain-responses": langchain("responses"),
    "langchain-anthropic": langchain("anthropic"),
    "langchain-chat-streamed": langchain("chat", streaming=True),
    "langchain-responses-streamed": langchain("responses", streaming=True),
    "deepagents-chat": langchain("chat", deep=True),
    "pydantic-chat": pydantic("chat"),
    "pydantic-chat-streamed": pydantic("chat", stream=True),
    "pydantic-responses": pydantic("responses"),
    "pydantic-responses-streamed": pydantic("responses", stream=True),
    "pydantic-anthropic": pydantic("anthropic"),
    "pydantic-anthropic-streamed": pydantic("anthropic", stream=True),
    "litellm-chat": via_litellm("chat"),
    "litellm-chat-streamed": via_litellm("chat", "streamed"),
    "litellm-chat-async": via_litellm("chat", "async"),
    "litellm-anthropic": via_litellm("anthropic"),
}
CANNOT_RECOVER = [name for name in HOSTS if name.startswith("agents-filter") and "model" not in name]
"""A filter is asked before the call and told nothing after it."""
