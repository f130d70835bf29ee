"""Spans and metrics over OTLP, received and decoded by OpenTelemetry's own definitions."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from support.engine import events, manager, turns
from support.exporters import busy_session
from support.otlp import Collector, attributes
from support.waiting import until

from compact import CompactManager
from compact.errors import MissingExtra
from compact.tracing.exporters.otlp import OtlpExporter


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.stop()


def traced(collector: Collector) -> CompactManager:
    return manager(
        16_000,
        offload={"large_result_tokens": 2000},
        tracing={"exporters": ["otlp"], "otlp_endpoint": collector.url},
    )


def nanoseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000


def test_every_event_is_a_span_with_its_own_ids_and_times(collector: Collector) -> None:
    with traced(collector) as made:
        made.preflight("s", busy_session())
    written = events(made)
    spans = collector.spans()
    assert [span.name for span in spans] == [event["name"] for event in written]
    for span, event in zip(spans, written, strict=True):
        assert span.trace_id.hex() == event["trace_id"]
        assert span.span_id.hex() == event["span_id"]
        assert span.parent_span_id.hex() == (event["parent_id"] or "")
        assert span.start_time_unix_nano == nanoseconds(event["started_at"])
        assert span.end_time_unix_nano == nanoseconds(event["ended_at"])


def test_the_attributes_follow_the_conventions_where_there_are_some(collector: Collector) -> None:
    with traced(collector) as made:
        made.preflight("s", busy_session())
        made.preflight("t", turns(1))
    found = [(span.name, attributes(span)) for span in collector.spans()]
    assert {values["gen_ai.conversation.id"] for _, values in found} == {"s", "t"}
    compacted = {
        (name, values["gen_ai.conversation.id"]): values["gen_ai.conversation.compacted"]
        for name, values in found
        if "gen_ai.conversation.compacted" in values
    }
    assert compacted["compact.finished", "s"] is True
    assert compacted["compact.trigger_decision", "t"] is False
    by_name = dict(found)
    assert by_name["compact.token_estimate"]["gen_ai.request.model"] == "gpt-4o"
    assert by_name["compact.summary_created"]["compact.summary"].startswith("<COMPACT-SUMMARY")
    decided = next(v for n, v in found if n == "compact.trigger_decision" and v["compact.triggered"])
    assert decided["compact.policy.trigger_pct"] == 0.85
    (resource, *_) = collector.traces[0].resource_spans
    assert attributes(resource.resource)["service.name"] == "compact"


def test_metrics_are_sent_on_close(collector: Collector) -> None:
    with traced(collector) as made:
        made.preflight("s", busy_session())
    found = collector.metrics()
    (passes,) = found["compact.passes"].sum.data_points
    assert (passes.as_int, attributes(passes)) == (1, {"outcome": "compacted", "reason": "budget"})
    assert found["compact.tokens.saved"].sum.data_points[0].as_int > 1000
    assert found["compact.pass.duration"].histogram.data_points[0].count == 1
    assert found["compact.summary.duration"].histogram.data_points[0].count == 1
    assert found["compact.context.usage"].histogram.data_points[0].count == 1
    for name, least, most in [("context.usage", 0.1, 1.0), ("pass.duration", 0.005, 120)]:
        bounds = found[f"compact.{name}"].histogram.data_points[0].explicit_bounds
        assert (bounds[0], bounds[-1], len(bounds) > 10) == (least, most, True)


def test_a_receiver_that_takes_no_metrics_is_not_asked_all_the_time(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.refused_path = "/v1/metrics"
    exporter = OtlpExporter(collector.url)
    made = manager()
    made.preflight("s", turns(1))
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        for event in events(made):
            assert exporter.export([event]).taken == 1
            exporter.close()
    assert len(collector.spans()) == 2
    assert collector.refusals == 1


def test_an_error_is_a_span_with_error_status(collector: Collector) -> None:
    made = traced(collector)
    with pytest.raises(Exception, match="what must stay"):
        made.preflight("s", [{"role": "system", "content": "word " * 20_000}])
    made.close()
    (failed,) = [span for span in collector.spans() if span.name == "compact.error"]
    assert failed.status.code == 2
    assert attributes(failed)["error.type"] == "InsufficientBudget"
    assert "what must stay" in failed.status.message


@pytest.mark.parametrize("status", [429, 408, 500, 503])
def test_spans_wait_for_a_collector_that_is_away(
    collector: Collector, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    collector.status = status
    made = traced(collector)
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        made.preflight("s", turns(1))
        made.flush()
        made.close()
        assert made.get_compaction_stats()["exporters"]["otlp"]["waiting"] == 2
        collector.status = 200
        until(lambda: len(collector.spans()) == 2)
    made.close()
    assert made.get_compaction_stats()["exporters"]["otlp"]["delivered"] == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_spans_that_a_collector_refuses_for_good_are_given_up_and_that_is_said_once(
    collector: Collector, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    collector.status = status
    made = traced(collector)
    with caplog.at_level(logging.CRITICAL, "opentelemetry"), caplog.at_level(logging.WARNING, "compact"):
        for n in range(3):
            made.preflight("s", turns(n + 1))
            made.close()
        stats = made.get_compaction_stats()["exporters"]["otlp"]
        assert stats == {"delivered": 0, "refused": 6, "dropped": 0, "waiting": 0}
        (said,) = [record.getMessage() for record in caplog.records if "refuses spans" in record.message]
        assert f"with status {status}" in said
        collector.status = 200
        made.preflight("s", turns(4))
        made.close()
    assert len(collector.spans()) == 2, "what comes later is sent again"


def test_a_batch_that_is_too_large_is_sent_in_parts(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    made = manager()
    for n in range(8):
        made.preflight("s", turns(n + 1))
    told = events(made)
    collector.most_spans = 3
    exporter = OtlpExporter(collector.url)
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        left = list(told)
        while left:
            sent = exporter.export(left)
            assert sent.refused == 0
            left = left[sent.taken :]
    assert [span.span_id.hex() for span in collector.spans()] == [event["span_id"] for event in told]


@pytest.mark.parametrize("suffix", ["", "/", "/v1/traces"])
def test_the_endpoint_may_be_given_with_or_without_its_path(collector: Collector, suffix: str) -> None:
    exporter = OtlpExporter(collector.url + suffix)
    made = manager()
    made.preflight("s", turns(1))
    assert exporter.export(events(made)).taken == 2
    exporter.close()
    assert len(collector.spans()) == 2
    assert collector.metrics()


def test_opentelemetrys_own_variables_are_used_without_a_setting(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-agent")
    with manager(tracing={"exporters": ["otlp"]}) as made:
        made.preflight("s", turns(1))
    assert len(collector.spans()) == 2
    assert attributes(collector.traces[0].resource_spans[0].resource)["service.name"] == "my-agent"


def test_a_missing_package_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", missing)
    with pytest.raises(MissingExtra, match=r"compact-context\[otlp\]"):
        manager(tracing={"exporters": ["otlp"]})
