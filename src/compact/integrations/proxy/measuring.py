"""What the proxy counts, as Prometheus reads it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

_BUCKETS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
_HELP = {
    "compact_proxy_requests_total": "Requests by endpoint and status.",
    "compact_proxy_edited_total": "Requests that went out edited, by endpoint.",
    "compact_proxy_fallbacks_total": "Requests for which the work failed or took too long, by reason.",
    "compact_proxy_recovered_total": "Refusals that the client did not see, by kind.",
    "compact_proxy_upstream_failures_total": "Requests that a provider did not answer to the end, by kind.",
    "compact_proxy_input_tokens_total": "Input tokens that providers counted, by endpoint.",
}


class Metrics:
    """The counters of one proxy. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets: Counter[int] = Counter()
        self._spent_ms = 0.0
        self._lock = threading.Lock()
        self.in_flight = 0

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to `compact_proxy_{name}_total`."""
        with self._lock:
            self._counts[f"compact_proxy_{name}_total", tuple(labels.items())] += amount

    def time(self, spent_ms: float) -> None:
        """Note how long the proxy worked on a request before it was sent."""
        with self._lock:
            self._spent_ms += spent_ms
            self._buckets[next((each for each in _BUCKETS_MS if spent_ms <= each), 0)] += 1

    def value(self, name: str, **labels: str) -> int:
        """What was counted with at least these labels."""
        wanted = labels.items()
        with self._lock:
            found = self._counts.items()
            return sum(
                n for (key, said), n in found if key == f"compact_proxy_{name}_total" and wanted <= set(said)
            )

    def text(self) -> str:
        """All series in Prometheus' text format."""
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield "# HELP compact_proxy_in_flight Requests that are being served."
        yield "# TYPE compact_proxy_in_flight gauge"
        yield f"compact_proxy_in_flight {self.in_flight}"
        for name, said in _HELP.items():
            yield f"# HELP {name} {said}"
            yield f"# TYPE {name} counter"
            for (key, labels), amount in sorted(self._counts.items()):
                if key == name:
                    shown = ",".join(f'{label}="{value}"' for label, value in labels)
                    yield f"{name}{{{shown}}} {amount}" if shown else f"{name} {amount}"
        yield "# HELP compact_proxy_work_seconds Time that the proxy worked on a request before it was sent."
        yield "# TYPE compact_proxy_work_seconds histogram"
        total = 0
        for each in _BUCKETS_MS:
            total += self._buckets[each]
            yield f'compact_proxy_work_seconds_bucket{{le="{each / 1000:g}"}} {total}'
        total += self._buckets[0]
        yield f'compact_proxy_work_seconds_bucket{{le="+Inf"}} {total}'
        yield f"compact_proxy_work_seconds_sum {self._spent_ms / 1000:.6f}"
        yield f"compact_proxy_work_seconds_count {total}"
