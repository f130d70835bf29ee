"""Sessions that outgrow their window several times, with the providers' own clients. No refusal reaches the client."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from support.proxying import proxying

from compact.tools.standins import Call, Provider, Received, Reply, prefix_breaks, serving

WINDOW = 12_000
TURNS = 22
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FIRST = "Find the bug. Never touch tests/."


def script(request: Received) -> Reply:
    if request.number % 5 == 0:
        return Reply("That part is fine.")
    return Reply(
        f"I look at part {request.number}.", [Call("read", {"path": f"src/part{request.number}.py"})]
    )


def result_of(n: int) -> str:
    return "\n".join(f"value_{n}_{line} = load(part_{n}, {line})" for line in range(60))


def run_anthropic(url: str, streamed: bool) -> None:
    tools: Any = [{"name": "read", "description": "Read a file.", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": FIRST}]
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        for n in range(TURNS):
            request: Any = {
                "model": "claude-sonnet-5",
                "max_tokens": 64,
                "messages": messages,
                "tools": tools,
            }
            if streamed:
                with client.messages.stream(**request) as stream:
                    reply = stream.get_final_message()
            else:
                reply = client.messages.create(**request)
            messages.append({"role": "assistant", "content": [b.to_dict() for b in reply.content]})
            calls = [block.id for block in reply.content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": each, "content": result_of(n)} for each in calls
            ]
            messages.append({"role": "user", "content": results or f"Go on with part {n}."})


def run_chat(url: str, streamed: bool) -> None:
    tools: Any = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "system", "content": "You code."}, {"role": "user", "content": FIRST}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        for n in range(TURNS):
            request: Any = {"model": "gpt-4o", "messages": messages, "tools": tools}
            if streamed:
                with client.chat.completions.stream(**request) as stream:
                    said: Any = stream.get_final_completion().choices[0].message
            else:
                said = client.chat.completions.create(**request).choices[0].message
            calls = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": "read", "arguments": c.function.arguments},
                }
                for c in said.tool_calls or ()
            ]
            messages.append(
                {"role": "assistant", "content": said.content} | ({"tool_calls": calls} if calls else {})
            )
            messages += [{"role": "tool", "tool_call_id": c["id"], "content": result_of(n)} for c in calls]
            if not calls:
                messages.append({"role": "user", "content": f"Go on with part {n}."})


def run_responses(url: str, streamed: bool) -> None:
    tools: Any = [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}]
    items: list[Any] = [{"role": "user", "content": FIRST}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        for n in range(TURNS):
            request: Any = {"model": "gpt-5", "input": items, "tools": tools, "instructions": "You code."}
            if streamed:
                with client.responses.stream(**request) as stream:
                    reply: Any = stream.get_final_response()
            else:
                reply = client.responses.create(**request)
            items += [
                each.model_dump(exclude_none=True, exclude={"parsed_arguments", "parsed"})
                for each in reply.output
            ]
            for item in items:
                item.pop("status", None)
            calls = [each.call_id for each in reply.output if each.type == "function_call"]
            items += [{"type": "function_call_output", "call_id": c, "output": result_of(n)} for c in calls]
            if not calls:
                items.append({"role": "user", "content": f"Go on with part {n}."})


def run_gemini(url: str, streamed: bool) -> None:
    tools: Any = [{"function_declarations": [{"name": "read", "parameters_json_schema": SCHEMA}]}]
    contents: list[Any] = [{"role": "user", "parts": [{"text": FIRST}]}]
    with closing(genai.Client(api_key="none", http_options={"base_url": url})) as client:
        for n in range(TURNS):
            request: Any = {
                "model": "gemini-2.5-pro",
                "contents": contents,
                "config": {
                    "tools": tools,
                    "system_instruction": "You code.",
                    "automatic_function_calling": {"disable": True},
                },
            }
            if streamed:
                replies: list[Any] = list(client.models.generate_content_stream(**request))
            else:
                replies = [client.models.generate_content(**request)]
            parts: list[Any] = [part for each in replies for part in each.candidates[0].content.parts]
            contents.append({"role": "model", "parts": [p.model_dump(exclude_none=True) for p in parts]})
            calls = [part.function_call for part in parts if part.function_call]
            results: list[Any] = [
                {"function_response": {"id": c.id, "name": "read", "response": {"output": result_of(n)}}}
                for c in calls
            ]
            contents.append({"role": "user", "parts": results or [{"text": f"Go on with part {n}."}]})


RUNS = {"anthropic": run_anthropic, "chat": run_chat, "responses": run_responses, "gemini": run_gemini}


def check(provider: Provider) -> None:
    assert len(provider.accepted) == TURNS, "every turn was answered once"
    assert max(request.tokens for request in provider.accepted) <= WINDOW
    assert any("compact:" in str(request.messages) for request in provider.accepted)
    assert "read_file" not in str(provider.accepted[-1].messages), "this agent has no tool of that name"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", RUNS)
def test_a_session_outgrows_its_window_and_nothing_is_refused(
    name: str, streamed: bool, tmp_path: Path
) -> None:
    with serving(script, window=WINDOW) as provider, proxying(provider.url, tmp_path, WINDOW) as proxy:
        RUNS[name](proxy.url, streamed)
        (session,) = proxy.manager.archive.sessions()
        steps = len(proxy.manager.archive.steps(session))
    assert provider.refused == []
    check(provider)
    assert steps >= 2
    assert prefix_breaks(provider.accepted) <= steps, "between steps the provider's cache holds"


@pytest.mark.parametrize(
    ("name", "late"), [("anthropic", True), ("chat", False), ("responses", True), ("gemini", False)]
)
def test_an_overflow_that_the_table_did_not_foresee_is_recovered(
    name: str, late: bool, tmp_path: Path
) -> None:
    """The proxy believes in a window of 200,000 tokens, the provider takes 12,000, and refuses inside its stream if `late`."""
    with (
        serving(script, window=WINDOW, late_refusals=late) as provider,
        proxying(provider.url, tmp_path, 200_000) as proxy,
    ):
        RUNS[name](proxy.url, late)
        recovered = proxy.app.metrics.value("recovered", kind="overflow")
    assert 1 <= recovered <= len(provider.refused) <= 3, "the limit is learned from the first refusal"
    check(provider)
