"""OpenTelemetry over OTLP/HTTP: every event becomes a span with its own ids and times. A few metrics are sent as well."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from compact.errors import MissingExtra
from compact.redaction.destinations import Origin
from compact.tracing.exporters.exporter import EventDict, Exporter, Sent, Unavailable

log = logging.getLogger("compact")

_TIMEOUT_S = 2.0
_METRICS_S = 10.0
"""Shortest interval between two reports of metrics."""
_METRICS_PAUSE_S = 300.0
"""Pause after metrics were refused. Many receivers accept spans only."""
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Bounds of the histograms. OpenTelemetry's defaults begin at 5, so nearly all values would fall into the first bucket."""
_SAMPLED = 1
_TEMPORARY = (408, 425, 429)
"""Refusals that mean `not now`. After any other status from 400 to 499 the same spans would be refused again."""
_TOO_LARGE = 413
_REFUSED = 400
_ANSWER_BYTES = 10_000


class OtlpExporter(Exporter):
    """Sends spans and metrics to a collector. `endpoint` is its address, without `/v1/traces`.

    If `endpoint` is None, OpenTelemetry's own environment variables decide. If they name an endpoint too, their headers belong to
    that one, and another host does not get them. No redirect is followed, and little is read of an answer.

    Raises:
        MissingExtra: the OpenTelemetry SDK is not installed.
    """

    name = "otlp"
    resumes = True

    def __init__(self, endpoint: str | None = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.trace.export import SpanExportResult
        except ImportError as problem:
            raise MissingExtra.named("otlp", "the exporter 'otlp'") from problem
        base = endpoint.rstrip("/").removesuffix("/v1/traces") if endpoint else None
        has_timeout = any("OTLP" in name and name.endswith("TIMEOUT") for name in os.environ)
        timeout = None if has_timeout else _TIMEOUT_S
        self._resource = _resource()
        self._status: int | None = None
        """Status of the collector's last answer. None if it is unknown."""
        self._has_warned = False
        traces, metrics = (base and f"{base}/v1/{kind}" for kind in ("traces", "metrics"))
        self._spans: Any = OTLPSpanExporter(
            endpoint=traces, timeout=timeout, session=self._session(base, self._note_status)
        )
        self._success = SpanExportResult.SUCCESS
        self._metrics = _Metrics(metrics, timeout, self._resource, self._session(base))

    def export(self, events: Sequence[EventDict]) -> Sent:
        """See `Exporter.export`."""
        self._status = None
        result = self._spans.export([_span(event, self._resource) for event in events])
        if result is not self._success:
            return self._handle_failure(events)
        self._has_warned = False
        for event in events:
            self._metrics.count(event)
        self._metrics.send(_METRICS_S)
        return Sent(len(events))

    def close(self) -> None:
        """Send the metrics that were not sent yet."""
        self._metrics.send(0)

    def _handle_failure(self, events: Sequence[EventDict]) -> Sent:
        """Decide what becomes of events that the collector did not take."""
        status = self._status
        if status is None or not 400 <= status < 500 or status in _TEMPORARY:
            raise Unavailable("the collector did not take the spans")
        if status == _TOO_LARGE and len(events) > 1:
            return self.export(events[: len(events) // 2])
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "the OpenTelemetry collector refuses spans with status %s; they are dropped, but events.jsonl has them. "
                "Check tracing.otlp_endpoint and the collector's requirements",
                status,
            )
        return Sent(len(events), refused=len(events))

    def _session(self, endpoint: str | None, note: Callable[..., None] | None = None) -> Any:
        """Make an HTTP client that keeps answers small and at home.

        `note` is called with each answer first: the SDK itself only says that a call failed.
        """
        if any(name.endswith("_CREDENTIAL_PROVIDER") for name in os.environ):
            return None  # the SDK makes its own client with the host's credentials
        session: Any = import_module("requests").Session()  # the package that the SDK uses
        session.hooks["response"] += [*([note] if note else ()), _bound_answer]
        foreign = _foreign_headers(endpoint)
        if foreign:
            session.auth = partial(_without_headers, foreign)
        return session

    def _note_status(self, response: Any, **_: Any) -> None:
        self._status = response.status_code


def _bound_answer(response: Any, **_: Any) -> None:
    """Cut an answer before it is unpacked, and make a refusal of a redirect: neither is followed by the SDK then."""
    beginning = response.raw.read(_ANSWER_BYTES, decode_content=False)
    response.raw.close()
    response.raw = BytesIO(beginning)
    response.headers.pop("content-encoding", None)
    if response.headers.pop("location", None) is not None or 300 <= response.status_code < 400:
        response.status_code = _REFUSED


def _foreign_headers(endpoint: str | None) -> frozenset[str]:
    """The names of the environment's headers that do not belong to an endpoint of the settings."""
    kinds = ("", "TRACES_", "METRICS_")
    own = {os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in kinds} - {None, ""}
    if endpoint is None or not own or Origin.of(endpoint) in {Origin.of(str(each)) for each in own}:
        return frozenset()
    given = ",".join(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}HEADERS", "") for kind in kinds)
    return frozenset(unquote(pair.partition("=")[0]).strip().lower() for pair in given.split(","))


def _without_headers(foreign: frozenset[str], request: Any) -> Any:
    """The last step before a request is sent: what requests calls its authentication."""
    for name in foreign:
        request.headers.pop(name, None)
    return request


class _Metrics:
    """Counters and histograms of the events that were sent."""

    def __init__(self, endpoint: str | None, timeout: float | None, resource: Any, session: Any) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
        from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

        self._exporter: Any = OTLPMetricExporter(endpoint=endpoint, timeout=timeout, session=session)
        self._success = MetricExportResult.SUCCESS
        self._reader = InMemoryMetricReader()
        views = [
            View(instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(bounds))
            for name, bounds in [("compact.*.duration", _SECONDS), ("compact.context.usage", _SHARES)]
        ]
        provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False, views=views)
        meter = provider.get_meter("compact")
        counter, histogram = meter.create_counter, meter.create_histogram
        self._passes = counter("compact.passes", "{pass}", "Passes, by outcome")
        self._saved = counter("compact.tokens.saved", "{token}", "Tokens saved")
        self._problems = counter("compact.problems", "{event}", "Errors and warnings, by type or code")
        self._duration = histogram("compact.pass.duration", "s", "Duration of a pass")
        self._summarizing = histogram("compact.summary.duration", "s", "Duration of summarizing")
        self._usage = histogram("compact.context.usage", "1", "Share of the window that a request takes")
        self._sent_at = float("-inf")

    def count(self, event: EventDict) -> None:
        properties: Mapping[str, Any] = event["properties"]
        match event["name"]:
            case "compact.token_estimate":
                self._usage.record(properties["usage_pct"], {"gen_ai.request.model": properties["model"]})
            case "compact.finished":
                labels = {"outcome": properties["outcome"], "reason": properties["reason"]}
                self._passes.add(1, labels)
                self._duration.record(properties["duration_ms"] / 1000, labels)
                self._saved.add(max(0, properties["tokens_before"] - properties["tokens_after"]))
            case "compact.summary_created":
                self._summarizing.record(
                    (_nanoseconds(event, "ended_at") - _nanoseconds(event, "started_at")) / 1e9,
                    {"strategy": properties["strategy"]},
                )
            case "compact.error":
                self._problems.add(1, {"error.type": properties["error_type"]})
            case "compact.warning":
                self._problems.add(1, {"code": properties["code"], "severity": properties["severity"]})

    def send(self, at_most_every_s: float) -> None:
        now = time.monotonic()
        if now - self._sent_at >= at_most_every_s:
            self._sent_at = now
            data = self._reader.get_metrics_data()
            if data is not None and self._exporter.export(data) is not self._success:
                self._sent_at = now + _METRICS_PAUSE_S


def _resource() -> Any:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "compact"}))
    return found


