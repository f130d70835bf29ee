"""A replay on Dask: a real cluster of two workers on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.data import FIXTURES

from compact import CompactConfig
from compact.errors import MissingExtra
from compact.tools.replay.engines import ENGINES, dask, local
from compact.tools.replay.playing import Policy
from compact.tools.replay.running import replay

SESSIONS = FIXTURES / "transcripts" / "sessions.jsonl.gz"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    config = pytest.importorskip("dask").config
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made,
        config.set({"scheduler-address": made.scheduler_address}),
    ):
        yield made


def test_dask_without_the_extra_says_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match="extra 'dask'") as caught:
        next(dask(abs, [1]))
    assert "pip install 'compact-context[dask]'" in caught.value.hint


def test_results_come_in_the_order_of_the_jobs_and_jobs_are_read_as_needed(cluster: Any) -> None:
    taken = []

    def jobs() -> Iterator[int]:
        for n in range(40):
            taken.append(n)
            yield n // 2  # equal jobs are still two

    results = ENGINES.get("dask")(abs, jobs(), None)
    assert next(results) == 0
    assert len(taken) < 40
    assert list(results) == [n // 2 for n in range(1, 40)]


def test_an_error_in_a_worker_is_the_callers(cluster: Any) -> None:
    with pytest.raises(ValueError, match="no number"):
        list(dask(int, ["no number"]))


def test_without_a_cluster_no_port_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reaches a scheduler runs code on its workers, so none is started where other users can reach it."""
    psutil = pytest.importorskip("psutil", reason="the extra 'dask' is not installed")
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    before = _listening(psutil)
    results = dask(abs, iter([-1, -2, -3, -4, -5, -6, -7, -8, -9, -10]), 2)
    assert next(results) == 1
    assert psutil.Process().children(), "its workers are processes"
    assert _listening(psutil) == before
    assert list(results) == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def _listening(psutil: Any) -> set[tuple[str, int]]:
    own = psutil.Process()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.timeout(300)
def test_a_replay_on_two_workers_equals_one_in_this_process(cluster: Any) -> None:
    config = CompactConfig(model="gpt-4o", max_context_tokens=16_000)
    here, there = (
        replay([SESSIONS], [Policy("small", config)], engine=engine, workers=1) for engine in (local, dask)
    )
    assert len(here) > 5
    assert any(run.steps for one in here for run in one.runs)
    assert there == here
