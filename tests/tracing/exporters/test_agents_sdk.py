"""Events in the traces of the OpenAI Agents SDK: below the agent's own span, or in a trace of the session's."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData
from agents.tracing import TracingProcessor, agent_span, get_trace_provider, set_trace_processors, trace
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from support.engine import events, manager, turns
from support.exporters import busy_session

from compact import CompactManager
from compact.errors import MissingExtra
from compact.tracing.exporters.agents_sdk import AgentsSdkExporter


class Recorded(TracingProcessor):
    """Keeps what a processor is told, in order."""

    def __init__(self) -> None:
        self.traces: list[Any] = []
        self.ended_traces: list[Any] = []
        self.begun: list[Any] = []
        self.spans: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        self.traces.append(trace)

    def on_trace_end(self, trace: Any) -> None:
        self.ended_traces.append(trace)

    def on_span_start(self, span: Any) -> None:
        self.begun.append(span)

    def on_span_end(self, span: Any) -> None:
        self.spans.append(span)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...

    def ours(self) -> list[Any]:
        return [span for span in self.spans if getattr(span.span_data, "name", "").startswith("compact.")]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    processor = Recorded()
    set_trace_processors([processor])
    yield processor
    set_trace_processors([])


def traced(window: int = 16_000) -> CompactManager:
    return manager(window, offload={"large_result_tokens": 2000}, tracing={"exporters": ["agents_sdk"]})


def test_without_a_trace_of_the_hosts_each_session_has_one(recorded: Recorded) -> None:
    made = traced()
    made.preflight("s", busy_session())
    made.preflight("t", turns(1))
    made.preflight("s", turns(1))
    made.close()
    assert [opened.group_id for opened in recorded.traces] == ["s", "t"]
    assert len(recorded.ended_traces) == 2
    assert {opened.trace_id for opened in recorded.traces} == {
        f"trace_{events(made, session)[0]['trace_id']}" for session in "st"
    }
    written = [*events(made, "s"), *events(made, "t")]
    kinds = {(e["trace_id"], e["parent_id"], e["name"]) for e in written}
    assert sorted(span.span_data.name for span in recorded.ours()) == sorted(name for _, _, name in kinds)
    assert sum(span.span_data.data.get("count", 1) for span in recorded.ours()) == len(written), (
        "none is lost"
    )


def test_a_pass_is_a_handful_of_spans_however_much_it_moves(recorded: Recorded) -> None:
    made = traced(8_000)
    long: list[Any] = [{"role": "user", "content": "Go."}]
    for n in range(40):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        long += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        long += [{"role": "tool", "tool_call_id": f"c{n}", "content": f"row {n} " * 1_500}]
    made.preflight("s", long)
    made.close()
    written = events(made)
    assert len(written) > 40
    spans = recorded.ours()
    assert len(spans) == len({span.span_data.name for span in spans}) < 10
    (finished,) = [span for span in spans if span.span_data.name == "compact.finished"]
    assert {span.parent_id for span in spans if span is not finished} == {finished.span_id}
    for span in spans:
        same = [event for event in written if event["name"] == span.span_data.name]
        assert span.span_data.data.get("count", 1) == len(same)
        saved = [
            e["properties"].get("tokens_before", 0) - e["properties"].get("tokens_after", 0) for e in same
        ]
        data = span.span_data.data
        assert data.get("tokens_before", 0) - data.get("tokens_after", 0) == sum(saved)


def test_below_the_agents_span_when_there_is_one(recorded: Recorded) -> None:
    made = traced()
    with trace("workflow") as host, agent_span("coder") as agent:
        made.preflight("s", busy_session())
    made.close()
    ours = recorded.ours()
    assert {span.trace_id for span in ours} == {host.trace_id}
    roots = [span for span in ours if span.parent_id == agent.span_id]
    assert [span.span_data.name for span in roots] == ["compact.finished"]
    assert {span.parent_id for span in ours if span not in roots} == {roots[0].span_id}
    assert recorded.traces == [host], "no other trace is opened"


def test_below_the_trace_when_no_span_is_current(recorded: Recorded) -> None:
    made = traced()
    with trace("workflow") as host:
        made.preflight("s", turns(1))
    made.close()
    estimate, decision = recorded.ours()
    assert (estimate.parent_id, decision.parent_id) == (decision.span_id, None)
    assert decision.trace_id == host.trace_id


def test_two_callers_at_once_keep_their_own_spans(recorded: Recorded) -> None:
    made = traced()

    async def one(name: str) -> tuple[str, str]:
        with trace(name) as host, agent_span(name) as agent:
            await made.apreflight(name, busy_session())
            return host.trace_id, str(agent.span_id)

    async def both() -> tuple[tuple[str, str], tuple[str, str]]:
        return await asyncio.gather(one("a"), one("b"))

    found = asyncio.run(both())
    made.close()
    for (trace_id, agent_id), session in zip(found, "ab", strict=True):
        mine = [span for span in recorded.ours() if span.span_data.data["session_id"] == session]
        assert {span.trace_id for span in mine} == {trace_id}
        assert [s.span_data.name for s in mine if s.parent_id == agent_id] == ["compact.finished"]


def test_a_span_begins_before_those_below_it_and_has_the_events_times(recorded: Recorded) -> None:
    made = traced()
    made.preflight("s", busy_session())
    made.close()
    ours = [span for span in recorded.begun if span in recorded.ours()]
    assert ours[0].span_data.name == "compact.finished"
    written = {event["name"]: event for event in events(made)}
    for span in recorded.ours():
        if span.span_data.name in ("compact.finished", "compact.summary_created"):
            event = written[span.span_data.name]
            assert (span.started_at, span.ended_at) == (event["started_at"], event["ended_at"])
            assert span.export()["started_at"] == event["started_at"]
    (summary,) = [span for span in recorded.ours() if span.span_data.name == "compact.summary_created"]
    assert summary.span_data.data["summary"].startswith("<COMPACT-SUMMARY v1>")


def test_an_error_is_an_error_there_too(recorded: Recorded) -> None:
    made = traced()
    with pytest.raises(Exception, match="what must stay"):
        made.preflight("s", [{"role": "system", "content": "word " * 20_000}])
    made.close()
    (failed,) = [span for span in recorded.ours() if span.error is not None]
    assert failed.span_data.name == "compact.error"
    assert "what must stay" in failed.error["message"]


def test_events_without_an_end_are_handed_over_on_close(recorded: Recorded) -> None:
    made = traced()
    made.preflight("s", turns(1))
    made.flush()
    estimate = events(made)[0]
    exporter = AgentsSdkExporter()
    exporter.export([estimate])
    assert len(recorded.ours()) <= 2
    exporter.close()
    made.close()
    assert [s.span_data.name for s in recorded.ours()].count("compact.token_estimate") == 2


class OneReply(Model):
    """A model that says one thing."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_in_a_real_agents_run_events_lie_below_the_agents_span(recorded: Recorded) -> None:
    made = traced()

    async def compacted(data: CallModelData[Any]) -> ModelInputData:
        items = await made.apreflight("s", data.model_data.input)
        return ModelInputData(input=items, instructions=data.model_data.instructions)

    async def run() -> None:
        agent = Agent(name="coder", model=OneReply())
        config = RunConfig(call_model_input_filter=compacted)
        await Runner.run(agent, "Do it.", run_config=config)

    asyncio.run(run())
    made.close()
    ours = recorded.ours()
    assert [span.span_data.name for span in ours] == ["compact.token_estimate", "compact.trigger_decision"]
    by_id = {span.span_id: span for span in recorded.spans}
    above = by_id[ours[1].parent_id]
    chain = [above.span_data.type]
    while above.parent_id is not None:
        above = by_id[above.parent_id]
        chain.append(above.span_data.type)
    assert "agent" in chain


def test_a_missing_package_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(MissingExtra, match=r"compact-context\[agents\]"):
        traced()


def test_disabled_tracing_costs_nothing_and_breaks_nothing(recorded: Recorded) -> None:
    get_trace_provider().set_disabled(True)
    try:
        made = traced()
        made.preflight("s", turns(1))
        made.close()
    finally:
        get_trace_provider().set_disabled(False)
    assert recorded.ours() == []
    assert made.get_compaction_stats()["exporters"]["agents_sdk"]["dropped"] == 0
