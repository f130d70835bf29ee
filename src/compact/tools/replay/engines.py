"""Who does the work: an engine runs a function over jobs, and gives the results in the order of the jobs."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar

from compact.errors import ConfigError, MissingExtra

Job = TypeVar("Job")
Done = TypeVar("Done")

_GROUP = "compact.tools.replay.engines"
_WAITING_PER_WORKER = 4
"""Jobs are read as they are needed, so that a large folder is never in memory as a whole."""


class Engine(Protocol):
    """What an engine offers. Jobs, results and the function can be pickled."""

    def __call__(
        self, run: Callable[[Job], Done], jobs: Iterable[Job], workers: int | None
    ) -> Iterator[Done]:
        """The results, in the order of the jobs; `workers` None: as many as there are cores."""
        ...


def local(run: Callable[[Job], Done], jobs: Iterable[Job], workers: int | None = None) -> Iterator[Done]:
    """The cores of this machine; with one worker, this process."""
    count = workers or os.cpu_count() or 1
    if count == 1:
        yield from map(run, jobs)
        return
    # A forked child would inherit locks that a thread of this process may hold.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from _in_order(lambda job: pool.submit(run, job), jobs, count)


def dask(run: Callable[[Job], Done], jobs: Iterable[Job], workers: int | None = None) -> Iterator[Done]:
    """A Dask cluster: the one that `DASK_SCHEDULER_ADDRESS` names, else one of processes on this machine.

    The workers of a cluster need compact installed, in the same version. `workers` says how many processes a cluster on
    this machine has; how large another one is, it knows itself.

    Raises:
        MissingExtra: Dask is not installed.
    """
    try:
        import distributed
        from dask import config
    except ModuleNotFoundError as problem:
        raise MissingExtra.named("dask", "a replay on a Dask cluster (--engine dask)") from problem
    address = config.get("scheduler-address", None)
    # One thread for each process: a session is computed, not waited for.
    own = {"n_workers": workers or os.cpu_count() or 1, "threads_per_worker": 1, "dashboard_address": None}
    client_of: Any = distributed.Client  # its types come and go with its versions
    with client_of(address, set_as_default=False, **({} if address else own)) as client:
        count = max(1, sum(client.nthreads().values()))
        # Two equal sessions are two results: `pure` would take them for one.
        yield from _in_order(lambda job: client.submit(run, job, pure=False), jobs, count)


def _in_order(submit: Callable[[Job], Any], jobs: Iterable[Job], count: int) -> Iterator[Any]:
    """The results in the order of the jobs, a few jobs ahead of the one that is waited for."""
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


_BUILT_IN: Mapping[str, Any] = {"local": local, "dask": dask}


def engine_named(name: str) -> Engine:
    """The engine of that name: a built-in one, or one that an installed package offers.

    Raises:
        ConfigError: there is none; lists those there are.
    """
    offered = {point.name: point for point in entry_points(group=_GROUP)}
    if name in _BUILT_IN:
        found: Engine = _BUILT_IN[name]
        return found
    if name not in offered:
        known = ", ".join(sorted({*_BUILT_IN, *offered}))
        raise ConfigError(f"there is no engine {name!r}", hint=f"Known: {known}")
    loaded: Engine = offered[name].load()
    return loaded
