"""compact's spans stand below the span of the agent whose call they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import RunConfig, set_trace_processors, set_tracing_disabled, trace
from agents.tracing import Span, TracingProcessor
from support.engine import Clock
from support.hosts import TASK, sdk_agent, sdk_model, sdk_run
from support.integrations import WINDOW, calls_then_text, serving

from compact import CompactConfig, CompactManager
from compact.integrations.openai_agents import compact_filter

pytest.importorskip(
    "compact.tracing.exporters.agents_sdk", reason="the exporter agents_sdk is not part of this tree"
)


class Spans(TracingProcessor):
    """Keeps what ended."""

    def __init__(self) -> None:
        self.ended: list[Span[Any]] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Span[Any]) -> None: ...
    def on_span_end(self, span: Span[Any]) -> None:
        self.ended.append(span)

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.fixture
def spans() -> Iterator[Spans]:
    kept = Spans()
    set_trace_processors([kept])
    set_tracing_disabled(False)
    yield kept
    set_trace_processors([])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_spans_stand_below_the_agents_own(spans: Spans, stream: bool) -> None:
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=WINDOW,
        policy={"target_pct": 0.1},
        archive={"adapter": "memory"},
        tracing={"exporters": ["agents_sdk"]},
    )
    manager = CompactManager(config, clock=Clock())
    with serving(calls_then_text(12)) as provider, manager, trace("work", group_id="group-1"):
        run_config = RunConfig(call_model_input_filter=compact_filter(manager))
        asyncio.run(sdk_run(sdk_agent(sdk_model(provider)), TASK, stream=stream, run_config=run_config))
    by_id = {span.span_id: span for span in spans.ended}
    ours = [span for span in spans.ended if str(getattr(span.span_data, "name", "")).startswith("compact.")]
    assert {span.span_data.name for span in ours} >= {"compact.token_estimate", "compact.summary_created"}
    assert {span.trace_id for span in ours} == {span.trace_id for span in spans.ended}, "one trace for all"
    for span in ours:
        kinds = []
        above = by_id.get(span.parent_id or "")
        while above is not None:
            kinds.append(above.span_data.type)
            above = by_id.get(above.parent_id or "")
        assert "agent" in kinds, f"{span.span_data.name} stands beside the agent, not below it"
    assert {span.span_data.data["session_id"] for span in ours} == {"group-1"}
