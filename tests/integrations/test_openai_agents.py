"""What is special about the OpenAI Agents SDK: sessions, handoffs, parallel calls, reasoning, guardrails, server-side history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelBehaviorError,
    ModelSettings,
    OpenAIConversationsSession,
    RunConfig,
    Runner,
    SQLiteSession,
    input_guardrail,
)
from openai.types.shared import Reasoning
from support.hosts import SYSTEM, TASK, openai_client, sdk_agent, sdk_model, sdk_report, sdk_run
from support.integrations import WINDOW, Provider, Reply, agent_manager, calls_then_text, report, serving

from compact import CompactManager, ConfigError
from compact.integrations.openai_agents import (
    CompactHooks,
    CompactModel,
    CompactSession,
    compact_filter,
    recall_tools,
)
from compact.messages.dialects import get


@dataclass
class Figures:
    """An output of an agent."""

    total: int
    units: str


def filtered(manager: CompactManager, **settings: Any) -> RunConfig:
    return RunConfig(call_model_input_filter=compact_filter(manager, **settings))


def one_report_a_turn(n: int) -> Reply:
    """Odd answers ask for a report, even ones tell what is in it."""
    if n % 2:
        return Reply(calls=((f"call_{n}", "get_report", {"number": n}),))
    return Reply(f"Report {n - 1} is read.")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_session_of_sixty_turns_gives_back_what_fits_and_keeps_everything(stream: bool) -> None:
    manager, seen = agent_manager()
    stored = SQLiteSession("chat-7")

    async def talk() -> None:
        agent = sdk_agent(sdk_model(provider, "chat"))
        session = CompactSession(stored, manager, agent=agent)
        for n in range(30):
            said = await sdk_run(agent, f"Read report {n}, please.", stream=stream, session=session)
            assert said == f"Report {2 * n + 1} is read."

    with serving(one_report_a_turn) as provider, manager:
        asyncio.run(talk())
    assert provider.refused == []
    assert len(provider.requests) == 60
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)) > 2
    assert {event["session_id"] for event in seen.events} == {"chat-7"}
    everything = asyncio.run(stored.get_items())
    assert len(everything) == 30 * 4
    assert everything[0] == {"role": "user", "content": "Read report 0, please."}


def test_a_session_goes_on_in_another_process_with_what_it_compacted(tmp_path: Any) -> None:
    """The full history is in the SDK's store, the compacted one in the archive: a new manager summarizes nothing again."""

    async def talk(runs: int) -> tuple[int, list[Any]]:
        manager, seen = agent_manager(archive={"adapter": "fs", "root": str(tmp_path / "archive")})
        with serving(one_report_a_turn) as provider, manager:
            agent = sdk_agent(sdk_model(provider, "chat"))
            stored = SQLiteSession("chat-7", tmp_path / "sessions.db")
            for n in range(runs):
                await Runner.run(agent, f"Read {n}.", session=CompactSession(stored, manager, agent=agent))
            given = await CompactSession(stored, manager, agent=agent).get_items()
            stored.close()
        assert provider.refused == []
        return len(seen.named("summary_created")), given

    summaries, before = asyncio.run(talk(13))
    assert summaries
    assert asyncio.run(talk(0)) == (0, before)


def test_the_newest_items_of_a_session_can_be_asked_for_alone() -> None:
    manager, _ = agent_manager()
    stored = SQLiteSession("s")

    async def asked() -> tuple[list[Any], list[Any], Any]:
        session = CompactSession(stored, manager)
        await session.add_items([{"role": "user", "content": f"{n}"} for n in range(5)])
        newest = await session.get_items(limit=2)
        popped = await session.pop_item()
        await session.clear_session()
        return newest, await session.get_items(), popped

    with manager:
        newest, left, popped = asyncio.run(asked())
    assert [item["content"] for item in newest] == ["3", "4"]
    assert popped == {"role": "user", "content": "4"}
    assert left == []


def test_a_session_and_a_filter_together_know_the_same_session() -> None:
    """One run outgrows the window, and so does the history that the next one starts with."""
    manager, seen = agent_manager()

    async def talk() -> None:
        agent = sdk_agent(sdk_model(provider, "chat"))
        session = CompactSession(SQLiteSession("both"), manager, agent=agent)
        for _ in range(3):
            await Runner.run(agent, TASK, session=session, max_turns=50, run_config=filtered(manager))

    def script(n: int) -> Reply:
        return Reply("Done.") if n % 15 == 0 else Reply(calls=((f"call_{n}", "get_report", {"number": n}),))

    with serving(script) as provider, manager:
        asyncio.run(talk())
    assert provider.refused == []
    assert {event["session_id"] for event in seen.events} == {"both"}
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)) < 15


