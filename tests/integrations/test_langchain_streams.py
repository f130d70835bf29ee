"""LangChain's streams: a refusal before the model's first output is survived, one behind it is raised as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from compact import CompactConfig, CompactManager, ContextOverflow
from compact.integrations.langchain import CompactMiddleware
from compact.integrations.langchain.first_output import FirstOutput
from compact.tools.standins import Provider, Received, Refusal, serving

WINDOW = 8_000
KEY = SecretStr("none")
KINDS = ("chat", "responses", "anthropic")


def model(provider: Provider, kind: str) -> Any:
    if kind == "anthropic":
        return ChatAnthropic(  # type: ignore[call-arg]
            model_name="claude-sonnet-5", base_url=provider.url, api_key=KEY, max_retries=0, streaming=True
        )
    return ChatOpenAI(
        model="gpt-4o",
        use_responses_api=kind == "responses",
        base_url=provider.openai_url,
        api_key=KEY,
        max_retries=0,
        streaming=True,
    )


def manager() -> CompactManager:
    windows = {"claude": 3 * WINDOW}
    return CompactManager(
        CompactConfig(
            model="gpt-4o", max_context_tokens=3 * WINDOW, windows=windows, archive={"adapter": "memory"}
        )
    )


def history() -> Any:
    found = [{"role": "user", "content": "Read the reports."}]
    for n in range(20):
        found.append({"role": "assistant", "content": f"Report {n}: " + f"row {n} has value {n * 31}. " * 60})
        found.append({"role": "user", "content": f"Now number {n + 1}."})
    return {"messages": found}


def invoke(agent: Any, seen: list[str]) -> None:
    """No one but a callback sees the tokens."""
    seen.append(agent.invoke(history())["messages"][-1].text)


def stream(agent: Any, seen: list[str]) -> None:
    for chunk, _ in agent.stream(history(), stream_mode="messages"):
        seen.append(chunk.text)


def ainvoke(agent: Any, seen: list[str]) -> None:
    seen.append(asyncio.run(agent.ainvoke(history()))["messages"][-1].text)


def astream(agent: Any, seen: list[str]) -> None:
    async def read() -> None:
        async for chunk, _ in agent.astream(history(), stream_mode="messages"):
            seen.append(chunk.text)

    asyncio.run(read())


Run = Callable[[Any, list[str]], None]


@pytest.mark.parametrize("run", [invoke, stream, ainvoke, astream])
@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_before_the_first_output_is_survived(kind: str, run: Run) -> None:
    def script(request: Received) -> str:
        return f"All {len(request.messages)} read."

    seen: list[str] = []
    with serving(script, window=WINDOW, late_refusals=True) as provider, manager() as made:
        run(create_agent(model(provider, kind), [], middleware=[CompactMiddleware(made)]), seen)
    assert len(provider.refused) == 1
    assert len(provider.accepted) == 1
    assert "".join(seen) == f"All {len(provider.accepted[0].messages)} read."


@pytest.mark.parametrize("run", [invoke, stream, ainvoke, astream])
@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_behind_the_first_output_is_raised_as_it_is(kind: str, run: Run) -> None:
    long = Refusal(400, "prompt is too long: 9 tokens > 5 maximum", late=True, behind="It begins. ")
    seen: list[str] = []
    with serving([long], window=3 * WINDOW) as provider, manager() as made:
        agent = create_agent(model(provider, kind), [], middleware=[CompactMiddleware(made)])
        with pytest.raises(Exception, match="prompt is too long") as raised:
            run(agent, seen)
    assert not isinstance(raised.value, ContextOverflow)
    assert len(provider.requests) == 1, "what was shown is not taken back"
    assert "".join(seen) == ("It begins. " if run in (stream, astream) else "")


CHUNKS = [
    ({"content": ""}, False),
    ({"content": [{"type": "text", "text": "", "index": 0}]}, False),
    ({"content": [{"type": "thinking", "thinking": "", "index": 0}]}, False),
    ({"content": "So"}, True),
    ({"content": [{"type": "text", "text": "So", "index": 0}]}, True),
    ({"content": "", "additional_kwargs": {"reasoning_content": "Hm"}}, True),
    (
        {
            "content": "",
            "tool_call_chunks": [
                {"name": "read", "args": "", "id": "a", "index": 0, "type": "tool_call_chunk"}
            ],
        },
        True,
    ),
]


@pytest.mark.parametrize(("fields", "said"), CHUNKS)
def test_an_empty_chunk_is_no_output(fields: dict[str, Any], said: bool) -> None:
    output = FirstOutput()
    message = AIMessageChunk(**fields)
    output.on_llm_new_token(message.content, chunk=ChatGenerationChunk(message=message))
    assert output.seen is said


def test_an_event_of_the_protocol_is_an_output_once_its_block_holds_something() -> None:
    output = FirstOutput()
    output.on_stream_event({"event": "message-start", "role": "ai", "id": "m"})
    output.on_stream_event(
        {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}}
    )
    assert not output.seen
    output.on_stream_event(
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "So"}}
    )
    assert output.seen
