"""Engines run a function over jobs, and yield the results in the order of the jobs."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Protocol, TypeVar

from compact.errors import MissingExtra
from compact.tools.harness.config import Registry

Task = TypeVar("Task")
Done = TypeVar("Done")

_WAITING_PER_WORKER = 4
"""Jobs are read as needed, so that a large folder is never in memory as a whole."""


class Engine(Protocol):
    """Runs jobs. Jobs, results and the function can be pickled."""

    def __call__(
        self, run: Callable[[Task], Done], jobs: Iterable[Task], workers: int | None
    ) -> Iterator[Done]:
        """Yield the results in the order of the jobs. `workers` defaults to the number of cores."""
        ...


def local(run: Callable[[Task], Done], jobs: Iterable[Task], workers: int | None = None) -> Iterator[Done]:
    """Run jobs on the cores of this machine; with one worker, in this process."""
    count = workers or os.cpu_count() or 1
    if count == 1:
        yield from map(run, jobs)
        return
    # A forked child would inherit locks that a thread of this process may hold.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from _in_order(lambda job: pool.submit(run, job), jobs, count)


def dask(run: Callable[[Task], Done], jobs: Iterable[Task], workers: int | None = None) -> Iterator[Done]:
    """Run jobs on the Dask cluster that `DASK_SCHEDULER_ADDRESS` names, else as `local` does.

    The workers of a cluster need the same version of compact; their number is the cluster's own. No cluster is started here:
    whoever can reach a scheduler can run code on its workers, and on one machine a pool of processes does without one.

    Raises:
        MissingExtra: Dask is not installed.
    """
    try:
        import distributed
        from dask import config
    except ModuleNotFoundError as problem:
        raise MissingExtra.named("dask", "a replay on a Dask cluster (--engine dask)") from problem
    address = config.get("scheduler-address", None)
    if not address:
        yield from local(run, jobs, workers)
        return
    client_of: Any = distributed.Client  # whether it is typed depends on its version
    with client_of(address, set_as_default=False) as client:
        count = max(1, sum(client.nthreads().values()))
        # Two equal sessions are two results; `pure` would merge them.
        yield from _in_order(lambda job: client.submit(run, job, pure=False), jobs, count)


def _in_order(submit: Callable[[Task], Any], jobs: Iterable[Task], count: int) -> Iterator[Any]:
    """Yield the results in the order of the jobs, and keep a few jobs running ahead."""
    waiting: deque[Any] = deque()
    try:
        for job in jobs:
            waiting.append(submit(job))
            if len(waiting) >= count * _WAITING_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


ENGINES: Registry[Engine] = Registry("engine", "compact.replay.engines", {"local": local, "dask": dask})
"""Engines by name: the built-in ones, and those that installed packages offer."""