def three_reports_a_run(n: int) -> Reply:
    """Every fourth answer ends a run."""
    return Reply(f"Part {n // 4} is read.") if n % 4 == 0 else one_report(n)


def one_report(n: int) -> Reply:
    return Reply(calls=((f"call_{n}", "get_report", {"number": n}),))


def breaks(provider: Provider) -> int:
    """How often a request does not repeat the one before it, so that a provider's cache is of no use."""
    pairs = zip(provider.requests, provider.requests[1:], strict=False)
    return sum(after.messages[: len(before.messages)] != before.messages for before, after in pairs)


@cache
def many_runs(parts: frozenset[str], *, stream: bool, runs: int = 12) -> tuple[Provider, Any, Any, int]:
    """One conversation of many runs. Returns its requests, its events, the statistics, and the tokens said in all."""
    manager, seen = agent_manager()
    stored = SQLiteSession("chat-7")

    async def talk() -> int:
        model = sdk_model(provider)
        agent = sdk_agent(CompactModel(model, manager) if "model" in parts else model)
        session: Any = CompactSession(stored, manager, agent=agent) if "session" in parts else stored
        config = RunConfig(call_model_input_filter=compact_filter(manager)) if "filter" in parts else None
        for n in range(runs):
            await sdk_run(agent, f"Read part {n}.", stream=stream, session=session, run_config=config)
        return manager.estimate(await stored.get_items()).total

    with serving(three_reports_a_run) as provider, manager:
        said = asyncio.run(talk())
        counted = manager.get_compaction_stats()
    assert provider.refused == []
    assert len(provider.requests) == 4 * runs
    return provider, seen, counted, said


@pytest.mark.parametrize(
    ("parts", "stream"),
    [
        ("session model", False),
        pytest.param("session model", True, marks=pytest.mark.sweep),
        ("session filter", False),
        pytest.param("filter model", False, marks=pytest.mark.sweep),
        pytest.param("session filter model", True, marks=pytest.mark.sweep),
    ],
)
def test_parts_that_work_together_compact_no_more_often_than_one_alone(parts: str, stream: bool) -> None:
    """They share one session and one state: nothing is compacted again because another part sees the list."""
    alone = many_runs(frozenset({"model"}), stream=stream)
    provider, seen, counted, said = many_runs(frozenset(parts.split()), stream=stream)
    steps = [event["step"] for event in seen.named("pruned_messages")]
    assert len(steps) == len(set(steps)), "one pass for each step"
    assert len({event["session_id"] for event in seen.events}) == 1
    assert not [e for e in seen.named("warning") if e["properties"]["code"] == "state_reset"]
    assert breaks(provider) <= len(steps), "between passes the request before is repeated whole"
    assert breaks(provider) <= breaks(alone[0]) + 1
    # What was said can leave the context once; a summary can, too, when the next one takes it in.
    summaries = sum(event["properties"]["summary_tokens"] for event in seen.named("summary_created"))
    assert 0 < counted["total_tokens_saved"] <= said + summaries
    assert counted["compaction_events"] == len(steps)


@pytest.mark.parametrize("group", [None, "thread-9"])
def test_a_filter_alone_knows_a_stored_session_again_in_its_next_run(group: str | None) -> None:
    """The SDK does not tell a filter which session it serves; what the list says does."""
    manager, seen = agent_manager()

    async def talk() -> None:
        agent, stored = sdk_agent(sdk_model(provider)), SQLiteSession("plain")
        for n in range(16):
            config = RunConfig(call_model_input_filter=compact_filter(manager), group_id=group)
            await Runner.run(agent, f"Read report {n}, please.", session=stored, run_config=config)

    with serving(one_report_a_turn) as provider, manager:
        asyncio.run(talk())
    assert provider.refused == []
    assert len({event["session_id"] for event in seen.events}) == 1
    assert seen.named("summary_created")


def test_a_session_on_the_providers_side_is_refused_with_what_to_do() -> None:
    manager, _ = agent_manager()
    with serving(calls_then_text(0)) as provider:
        client = openai_client(provider, True)
    with pytest.raises(ConfigError, match="compact_filter"):
        CompactSession(OpenAIConversationsSession(conversation_id="c", openai_client=client), manager)