def _span(event: EventDict, resource: Any) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    def context(span_id: Any) -> SpanContext:
        return SpanContext(
            int(str(event["trace_id"]), 16), int(str(span_id), 16), False, TraceFlags(_SAMPLED)
        )

    failed = event["status"] == "error"
    message = str(event["properties"].get("message", "")) if failed else None
    return ReadableSpan(
        str(event["name"]),
        context=context(event["span_id"]),
        parent=None if event["parent_id"] is None else context(event["parent_id"]),
        resource=resource,
        attributes=_attributes(event),
        status=Status(StatusCode.ERROR, message) if failed else Status(StatusCode.UNSET),
        start_time=_nanoseconds(event, "started_at"),
        end_time=_nanoseconds(event, "ended_at"),
        instrumentation_scope=InstrumentationScope("compact"),
    )


def _attributes(event: EventDict) -> dict[str, Any]:
    """Name attributes by the GenAI conventions if they define one, and below `compact.` otherwise."""
    properties: Mapping[str, Any] = event["properties"]
    found: dict[str, Any] = {"gen_ai.conversation.id": event["session_id"], "compact.step": event["step"]}
    if event["name"] in ("compact.finished", "compact.trigger_decision"):
        found["gen_ai.conversation.compacted"] = properties.get("outcome") in ("compacted", "adopted")
    if "model" in properties:
        found["gen_ai.request.model"] = properties["model"]
    if "error_type" in properties:
        found["error.type"] = properties["error_type"]
    _flatten("compact", properties, found)
    _flatten("compact", event["payload"], found)
    return found


def _flatten(prefix: str, values: Mapping[str, Any], into: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping):
            _flatten(f"{prefix}.{key}", value, into)
        elif value is not None:
            into[f"{prefix}.{key}"] = value if isinstance(value, str | bool | int | float) else str(value)


def _nanoseconds(event: EventDict, key: str) -> int:
    moment = datetime.fromisoformat(str(event[key]))
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
