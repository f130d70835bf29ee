"""A receiver of OTLP over HTTP that decodes with OpenTelemetry's own protocol definitions."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """A server on a free port of this machine. `status` is what it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.refused_path: str | None = None
        self.most_spans: int | None = None
        self.refusals = 0
        self.traces: list[ExportTraceServiceRequest] = []
        self.metric_requests: list[ExportMetricsServiceRequest] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, body: bytes) -> int:
        if path == self.refused_path:
            self.refusals += 1
            return 405
        if self.status != 200:
            return self.status
        if path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            if self.most_spans is not None and len(_spans([request])) > self.most_spans:
                return 413
            self.traces.append(request)
        elif path == "/v1/metrics":
            self.metric_requests.append(ExportMetricsServiceRequest.FromString(body))
        else:
            return 404
        return 200

    def spans(self) -> list[Any]:
        return _spans(self.traces)

    def metrics(self) -> dict[str, Any]:
        """The newest state of every metric, by name."""
        return {
            metric.name: metric
            for request in self.metric_requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def _spans(requests: list[ExportTraceServiceRequest]) -> list[Any]:
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes(thing: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in thing.attributes}


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.send_response(collector.take(self.path, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