@pytest.mark.parametrize("where", ["filter", "model"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_that_the_provider_keeps_is_left_alone_with_a_warning(
    where: str, stream: bool
) -> None:
    """Only what is new is sent then: a result without its call is right, and must not be repaired away."""
    manager, seen = agent_manager()
    with serving(calls_then_text(3)) as provider, manager:
        model = sdk_model(provider)
        agent = sdk_agent(CompactModel(model, manager) if where == "model" else model)
        config = filtered(manager) if where == "filter" else None
        run = sdk_run(agent, TASK, stream=stream, run_config=config, previous_response_id="resp_0")
        assert asyncio.run(run) == "Done after 3 reports."
    assert provider.refused == []
    results = [
        [item["call_id"] for item in request.messages if "output" in item] for request in provider.requests
    ]
    assert results == [[], ["call_1_0"], ["call_2_0"], ["call_3_0"]]
    assert [event["properties"]["code"] for event in seen.named("warning")].count("server_managed") == 1


def test_parallel_calls_stay_together_with_their_results() -> None:
    manager, seen = agent_manager()
    with serving(calls_then_text(10, parallel=3)) as provider, manager:
        said = asyncio.run(sdk_run(sdk_agent(sdk_model(provider)), TASK, run_config=filtered(manager)))
    assert said == "Done after 10 reports."
    assert provider.refused == []
    assert seen.named("summary_created")


def test_a_handoff_keeps_the_conversation_and_its_session() -> None:
    manager, seen = agent_manager()

    def script(n: int) -> Reply:
        if n == 12:
            return Reply(calls=(("call_hand", "transfer_to_writer", {}),))
        return calls_then_text(20)(n)

    with serving(script) as provider, manager:
        writer = Agent("writer", instructions="You write.", model=sdk_model(provider), tools=[sdk_report()])
        reader = sdk_agent(sdk_model(provider), handoffs=[writer])
        result = asyncio.run(Runner.run(reader, TASK, max_turns=50, run_config=filtered(manager)))
    assert result.last_agent.name == "writer"
    assert provider.refused == []
    assert len({event["session_id"] for event in seen.events}) == 1
    assert [request.body["instructions"] for request in provider.requests[11:14]] == [
        SYSTEM,
        "You write.",
        "You write.",
    ]
    assert seen.named("summary_created")


def test_an_agent_that_serves_as_a_tool_has_a_session_of_its_own() -> None:
    """Both histories pass through one filter; neither resets the other."""
    manager, seen = agent_manager()
    asked: list[str] = []

    def script(n: int) -> Reply:
        """The outer agent asks the inner one five times; the inner one reads three reports each time."""
        asked.append("inner" if n % 5 not in (1, 0) else "outer")
        if n == 26:
            return Reply("All done.")
        if n % 5 == 1:
            return Reply(calls=((f"ask_{n}", "ask_reader", {"input": f"Look into part {n}. " + report(n)}),))
        if n % 5 == 0:
            return Reply(f"Part {n} is fine. " + report(n)[:400])
        return Reply(calls=((f"call_{n}", "get_report", {"number": n}),))

    with serving(script) as provider, manager:
        config = filtered(manager)
        inner = sdk_agent(sdk_model(provider, "chat"))
        tool = inner.as_tool("ask_reader", "Asks the reader.", run_config=config, max_turns=20)
        outer = Agent("lead", instructions="You lead.", model=sdk_model(provider, "chat"), tools=[tool])
        result = asyncio.run(Runner.run(outer, TASK, max_turns=50, run_config=config))
    assert result.final_output == "All done."
    assert provider.refused == []
    assert [event for event in seen.named("warning") if event["properties"]["code"] == "state_reset"] == []
    assert len({event["session_id"] for event in seen.events}) == 6


def test_reasoning_items_stay_with_the_call_they_led_to() -> None:
    """Signed reasoning goes whole, with its call, or not at all: the provider would refuse anything else."""
    manager, seen = agent_manager()
    history: list[Any] = [{"role": "user", "content": TASK}]
    for n in range(14):
        history += [
            {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": f"sealed{n}" * 40},
            {
                "type": "function_call",
                "call_id": f"c{n}",
                "name": "get_report",
                "arguments": f'{{"number": {n}}}',
            },
            {"type": "function_call_output", "call_id": f"c{n}", "output": report(n)},
        ]
    with serving(calls_then_text(2)) as provider, manager:
        agent = sdk_agent(
            sdk_model(provider), model_settings=ModelSettings(store=False, reasoning=Reasoning(effort="low"))
        )
        assert asyncio.run(sdk_run(agent, history, run_config=filtered(manager))) == "Done after 2 reports."
    assert provider.refused == []
    assert seen.named("pruned_messages")
    sent = provider.requests[0].messages
    kept = [item for item in sent if item.get("type") == "reasoning"]
    assert 0 < len(kept) < 14
    for item in kept:
        assert sent[sent.index(item) + 1]["call_id"] == item["id"].replace("rs_", "c")


def test_a_guardrail_still_stops_the_run() -> None:
    manager, _ = agent_manager()

    @input_guardrail(run_in_parallel=False)
    async def nothing(_context: Any, _agent: Any, _input: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    with serving(calls_then_text(1)) as provider, manager:
        agent = sdk_agent(CompactModel(sdk_model(provider), manager), input_guardrails=[nothing])
        with pytest.raises(InputGuardrailTripwireTriggered):
            asyncio.run(sdk_run(agent, TASK, run_config=filtered(manager)))
    assert provider.requests == []


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("mine", "mine"), (lambda data: f"of-{data.agent.name}", "of-reader"), (None, "agents-fresh")],
)
def test_a_session_is_named_by_a_string_a_function_or_by_itself(chosen: Any, expected: str) -> None:
    manager, seen = agent_manager()
    manager.resolver.new_id = lambda: "fresh"
    with serving(calls_then_text(1)) as provider, manager:
        config = filtered(manager, session_id=chosen)
        asyncio.run(sdk_run(sdk_agent(sdk_model(provider)), TASK, run_config=config))
    assert {event["session_id"] for event in seen.events} == {expected}


def test_instructions_tools_handoffs_and_output_schema_are_counted() -> None:
    """Our count of a request is that of the provider: everything that the SDK sends was seen."""
    manager, seen = agent_manager()
    with serving(calls_then_text(3)) as provider, manager:
        writer = Agent("writer", instructions="You write.", model=sdk_model(provider))
        agent = sdk_agent(sdk_model(provider), handoffs=[writer], output_type=Figures)
        with pytest.raises(Exception, match="Invalid JSON"):
            asyncio.run(sdk_run(agent, TASK, run_config=filtered(manager)))
    counted = [event["properties"]["t_est"] for event in seen.named("token_estimate")]
    schema = [event["properties"]["breakdown"]["tools_schema"] for event in seen.named("token_estimate")]
    assert all(
        abs(ours - request.tokens) <= 60 for ours, request in zip(counted, provider.requests, strict=True)
    )
    assert min(schema) > 60


@pytest.mark.parametrize("part", ["hooks", "model"])
def test_the_providers_own_count_corrects_ours(part: str) -> None:
    """A provider that counts half as much again makes the session act earlier."""
    manager, seen = agent_manager(2 * WINDOW)
    settings: dict[str, Any] = {}
    with serving(calls_then_text(14), window=2 * WINDOW, counts=1.5) as provider, manager:
        model = sdk_model(provider, "chat")
        if part == "hooks":
            settings = {"run_config": filtered(manager), "hooks": CompactHooks(manager)}
        else:
            model = CompactModel(model, manager)
        asyncio.run(sdk_run(sdk_agent(model), TASK, **settings))
    acted = [event["properties"]["tokens_before"] for event in seen.named("pruned_messages")]
    assert acted
    assert acted[0] < 0.85 * 2 * WINDOW / 1.3


def test_the_agent_reads_back_what_left_its_context() -> None:
    manager, _ = agent_manager()

    def script(n: int) -> Reply:
        if n == 15:
            return Reply(calls=(("look", "grep", {"pattern": "report 20$"}),))
        return calls_then_text(14)(n) if n < 15 else Reply("Found it.")

    with serving(script) as provider, manager:
        agent = sdk_agent(sdk_model(provider, "chat"))
        agent.tools += recall_tools(manager, "mine")
        asyncio.run(sdk_run(agent, TASK, run_config=filtered(manager, session_id="mine")))
    read = get("chat").read(provider.requests[-1].messages[-1])
    assert "/conversation_history/" in read.results[0].text or "/tool_outputs/" in read.results[0].text
    assert "report 20" in read.results[0].text


def test_a_wrapped_model_still_is_what_it_was() -> None:
    manager, _ = agent_manager()
    with serving(calls_then_text(0)) as provider:
        inner = sdk_model(provider)
        model: Any = CompactModel(inner, manager)
        assert model.model == "gpt-4o"
        assert model.wrapped is inner
        with pytest.raises(AttributeError):
            _ = model.nothing_like_it
        asyncio.run(model.close())
    manager.close()


def test_a_stream_that_fails_for_another_reason_ends_in_the_sdks_own_error() -> None:
    manager, _ = agent_manager()
    with serving(calls_then_text(1), error="The server is tired.", late_refusals=True) as provider, manager:
        agent = sdk_agent(CompactModel(sdk_model(provider), manager))
        with pytest.raises(ModelBehaviorError, match="The server is tired"):
            asyncio.run(sdk_run(agent, TASK, stream=True))
    assert len(provider.requests) == 1
